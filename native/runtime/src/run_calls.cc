#include "run_calls.h"

#include <new>

#include "run.h"

namespace pypto_rt {
namespace {

int64_t call_submit(void* run, const MixedKernels* kernels, const CoreTaskArgs* args) noexcept {
  try {
    return static_cast<Run*>(run)->submit(*kernels, *args);
  } catch (const std::bad_alloc&) {
    static_cast<Run*>(run)->report_fatal("submit", "the host is out of memory");
    return -1;
  }
}
bool call_alloc(void* run, const TensorCreateInfo* infos, int32_t count,
                ChipTensor* tensors) noexcept {
  return static_cast<Run*>(run)->alloc(infos, count, tensors);
}
void call_scope_begin(void* run) noexcept { static_cast<Run*>(run)->scope_begin(); }
void call_scope_end(void* run) noexcept { static_cast<Run*>(run)->scope_end(); }
void call_manual_begin(void* run) noexcept { static_cast<Run*>(run)->manual_begin(); }
void call_manual_end(void* run) noexcept { static_cast<Run*>(run)->manual_end(); }
void call_report_fatal(void* run, const char* op, const char* message) noexcept {
  static_cast<Run*>(run)->report_fatal(op, message);
}
bool call_is_fatal(void* run) noexcept { return static_cast<Run*>(run)->is_fatal(); }
void* call_element(void* run, const ChipTensor* tensor, const int64_t* index, int32_t count,
                   bool writes) noexcept {
  return static_cast<Run*>(run)->element(*tensor, index, count, writes);
}
int32_t call_cluster_count(void* run) noexcept { return static_cast<Run*>(run)->cluster_count(); }

}  // namespace

const OrchestrationCalls kRunCalls{kAbiVersion,        call_submit,       call_alloc,
                                   call_scope_begin,   call_scope_end,    call_manual_begin,
                                   call_manual_end,    call_report_fatal, call_is_fatal,
                                   call_cluster_count, call_element};

}  // namespace pypto_rt
