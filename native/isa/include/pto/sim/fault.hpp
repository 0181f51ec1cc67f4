// How instructions fail, and how they know which source line they came from.
#ifndef PTO_SIM_FAULT_HPP_
#define PTO_SIM_FAULT_HPP_

#include "pypto_rt/kernel_abi.h"

// Fault paths stay out of line: they cost nothing until they are taken, at run time and in the
// optimizer alike.
#define PTO_COLD __attribute__((noinline, cold))

// One copy a kernel, whatever the tiles: what a kernel costs to compile is the code behind its
// instructions, so everything that does not depend on element types is a plain function like this.
#if defined(__clang__)
#define PTO_SHARED __attribute__((noinline))
#else
#define PTO_SHARED __attribute__((noinline, noclone))
#endif

// On the function of a long kernel: its own statements, which only say which instruction comes
// next, are translated as they stand. The instructions are functions of their own and keep the
// optimization that the kernel is compiled with.
#if defined(__clang__)
#define PTO_LONG_BODY __attribute__((noinline, optnone))
#else
#define PTO_LONG_BODY __attribute__((noinline, optimize("O0")))
#endif

namespace pto::sim {

using pypto_rt::FaultCode;

// Text of a fault, built without any library. Too long text is cut.
class Message {
 public:
  PTO_COLD Message& operator<<(const char* text) noexcept {
    while (*text != 0 && length_ + 1 < sizeof text_) text_[length_++] = *text++;
    text_[length_] = 0;
    return *this;
  }

  PTO_COLD Message& operator<<(int64_t value) noexcept {
    char digits[21];
    int count = 0;
    uint64_t magnitude =
        value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    do {
      digits[count++] = static_cast<char>('0' + magnitude % 10);
      magnitude /= 10;
    } while (magnitude != 0);
    if (value < 0) digits[count++] = '-';
    while (count > 0 && length_ + 1 < sizeof text_) text_[length_++] = digits[--count];
    text_[length_] = 0;
    return *this;
  }

  const char* text() const noexcept { return text_; }

 private:
  size_t length_ = 0;
  char text_[sizeof pypto_rt::FaultRecord::message] = {};
};

[[noreturn]] PTO_COLD inline void fault(FaultCode code, const char* op, const char* message) {
  pypto_rt::raise_fault(pypto_rt::current_core(), code, op, message);
}

[[noreturn]] PTO_COLD inline void fault(FaultCode code, const char* op, const Message& message) {
  fault(code, op, message.text());
}

// An operation on values it is not defined for.
[[noreturn]] PTO_COLD inline void fault_value(const char* op, const char* message) {
  fault(FaultCode::Value, op, message);
}

// What is rarely due between two instructions: a look at signals, and the end of a cancelled run.
PTO_COLD inline void pause(pypto_rt::CoreContext* core) {
  if (core->poll != nullptr) core->poll(core);
  if (__atomic_load_n(&core->cancelled, __ATOMIC_RELAXED) != 0) {
    fault(FaultCode::Cancelled, "cancel", "the run has ended early");
  }
}

__attribute__((always_inline)) inline void enter(const pypto_rt::SourcePosition* position) {
  pypto_rt::CoreContext* core = pypto_rt::current_core();
  core->position = position;
  const bool due = --core->poll_credit == 0;
  const bool cancelled = __atomic_load_n(&core->cancelled, __ATOMIC_RELAXED) != 0;
  if (__builtin_expect(cancelled | due, 0)) pause(core);
}

}  // namespace pto::sim

// Says where the following instructions came from: the line of the .pto text, and the line and
// column in `unit` (0 where unknown).
#define PTO_AT(pto_line, unit, line, column)                                                 \
  do {                                                                                       \
    static constexpr ::pypto_rt::SourcePosition pto_position_{unit, pto_line, line, column}; \
    ::pto::sim::enter(&pto_position_);                                                       \
  } while (false)

#endif  // PTO_SIM_FAULT_HPP_
