#include "without_gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace pypto_native {

// Before 3.14 an interpreter that ends makes each daemon thread that asks for the GIL exit on the
// spot. That unwinds the thread, which neither a run's callers nor the kernels' stacks are made
// for: the process would abort. Such a thread waits for the end of the process instead.
void WithoutGil::take_gil() noexcept {
  try {
    PyEval_RestoreThread(thread_);
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

bool WithoutGil::signal_raised(void* self) {
  auto* here = static_cast<WithoutGil*>(self);
  here->take_gil();
  const bool raised = PyErr_CheckSignals() != 0;
  here->thread_ = PyEval_SaveThread();
  return raised;
}

}  // namespace pypto_native
