// Text to syntax tree.
#pragma once

#include "ast.h"

namespace ptoas {

// Blocks in blocks; every later step recurses over them, so this bounds its stack.
constexpr int kMaxNesting = 64;

// The module refers to the source's text, which must outlive it.
Parsed<Module> parse(const Source& source);

}  // namespace ptoas
