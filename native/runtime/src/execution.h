// A run on a stack of its own.
#pragma once

#include <vector>

#include "run.h"

namespace pypto_rt {

// Carries out one run on a stack of the pool's. Throws KernelFault, Interrupted.
void execute_run(CorePool& cores, RuntimeKind kind, const std::vector<KernelFunction>& kernels,
                 void (*entry)(const ChipTaskArgs&), const ChipTaskArgs& args, Poll poll,
                 RunRecord* record = nullptr);

}  // namespace pypto_rt
