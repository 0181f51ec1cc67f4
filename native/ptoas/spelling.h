// Guesses what a misspelt mnemonic was meant to be.
#pragma once

#include <string_view>

namespace ptoas {

// The known mnemonic within two edits of the text, or "".
std::string_view nearest_mnemonic(std::string_view text);

}  // namespace ptoas
