// The smallest test frame that names what failed and goes on.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace ptoas::test {

inline int failures = 0;

inline void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  ++failures;
}

inline void equal(const char* file, int line, const char* expression, std::string_view got,
                  std::string_view want) {
  if (got == want) return;
  fail(
      file, line,
      std::string(expression) + "\n  got:  " + std::string(got) + "\n  want: " + std::string(want));
}

inline void holds(const char* file, int line, std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return;
  fail(file, line, "missing: " + std::string(part) + "\n  in: " + std::string(text));
}

inline int result() {
  if (failures != 0) std::fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace ptoas::test

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) ptoas::test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)
#define CHECK_EQ(got, want) ptoas::test::equal(__FILE__, __LINE__, #got, got, want)
#define CHECK_HOLDS(text, part) ptoas::test::holds(__FILE__, __LINE__, text, part)
