// SHA-256 of files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

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

// What a file is read into; one for many files.
using FileBuffer = std::array<unsigned char, size_t{64} << 10>;

// Throws std::system_error with the file's errno.
Sha256 sha256_file(const std::string& path, FileBuffer& buffer);

}  // namespace pypto_native
