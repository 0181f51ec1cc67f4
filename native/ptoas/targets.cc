#include "targets.h"

namespace ptoas {
namespace {

// The same numbers as native/sdk/targets.json; a test compares them.
constexpr std::int64_t kKiB = 1024;
constexpr Target kTargets[] = {
    {"a2a3", {192 * kKiB, 512 * kKiB, 64 * kKiB, 64 * kKiB, 128 * kKiB, 1 * kKiB}},
    {"a5", {256 * kKiB, 512 * kKiB, 64 * kKiB, 64 * kKiB, 256 * kKiB, 4 * kKiB}},
};

}  // namespace

std::span<const Target> all_targets() { return kTargets; }

const Target* target_named(std::string_view arch) {
  for (const Target& target : kTargets) {
    if (target.arch == arch) return &target;
  }
  return nullptr;
}

}  // namespace ptoas
