#include "token_stream.h"

namespace ptoas {

TokenStream::TokenStream(std::string_view text) : text_(text) { jump(0); }

void TokenStream::jump(Position position) {
  auto token = next_token(text_, position);
  if (token) {
    now_ = *token;
    return;
  }
  now_ = Token{TokenKind::Invalid, token.error().position, token.error().position, {}};
  lexical_error_ = std::move(token.error().message);
}

Token TokenStream::take() {
  const Token token = now_;
  if (token.kind != TokenKind::Invalid) jump(token.end);
  return token;
}

bool TokenStream::accept(char punct) {
  if (!now_.is(punct)) return false;
  take();
  return true;
}

bool TokenStream::accept(std::string_view name) {
  if (!now_.is(name)) return false;
  take();
  return true;
}

Parsed<Token> TokenStream::expect(char punct) {
  if (!now_.is(punct)) return expected(std::string("'") + punct + "'");
  return take();
}

Parsed<Token> TokenStream::expect(std::string_view name) {
  if (!now_.is(name)) return expected("'" + std::string(name) + "'");
  return take();
}

Parsed<Token> TokenStream::expect(TokenKind kind, std::string_view what) {
  if (now_.kind != kind) return expected(what);
  return take();
}

Unexpected<Diagnostic> TokenStream::expected(std::string_view what) const {
  if (now_.kind == TokenKind::Invalid) return {Diagnostic{now_.position, lexical_error_}};
  return {Diagnostic{now_.position, "expected " + std::string(what) + ", found " + describe(now_)}};
}

}  // namespace ptoas
