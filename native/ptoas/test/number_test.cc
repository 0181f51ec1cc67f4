#include "../number.h"

#include <cstdint>
#include <cstring>

#include "check.h"

namespace {

using ptoas::Element;

std::string integer(std::string_view text, Element element) {
  const auto bits = ptoas::integer_bits(text, element);
  return bits ? std::to_string(*bits) : "none";
}

std::string pattern(std::string_view text, Element element) {
  const auto bits = ptoas::float_bits(text, element);
  if (!bits) return "none";
  char out[32];
  std::snprintf(out, sizeof out, "%llX", static_cast<unsigned long long>(*bits));
  return out;
}

std::string literal(std::string_view text, Element element) {
  const auto bits = ptoas::float_bits(text, element);
  return bits ? ptoas::cpp_literal(element, *bits) : "none";
}

void integers() {
  CHECK_EQ(integer("127", Element::I8), "127");
  CHECK_EQ(integer("128", Element::I8), "none");
  CHECK_EQ(integer("-128", Element::I8), "-128");
  CHECK_EQ(integer("-129", Element::I8), "none");
  CHECK_EQ(integer("0xFF", Element::I8), "-1");
  CHECK_EQ(integer("0x100", Element::I8), "none");
  CHECK_EQ(integer("255", Element::UI8), "255");
  CHECK_EQ(integer("-1", Element::UI8), "none");
  CHECK_EQ(integer("9223372036854775807", Element::I64), "9223372036854775807");
  CHECK_EQ(integer("9223372036854775808", Element::I64), "none");
  CHECK_EQ(integer("-9223372036854775808", Element::Index), "-9223372036854775808");
  CHECK_EQ(integer("0xFFFFFFFFFFFFFFFF", Element::I64), "-1");
  CHECK_EQ(integer(std::string(200, '1'), Element::I64), "none");
  CHECK_EQ(integer("1", Element::I1), "1");
  CHECK_EQ(integer("2", Element::I1), "none");
  CHECK_EQ(ptoas::cpp_literal(Element::Index, INT64_MIN), "(-9223372036854775807 - 1)");
  CHECK_EQ(ptoas::cpp_literal(Element::I32, -5), "(-5)");
  // An unsigned number in a comparison would make the other side one, too.
  CHECK_EQ(ptoas::cpp_literal(Element::Index, -1), "(-1)");
  CHECK_EQ(ptoas::cpp_literal(Element::I64, 7), "7");
  CHECK_EQ(ptoas::cpp_literal(Element::UI64, -1), "18446744073709551615u");
}

void floats() {
  CHECK_EQ(pattern("1.000000e+00", Element::F32), "3F800000");
  CHECK_EQ(pattern("0x7F800000", Element::F32), "7F800000");
  CHECK_EQ(pattern("0x17F800000", Element::F32), "none");
  CHECK_EQ(pattern("1e39", Element::F32), "none");
  CHECK_EQ(pattern("1.0e-50", Element::F32), "0");
  CHECK_EQ(pattern("-0.0", Element::F32), "80000000");
  // Ties go to even: 2049 lies between 2048 and 2050, 2051 between 2050 and 2052.
  CHECK_EQ(pattern("2049.0", Element::F16), "6800");
  CHECK_EQ(pattern("2051.0", Element::F16), "6802");
  CHECK_EQ(pattern("65504.0", Element::F16), "7BFF");
  CHECK_EQ(pattern("65519.99", Element::F16), "7BFF");
  CHECK_EQ(pattern("65520.0", Element::F16), "none");
  CHECK_EQ(pattern("5.9604644775390625e-08", Element::F16), "1");  // the smallest subnormal
  CHECK_EQ(pattern("2.98e-08", Element::F16), "0");
  CHECK_EQ(pattern("6.103515625e-05", Element::F16), "400");  // the smallest normal
  CHECK_EQ(pattern("6.102e-05", Element::F16), "400");
  CHECK_EQ(pattern("1.00390625", Element::BF16), "3F80");  // tie to even
  CHECK_EQ(pattern("1.01171875", Element::BF16), "3F82");
  CHECK_EQ(pattern("3.3895313892515355e+38", Element::BF16), "7F7F");
  CHECK_EQ(pattern("-0.0", Element::BF16), "8000");
  CHECK_EQ(literal("0.1", Element::F32), "0x1.99999ap-4f");
  CHECK_EQ(literal("0x7FC00000", Element::F32),
           "__builtin_bit_cast(float, static_cast<uint32_t>(0x7FC00000))");
  CHECK_EQ(literal("0xFC00", Element::F16),
           "__builtin_bit_cast(pto::half, static_cast<uint16_t>(0xFC00))");
  CHECK_EQ(literal("0.5", Element::BF16), "static_cast<pto::bfloat16_t>(0x1p-1f)");
  CHECK_EQ(literal("0x0001", Element::F16), "static_cast<pto::half>(0x1p-24f)");
  CHECK_EQ(literal("-0.0", Element::F16), "static_cast<pto::half>(-0x0p+0f)");
}

// Each 16-bit pattern survives being printed as a number and read again.
void every_narrow_value_round_trips() {
  for (const Element element : {Element::F16, Element::BF16}) {
    for (std::int64_t bits = 0; bits < 0x10000; ++bits) {
      const std::string text = ptoas::cpp_literal(element, bits);
      const std::size_t open = text.rfind('(');
      if (text.starts_with("__builtin")) continue;  // not finite
      const std::string number = text.substr(open + 1, text.rfind('f') - open - 1);
      char decimal[64];
      std::snprintf(decimal, sizeof decimal, "%.17e", std::strtod(number.c_str(), nullptr));
      const auto again = ptoas::float_bits(decimal, element);
      if (again != bits) ptoas::test::fail(__FILE__, __LINE__, text + " became another value");
    }
  }
}

}  // namespace

int main() {
  integers();
  floats();
  every_narrow_value_round_trips();
  return ptoas::test::result();
}
