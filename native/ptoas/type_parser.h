// Types in the text: f32, !pto.ptr<f32>, !pto.tensor_view<?x64xf32>, !pto.tile_buf<...>.
#pragma once

#include "token_stream.h"
#include "types.h"

namespace ptoas {

// Larger extents are mistakes; the bound keeps products of two within 64 bits.
constexpr std::int64_t kMaxTileExtent = std::int64_t{1} << 20;
constexpr std::int64_t kMaxViewExtent = std::int64_t{1} << 48;

Parsed<Element> parse_element(TokenStream& tokens);
Parsed<Type> parse_type(TokenStream& tokens);

}  // namespace ptoas
