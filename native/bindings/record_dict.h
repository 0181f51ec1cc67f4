// What a run did, as Python values.
#pragma once

#include <pybind11/pybind11.h>

#include "../runtime/src/run_record.h"

namespace pypto_native {

// The keys are the names of the record's fields; see pypto/_native.pyi.
pybind11::dict record_dict(const pypto_rt::RunRecord& record);

}  // namespace pypto_native
