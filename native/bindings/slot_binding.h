// The reader of store entries, for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace pypto_native {

void define_slot_reader(pybind11::module_& m);

}  // namespace pypto_native
