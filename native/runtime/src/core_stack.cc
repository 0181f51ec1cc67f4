#include "core_stack.h"

#include <signal.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <system_error>

// Sanitizers keep shadow state per stack; a thread of its own tells them the truth about this one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PYPTO_STACK_BY_THREAD 1
#endif

namespace pypto_rt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kReserved = 2 * kPage;  // header and guard

#ifdef PYPTO_STACK_BY_THREAD

struct Call {
  void (*f)(void*) noexcept;
  void* argument;
};

void* run_call(void* call) {
  static_cast<Call*>(call)->f(static_cast<Call*>(call)->argument);
  return nullptr;
}

#else

// Calls f(argument) with the stack pointer at `top`. Everything a call may change is clobbered; the
// old stack pointer waits in a register that a call keeps.
void call_on(void* top, void (*f)(void*) noexcept, void* argument) {
#if defined(__x86_64__)
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "callq *%[f]\n\t"
      "movq %%rbx, %%rsp"
      : "+D"(argument)
      : [top] "r"(top), [f] "r"(f)
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "cc", "memory");
#elif defined(__aarch64__)
  register void* x0 asm("x0") = argument;
  asm volatile(
      "mov x19, sp\n\t"
      "mov sp, %[top]\n\t"
      "blr %[f]\n\t"
      "mov sp, x19"
      : "+r"(x0)
      : [top] "r"(top), [f] "r"(f)
      : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
        "x15", "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
        "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc",
        "memory");
#else
#error "the simulated chip runs on x86-64 and aarch64"
#endif
}

#endif

}  // namespace

CoreStack::CoreStack() {
  // Twice the size always contains an aligned block; what is around it goes back.
  const size_t size = kCoreStackBytes;
  void* whole = mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (whole == MAP_FAILED) throw std::bad_alloc();
  auto* first = static_cast<unsigned char*>(whole);
  const size_t before = (size - reinterpret_cast<uintptr_t>(first) % size) % size;
  unsigned char* base = first + before;
  if (before != 0) munmap(first, before);
  munmap(base + size, size - before);
  if (mprotect(base + kPage, kPage, PROT_NONE) != 0) {
    munmap(base, size);
    throw std::bad_alloc();
  }
  base_ = base;
  header() = CoreStackHeader{};
}

CoreStack::~CoreStack() { munmap(base_, kCoreStackBytes); }

void CoreStack::run(void (*f)(void*) noexcept, void* argument) {
#ifdef PYPTO_STACK_BY_THREAD
  Call call{f, argument};
  pthread_join(start_thread(run_call, &call), nullptr);
#else
  call_on(static_cast<unsigned char*>(base_) + kCoreStackBytes, f, argument);
#endif
}

pthread_t CoreStack::start_thread(void* (*f)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, static_cast<unsigned char*>(base_) + kReserved,
                        kCoreStackBytes - kReserved);
  // Signals are for the threads of the host program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, f, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start a core");
  return thread;
}

}  // namespace pypto_rt
