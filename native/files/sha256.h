// SHA-256, of one message or of many.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pypto_native {

using Sha256 = std::array<unsigned char, 32>;

class Sha256Hasher {
 public:
  void update(const unsigned char* data, size_t bytes) noexcept;
  Sha256 finish() noexcept;

 private:
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char pending_[64] = {};
  size_t pending_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

struct Message {
  const unsigned char* data;
  size_t bytes;
};

// The digests of whole messages, two at a time, which takes little longer than one where the
// processor has instructions for it.
void sha256_messages(const Message* messages, size_t count, Sha256* digests) noexcept;

}  // namespace pypto_native
