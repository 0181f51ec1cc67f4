#include "without_gil.h"

#include <unistd.h>

namespace pypto_native {

namespace {

// Keeps a thread that would be unwound through its scope waiting there. A destructor and not a
// handler, because a thread's exit unwinds as no exception that every C++ runtime could catch.
class NoUnwinding {
 public:
  NoUnwinding() = default;
  ~NoUnwinding() {
    while (!left_) pause();
  }
  NoUnwinding(const NoUnwinding&) = delete;
  NoUnwinding& operator=(const NoUnwinding&) = delete;

  void leave() noexcept { left_ = true; }

 private:
  bool left_ = false;
};

}  // namespace

// Before 3.14 an interpreter that ends makes each daemon thread that asks for the GIL exit on the
// spot. That unwinds the thread, which neither a run's callers nor the kernels' stacks are made
// for: the process would abort. Such a thread waits for the end of the process instead.
void WithoutGil::take_gil() {
  NoUnwinding here;
  PyEval_RestoreThread(thread_);
  here.leave();
}

bool WithoutGil::signal_raised(void* self) {
  auto* here = static_cast<WithoutGil*>(self);
  here->take_gil();
  const bool raised = PyErr_CheckSignals() != 0;
  here->thread_ = PyEval_SaveThread();
  return raised;
}

}  // namespace pypto_native
