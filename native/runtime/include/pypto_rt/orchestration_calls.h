// How orchestration code reaches the runtime.
#ifndef PYPTO_RT_ORCHESTRATION_CALLS_H_
#define PYPTO_RT_ORCHESTRATION_CALLS_H_

#include "pypto_rt/kernel_abi.h"

namespace pypto_rt {

class CoreTaskArgs;
struct MixedKernels;
struct TensorCreateInfo;

// The runtime's side of the calls. `run` is opaque to the library.
struct OrchestrationCalls {
  uint32_t abi_version;
  int64_t (*submit)(void* run, const MixedKernels* kernels, const CoreTaskArgs* args) noexcept;
  bool (*alloc)(void* run, const TensorCreateInfo* infos, int32_t count,
                ChipTensor* tensors) noexcept;
  void (*scope_begin)(void* run) noexcept;
  void (*scope_end)(void* run) noexcept;
  void (*manual_begin)(void* run) noexcept;
  void (*manual_end)(void* run) noexcept;
  void (*report_fatal)(void* run, const char* op, const char* message) noexcept;
  bool (*is_fatal)(void* run) noexcept;
  int32_t (*cluster_count)(void* run) noexcept;
  // Where an element is, once no earlier task may write it any more, or, for `writes`, touch it.
  // Null after a fatal error, such as an index that is out of range.
  void* (*element)(void* run, const ChipTensor* tensor, const int64_t* index, int32_t count,
                   bool writes) noexcept;
};

struct OrchestrationContext {
  const OrchestrationCalls* calls;
  void* run;
  const SourcePosition* position;  // of the statement that is executed; null: unknown
};

inline OrchestrationContext& current_orchestration() noexcept {
  return *static_cast<OrchestrationContext*>(current_stack_header()->orchestration);
}

}  // namespace pypto_rt

#endif  // PYPTO_RT_ORCHESTRATION_CALLS_H_
