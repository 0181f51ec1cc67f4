// Stacks that code running on them can find its core from (see CoreStackHeader).
#pragma once

#include <pthread.h>

#include "pypto_rt/kernel_abi.h"

namespace pypto_rt {

// kCoreStackBytes of address space, aligned to that size:
//   [header page][guard page][stack .......... top]
// An overflow meets the guard page before it can reach the header.
class CoreStack {
 public:
  CoreStack();  // std::bad_alloc if the address space is exhausted
  ~CoreStack();
  CoreStack(const CoreStack&) = delete;
  CoreStack& operator=(const CoreStack&) = delete;

  CoreStackHeader& header() noexcept { return *static_cast<CoreStackHeader*>(base_); }

  // Runs f(argument) on this stack and returns when it has. f must not throw. One call at a time.
  void run(void (*f)(void*) noexcept, void* argument);

  // Starts a thread on this stack. It must have ended before the stack is destroyed.
  pthread_t start_thread(void* (*f)(void*), void* argument);

 private:
  void* base_;
};

}  // namespace pypto_rt
