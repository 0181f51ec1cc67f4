#include "number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ptoas {
namespace {

bool is_hexadecimal(std::string_view text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  return text.size() > sign + 2 && text[sign] == '0' && (text[sign + 1] | 0x20) == 'x';
}

std::optional<std::uint64_t> parse_pattern(std::string_view text) {
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + 2, last, value, 16);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> pattern_of_width(std::string_view text, int bits) {
  const auto value = parse_pattern(text);
  if (!value || (bits < 64 && (*value >> bits) != 0)) return std::nullopt;
  return value;
}

std::int64_t sign_extend(std::uint64_t pattern, int bits) {
  return static_cast<std::int64_t>(pattern << (64 - bits)) >> (64 - bits);
}

struct FloatFormat {
  int exponent_bits;
  int fraction_bits;
};

constexpr FloatFormat kHalf{5, 10};
constexpr FloatFormat kBrain{8, 7};

// The nearest value of a 16-bit format, ties to even; nothing if that is beyond its largest.
std::optional<std::int64_t> encode(double value, FloatFormat format) {
  const std::int64_t sign = std::signbit(value) ? 1 : 0;
  const std::int64_t signed_zero = sign << 15;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return signed_zero;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - bias) exponent = 1 - bias;  // subnormal: the smallest exponent, no hidden one
  // nearbyint rounds ties to even in the default rounding mode; scalbn is exact here.
  auto units = static_cast<std::int64_t>(
      std::nearbyint(std::scalbn(magnitude, format.fraction_bits - exponent)));
  // A carry out of the fraction rightly becomes the next exponent.
  const std::int64_t code =
      (static_cast<std::int64_t>(exponent + bias - 1) << format.fraction_bits) + units;
  const std::int64_t infinity = ((std::int64_t{1} << format.exponent_bits) - 1)
                                << format.fraction_bits;
  if (code >= infinity) return std::nullopt;
  return signed_zero | code;
}

double decode(std::int64_t bits, FloatFormat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::int64_t fraction = bits & ((1 << format.fraction_bits) - 1);
  const auto code =
      static_cast<int>((bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1));
  const std::int64_t hidden = code == 0 ? 0 : std::int64_t{1} << format.fraction_bits;
  const int exponent = (code == 0 ? 1 : code) - bias - format.fraction_bits;
  const double magnitude = std::scalbn(static_cast<double>(hidden | fraction), exponent);
  return (bits >> 15) & 1 ? -magnitude : magnitude;
}

bool is_finite_pattern(std::int64_t bits, FloatFormat format) {
  const std::int64_t mask = (1 << format.exponent_bits) - 1;
  return ((bits >> format.fraction_bits) & mask) != mask;
}

std::string hex_float(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%af", value);
  return text;
}

std::string hex_pattern(std::int64_t bits, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llX", digits, static_cast<unsigned long long>(bits));
  return text;
}

std::string narrow_literal(std::string_view cpp, std::int64_t bits, FloatFormat format) {
  const std::string type(cpp);
  if (!is_finite_pattern(bits, format)) {
    return "__builtin_bit_cast(" + type + ", static_cast<uint16_t>(" +
           hex_pattern(bits & 0xffff, 4) + "))";
  }
  return "static_cast<" + type + ">(" + hex_float(decode(bits, format)) + ")";
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.size() > kMaxNumberLength) return std::nullopt;
  if (is_hexadecimal(text)) {
    if (text.starts_with('-')) return std::nullopt;
    const auto pattern = parse_pattern(text);
    if (!pattern) return std::nullopt;
    return static_cast<std::int64_t>(*pattern);
  }
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

std::optional<std::int64_t> integer_bits(std::string_view text, Element element) {
  const ElementInfo& type = info(element);
  if (is_hexadecimal(text) && !text.starts_with('-')) {
    if (text.size() > kMaxNumberLength) return std::nullopt;
    const auto pattern = pattern_of_width(text, type.bits);
    if (!pattern) return std::nullopt;
    return type.is_signed ? sign_extend(*pattern, type.bits) : static_cast<std::int64_t>(*pattern);
  }
  const auto value = parse_integer(text);
  if (!value) return std::nullopt;
  if (type.bits == 64) return value;
  const int magnitude_bits = type.is_signed ? type.bits - 1 : type.bits;
  const std::int64_t limit = std::int64_t{1} << magnitude_bits;
  if (*value >= limit || *value < (type.is_signed ? -limit : 0)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> float_bits(std::string_view text, Element element) {
  if (text.size() > kMaxNumberLength) return std::nullopt;
  const ElementInfo& type = info(element);
  if (is_hexadecimal(text)) {
    if (text.starts_with('-')) return std::nullopt;
    const auto pattern = pattern_of_width(text, type.bits);
    if (!pattern) return std::nullopt;
    return static_cast<std::int64_t>(*pattern);
  }
  const std::string digits(text);
  if (element == Element::F32) {
    const float value = std::strtof(digits.c_str(), nullptr);
    if (!std::isfinite(value)) return std::nullopt;
    return static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value));
  }
  const double value = std::strtod(digits.c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return encode(value, element == Element::F16 ? kHalf : kBrain);
}

std::string cpp_literal(Element element, std::int64_t bits) {
  switch (element) {
    case Element::F32: {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      if (std::isfinite(value)) return hex_float(value);
      return "__builtin_bit_cast(float, static_cast<uint32_t>(" +
             hex_pattern(bits & 0xffffffff, 8) + "))";
    }
    case Element::F16:
      return narrow_literal(info(element).cpp, bits, kHalf);
    case Element::BF16:
      return narrow_literal(info(element).cpp, bits, kBrain);
    case Element::I1:
      return bits != 0 ? "true" : "false";
    case Element::UI64:
      return std::to_string(static_cast<std::uint64_t>(bits)) + "u";
    case Element::I64:
    case Element::Index:
      // -9223372036854775808 is a minus applied to a number that fits no signed type.
      if (bits == INT64_MIN) return "(-9223372036854775807 - 1)";
      [[fallthrough]];
    default:
      return bits < 0 ? "(" + std::to_string(bits) + ")" : std::to_string(bits);
  }
}

}  // namespace ptoas
