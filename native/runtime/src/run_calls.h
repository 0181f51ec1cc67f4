// The functions by which an orchestration reaches the run that carries it out.
#pragma once

#include "pypto_rt/orchestration_calls.h"

namespace pypto_rt {

// Their first argument is the Run of the orchestration's context.
extern const OrchestrationCalls kRunCalls;

}  // namespace pypto_rt
