// One digest over every file below a directory. What it is of is said in pypto_toolchains/tree.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pypto_native {

// In hex; empty if `root` is no directory. Directories of a name in `skipped` are left out. Throws
// std::system_error for what cannot be read.
std::string tree_digest(const std::string& root, const std::vector<std::string_view>& skipped);

}  // namespace pypto_native
