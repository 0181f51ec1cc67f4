// Numbers of the text to values, and back to C++ text that means exactly them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "types.h"

namespace ptoas {

// No meaningful number is longer; the bound keeps conversions cheap.
constexpr std::size_t kMaxNumberLength = 128;

// Decimal or 0x. Nothing if it does not fit 64 bits (hexadecimal: as a bit pattern).
std::optional<std::int64_t> parse_integer(std::string_view text);

// The bits of a literal of an integer or bool element: decimal in the element's range, hexadecimal
// as a bit pattern of its width; sign extended when the element is signed.
std::optional<std::int64_t> integer_bits(std::string_view text, Element element);

// The bits of a literal of a float element: decimal (rounded to nearest even; nothing on overflow)
// or a hexadecimal bit pattern of the element's width.
std::optional<std::int64_t> float_bits(std::string_view text, Element element);

// A C++ expression of the element's type with exactly these bits.
std::string cpp_literal(Element element, std::int64_t bits);

}  // namespace ptoas
