// Runs a program for Python callers: without the GIL, with signals, with Python's exceptions.
#pragma once

#include <Python.h>

#include "../runtime/src/program.h"

namespace pypto_native {

// pypto._native.KernelFault; set when the module is initialised.
extern PyObject* kernel_fault_type;

// Both are called with the GIL held. False: a Python exception is set.
bool run_program(const pypto_rt::Program& program, pypto_rt::Chip& chip,
                 const pypto_rt::ChipTensor* tensors, const uint64_t* scalars,
                 pypto_rt::RunRecord* record = nullptr);

}  // namespace pypto_native
