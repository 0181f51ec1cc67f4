// The named level of the processor that runs this.
#pragma once

namespace pypto_native {

// "x86-64-v4", "x86-64-v3" or "x86-64", as pypto.runtime.cpu_level defines them; nullptr on other
// machines.
const char* x86_level() noexcept;

}  // namespace pypto_native
