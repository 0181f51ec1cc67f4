// One token of lookahead over a text, and the errors of a parser.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "lexer.h"

namespace ptoas {

// The value of a step that only moves on.
using Done = std::monostate;

class TokenStream {
 public:
  explicit TokenStream(std::string_view text);

  std::string_view text() const { return text_; }
  const Token& now() const { return now_; }
  Position position() const { return now_.position; }

  Token take();
  // Goes on at an offset that was found by reading characters.
  void jump(Position position);

  // Takes the token if it is the one asked for.
  bool accept(char punct);
  bool accept(std::string_view name);

  Parsed<Token> expect(char punct);
  Parsed<Token> expect(std::string_view name);
  Parsed<Token> expect(TokenKind kind, std::string_view what);

  // The error "expected WHAT, found ..." here; or why no token could be read here.
  Unexpected<Diagnostic> expected(std::string_view what) const;

 private:
  std::string_view text_;
  Token now_;
  std::string lexical_error_;  // of an Invalid token
};

// Binds `name` to the value of a Parsed expression, or returns its error.
#define PTOAS_TRY(name, ...)                                                   \
  auto name##_or_error = (__VA_ARGS__);                                        \
  if (!name##_or_error) return Unexpected{std::move(name##_or_error.error())}; \
  [[maybe_unused]] auto& name = *name##_or_error

}  // namespace ptoas
