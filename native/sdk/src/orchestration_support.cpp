// Compiled into every orchestration library: what it exports besides its own two functions.
#include "pypto_rt/pto_orchestration_api.h"

extern "C" uint32_t framework_bind_runtime(uint32_t) { return pypto_rt::kAbiVersion; }
