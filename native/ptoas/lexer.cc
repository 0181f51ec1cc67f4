#include "lexer.h"

namespace ptoas {
namespace {

constexpr std::string_view kPunctuation = "(){}[]<>,:=?!#";

bool is_value_part(char c) { return is_name_part(c); }

bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string quoted_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) return std::string("'") + c + "'";
  constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
}

struct Scanner {
  std::string_view text;
  std::size_t at;

  char peek(std::size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  bool done() const { return at >= text.size(); }

  void skip_blank() {
    while (!done()) {
      const char c = text[at];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at;
      } else if (c == '/' && peek(1) == '/') {
        while (!done() && text[at] != '\n') ++at;
      } else {
        return;
      }
    }
  }

  template <class Predicate>
  std::string_view take_while(Predicate accept) {
    const std::size_t from = at;
    while (!done() && accept(text[at])) ++at;
    return text.substr(from, at - from);
  }

  // Leaves `at` after the number; says whether it is a float.
  bool skip_number() {
    if (peek() == '-') ++at;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X') && is_hex_digit(peek(2))) {
      at += 2;
      take_while(is_hex_digit);
      return false;
    }
    take_while(is_digit);
    bool is_float = false;
    if (peek() == '.' && is_digit(peek(1))) {
      is_float = true;
      ++at;
      take_while(is_digit);
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      is_float = true;
      at += 1 + sign;
      take_while(is_digit);
    }
    return is_float;
  }
};

}  // namespace

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c) || c == '$' || c == '.'; }

Parsed<Token> next_token(std::string_view text, Position from) {
  Scanner scan{text, from};
  scan.skip_blank();
  const std::size_t start = scan.at;
  const auto make = [&](TokenKind kind, std::string_view body) {
    return Token{kind, static_cast<Position>(start), static_cast<Position>(scan.at), body};
  };
  const auto fail = [&](std::size_t at, std::string message) {
    return Unexpected{Diagnostic{static_cast<Position>(at), std::move(message)}};
  };
  if (scan.done()) return make(TokenKind::End, {});

  const char c = scan.peek();
  if (is_name_start(c)) return make(TokenKind::Name, scan.take_while(is_name_part));
  if (c == '%') {
    ++scan.at;
    std::string_view name = scan.take_while(is_value_part);
    if (name.empty()) return fail(start, "a name must follow '%'");
    if (scan.peek() == '#' && is_digit(scan.peek(1))) {
      ++scan.at;
      scan.take_while(is_digit);
      name = text.substr(start + 1, scan.at - start - 1);
    }
    return make(TokenKind::Value, name);
  }
  if (c == '@' || c == '^') {
    ++scan.at;
    const std::string_view name = scan.take_while(is_name_part);
    if (name.empty()) return fail(start, "a name must follow " + quoted_byte(c));
    return make(c == '@' ? TokenKind::Symbol : TokenKind::Label, name);
  }
  if (c == '-' && scan.peek(1) == '>') {
    scan.at += 2;
    return make(TokenKind::Arrow, text.substr(start, 2));
  }
  if (is_digit(c) || (c == '-' && is_digit(scan.peek(1)))) {
    const bool is_float = scan.skip_number();
    return make(is_float ? TokenKind::Float : TokenKind::Integer,
                text.substr(start, scan.at - start));
  }
  if (c == '"') {
    ++scan.at;
    while (!scan.done() && scan.peek() != '"' && scan.peek() != '\n') {
      scan.at += scan.peek() == '\\' && scan.peek(1) != '\n' && scan.at + 1 < text.size() ? 2 : 1;
    }
    if (scan.peek() != '"') return fail(start, "this string does not end on its line");
    ++scan.at;
    return make(TokenKind::String, text.substr(start + 1, scan.at - start - 2));
  }
  if (kPunctuation.find(c) != std::string_view::npos && c != '\0') {
    ++scan.at;
    return make(TokenKind::Punct, text.substr(start, 1));
  }
  return fail(start, "unexpected " + quoted_byte(c));
}

std::string describe(const Token& token) {
  // A token can be as long as the input; a message should not be.
  constexpr std::size_t kShown = 60;
  std::string text(token.text.substr(0, kShown));
  if (token.text.size() > kShown) text += "...";
  switch (token.kind) {
    case TokenKind::End:
      return "the end of the input";
    case TokenKind::Value:
      return "'%" + text + "'";
    case TokenKind::Symbol:
      return "'@" + text + "'";
    case TokenKind::Label:
      return "'^" + text + "'";
    case TokenKind::String:
      return "a string";
    default:
      return "'" + text + "'";
  }
}

}  // namespace ptoas
