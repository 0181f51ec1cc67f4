// The smallest test frame that names what failed and goes on.
#pragma once

#include <cstdio>

namespace pypto_native::test {

inline int failures = 0;

inline void fail(const char* file, int line, const char* what) {
  if (++failures <= 50) std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

inline int result() {
  if (failures != 0) std::fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace pypto_native::test

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) ::pypto_native::test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)
