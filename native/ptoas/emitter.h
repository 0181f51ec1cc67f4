// Checked module to C++ that calls the PTO instruction set.
#pragma once

#include <string>

#include "verifier.h"

namespace ptoas {

// The same module gives the same bytes, whatever the input file was called. Everything outside the
// language itself is written with its namespace, so a kernel may have any name. The text includes
// the headers that declare what it names, and no other.
std::string emit(const CheckedModule& module, const Source& source);

}  // namespace ptoas
