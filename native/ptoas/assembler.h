// The library's one call: text in, text out.
#pragma once

#include <string>
#include <string_view>

#include "source.h"

namespace ptoas {

// `arch` is "a2a3", "a5", or "" when the module says it.
Expected<std::string, Diagnostics> assemble(const Source& source, std::string_view arch);

}  // namespace ptoas
