// How the runtime reports trouble to its callers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "pypto_rt/kernel_abi.h"

namespace pypto_rt {

// The first fault of a run, in the terms of whoever wrote the kernel.
struct FaultReport {
  FaultCode code = FaultCode::None;
  int32_t func_id = -1;  // of the kernel; -1: orchestration or the runtime itself
  std::string op;
  std::string message;
  std::string unit;
  int32_t line = 0;
  int32_t column = 0;
  int32_t pto_line = 0;
};

// A run ended with a fault.
class KernelFault : public std::runtime_error {
 public:
  explicit KernelFault(FaultReport report)
      : std::runtime_error(report.op + ": " + report.message), report_(std::move(report)) {}
  const FaultReport& report() const noexcept { return report_; }

 private:
  FaultReport report_;
};

// A library could not be used as a kernel or an orchestration.
class LoadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller's poll asked for the end of the run; the run has been cancelled and drained.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("the run was interrupted") {}
};

}  // namespace pypto_rt
