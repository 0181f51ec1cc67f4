// libFuzzer's entry: clang++ -std=c++20 -g -fsanitize=fuzzer,address,undefined test/fuzz_target.cc
// and every .cc of the assembler but main.cc.
#include <cstddef>
#include <cstdint>
#include <string>

#include "../assembler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto source = ptoas::Source::from_text("fuzz.pto", std::string(data, data + size));
  if (!source) return 0;
  const auto output = ptoas::assemble(*source, "a2a3");
  if (output) return 0;
  for (const ptoas::Diagnostic& diagnostic : output.error()) {
    if (source->render(diagnostic).empty()) __builtin_trap();
  }
  return 0;
}
