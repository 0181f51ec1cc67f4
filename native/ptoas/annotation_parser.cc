#include "annotation_parser.h"

#include "number.h"

namespace ptoas {
namespace {

// The bytes a string literal stands for: \" \\ \n \t and \XX (two hexadecimal digits).
std::string unescape(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (is_digit(c)) return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    const int high = digit(next);
    const int low = i + 1 < text.size() ? digit(text[i + 1]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      ++i;
    } else {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
    }
  }
  return out;
}

Parsed<std::int64_t> parse_location_number(TokenStream& tokens) {
  PTOAS_TRY(colon, tokens.expect(':'));
  const Position at = tokens.position();
  PTOAS_TRY(token, tokens.expect(TokenKind::Integer, "a number"));
  const auto value = parse_integer(token.text);
  if (!value || *value < 0 || *value > INT32_MAX) return error_at(at, "not a line or column");
  return *value;
}

}  // namespace

Parsed<std::optional<UserLocation>> parse_location(TokenStream& tokens) {
  if (!tokens.accept("loc")) return std::optional<UserLocation>{};
  PTOAS_TRY(open, tokens.expect('('));
  std::optional<UserLocation> location;
  if (!tokens.accept("unknown")) {
    PTOAS_TRY(unit, tokens.expect(TokenKind::String, "\"unit\" or unknown"));
    PTOAS_TRY(line, parse_location_number(tokens));
    PTOAS_TRY(column, parse_location_number(tokens));
    location = UserLocation{unescape(unit.text), line, column};
  }
  PTOAS_TRY(close, tokens.expect(')'));
  return location;
}

Parsed<std::vector<Attribute>> parse_attributes(TokenStream& tokens) {
  std::vector<Attribute> attributes;
  PTOAS_TRY(open, tokens.expect('{'));
  if (tokens.accept('}')) return attributes;
  do {
    Attribute attribute;
    attribute.position = tokens.position();
    PTOAS_TRY(name, tokens.expect(TokenKind::Name, "an attribute name"));
    PTOAS_TRY(equals, tokens.expect('='));
    PTOAS_TRY(hash, tokens.expect('#'));
    PTOAS_TRY(kind, tokens.expect(TokenKind::Name, "an attribute such as #pto.layout<nd>"));
    PTOAS_TRY(less, tokens.expect('<'));
    attribute.name = name.text;
    if (kind.text == "pto") {
      PTOAS_TRY(inner, tokens.expect(TokenKind::Name, "an attribute such as #pto<layout nd>"));
      attribute.kind = inner.text;
    } else if (kind.text.starts_with("pto.")) {
      attribute.kind = kind.text.substr(4);
    } else {
      return error_at(kind.position, "an attribute value starts with #pto");
    }
    PTOAS_TRY(value, tokens.expect(TokenKind::Name, "the attribute's value"));
    attribute.value = value.text;
    PTOAS_TRY(greater, tokens.expect('>'));
    attributes.push_back(attribute);
  } while (tokens.accept(','));
  PTOAS_TRY(close, tokens.expect('}'));
  return attributes;
}

}  // namespace ptoas
