// The shortest way from Python to a run: a callable whose tensors differ only in their addresses.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "../runtime/src/program.h"

namespace pypto_native {

// Creates the type pypto._native.BoundCall. Null with a Python exception set on failure.
PyObject* make_bound_call_type();

// A BoundCall: called with one address a tensor, then one int of 64 bits a scalar.
PyObject* make_bound_call(PyObject* type, std::shared_ptr<const pypto_rt::Program> program,
                          std::shared_ptr<pypto_rt::Chip> chip,
                          std::vector<pypto_rt::ChipTensor> tensors);

}  // namespace pypto_native
