#include "cpu_level.h"

namespace pypto_native {

const char* x86_level() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // What the system has enabled counts, and not the processor alone: these look at both.
  const bool third = __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                     __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                     __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe") &&
                     __builtin_cpu_supports("xsave");
  const bool fourth = third && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return fourth ? "x86-64-v4" : third ? "x86-64-v3" : "x86-64";
#else
  return nullptr;
#endif
}

}  // namespace pypto_native
