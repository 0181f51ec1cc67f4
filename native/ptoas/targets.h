// What the assembler must know of an architecture.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "types.h"

namespace ptoas {

// An on-chip address is a multiple of this many bytes.
constexpr std::int64_t kAddressAlignment = 32;

struct Target {
  std::string_view arch;
  std::array<std::int64_t, 6> space_bytes;  // indexed by Space

  std::int64_t bytes_of(Space space) const { return space_bytes[static_cast<std::size_t>(space)]; }
};

std::span<const Target> all_targets();
const Target* target_named(std::string_view arch);

}  // namespace ptoas
