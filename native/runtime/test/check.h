// The smallest test frame that names what failed and goes on.
#pragma once

#include <atomic>
#include <cstdio>

namespace pypto_rt::test {

inline std::atomic<int> failures = 0;

inline void fail(const char* file, int line, const char* what) {
  if (++failures <= 50) std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

inline int result() {
  if (failures != 0) std::fprintf(stderr, "%d checks failed\n", failures.load());
  return failures == 0 ? 0 : 1;
}

}  // namespace pypto_rt::test

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) ::pypto_rt::test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)
