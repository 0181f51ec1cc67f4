// What may follow an operation: its attributes and the user's place.
#pragma once

#include <optional>
#include <vector>

#include "ast.h"
#include "token_stream.h"

namespace ptoas {

// loc("unit":line:column) if it stands here, else nothing.
Parsed<std::optional<UserLocation>> parse_location(TokenStream& tokens);

// {name = #pto.kind<value>, ...}
Parsed<std::vector<Attribute>> parse_attributes(TokenStream& tokens);

}  // namespace ptoas
