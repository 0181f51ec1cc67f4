#pragma once

namespace ptoas {

// Changes with the dialect or the emitted text.
constexpr char kVersion[] = "0.1.0";

}  // namespace ptoas
