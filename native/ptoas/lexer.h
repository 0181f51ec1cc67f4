// Characters to tokens, on demand. The lexer keeps no state: the parser asks for the token at an
// offset, so it can also read a shape such as 16x64xf32 character by character and go on after it.
#pragma once

#include <string_view>

#include "source.h"

namespace ptoas {

enum class TokenKind : unsigned char {
  End,
  Name,     // bare word: module, pto.tadd, f32
  Value,    // %name, or %name#1; text is without the '%'
  Symbol,   // @name; text is without the '@'
  Label,    // ^name; text is without the '^'
  Integer,  // 12, -3, 0x7F
  Float,    // 1.5, -2.0e+3
  String,   // "..." ; text is between the quotes, escapes as written
  Punct,    // one of ( ) { } [ ] < > , : = ? ! #
  Arrow,    // ->
  Invalid,  // no token starts here
};

struct Token {
  TokenKind kind = TokenKind::End;
  Position position = 0;
  Position end = 0;  // one past its last byte
  std::string_view text;

  bool is(char punct) const { return kind == TokenKind::Punct && text[0] == punct; }
  bool is(std::string_view name) const { return kind == TokenKind::Name && text == name; }
};

bool is_digit(char c);
bool is_name_start(char c);
bool is_name_part(char c);

Parsed<Token> next_token(std::string_view text, Position from);

// For messages: what stands at the token.
std::string describe(const Token& token);

}  // namespace ptoas
