// Asking the file system again what the identity of tools was worked out from.
#pragma once

#include <string>
#include <string_view>

namespace pypto_native {

// Whether the question of this kind (as pypto_toolchains.disk names them) about `path` has this
// answer still. False where it cannot be told, for an unknown kind, and for native files that are
// not of the common form: then somebody else has to look.
bool still_holds(std::string_view kind, const std::string& path, std::string_view answer);

}  // namespace pypto_native
