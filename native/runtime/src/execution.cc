#include "execution.h"

#include <exception>
#include <memory>
#include <utility>

#include "core_stack.h"

namespace pypto_rt {
namespace {

// One run, for the function that carries it out on a CoreStack.
struct Execution {
  Run* run;
  void (*entry)(const ChipTaskArgs&);
  const ChipTaskArgs* args;
  std::exception_ptr failure;
};

void carry_out(void* argument) noexcept {
  auto* execution = static_cast<Execution*>(argument);
  try {
    execution->run->execute(execution->entry, *execution->args);
  } catch (...) {
    execution->failure = std::current_exception();
  }
}

// A stack of the pool's for as long as one run.
class BorrowedStack {
 public:
  explicit BorrowedStack(CorePool& pool) : pool_(pool), stack_(pool.acquire_stack()) {}
  ~BorrowedStack() { pool_.release_stack(std::move(stack_)); }
  BorrowedStack(const BorrowedStack&) = delete;
  BorrowedStack& operator=(const BorrowedStack&) = delete;
  CoreStack& operator*() noexcept { return *stack_; }

 private:
  CorePool& pool_;
  std::unique_ptr<CoreStack> stack_;
};

}  // namespace

void execute_run(CorePool& cores, RuntimeKind kind, const std::vector<KernelFunction>& kernels,
                 void (*entry)(const ChipTaskArgs&), const ChipTaskArgs& args, Poll poll,
                 RunRecord* record) {
  BorrowedStack stack(cores);
  Run run(cores, kind, kernels, poll, (*stack).header(), record);
  Execution execution{&run, entry, &args, nullptr};
  (*stack).run(carry_out, &execution);
  if (execution.failure) std::rethrow_exception(execution.failure);
}

}  // namespace pypto_rt
