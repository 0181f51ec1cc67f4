// Reading small files into one place, to hash them two at a time.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sha256.h"

namespace pypto_native {

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// As read does, but begins again where a signal came between.
ssize_t read_some(int fd, void* into, size_t bytes) noexcept;

// Whether the file has exactly `bytes` bytes, which are then at `into`; there is room for one more.
bool read_exactly(int fd, unsigned char* into, size_t bytes) noexcept;

// A few files' contents, one after the other.
class ReadBatch {
 public:
  static constexpr size_t kBytes = size_t{512} << 10;
  static constexpr size_t kFiles = 64;

  // Kept by its thread, because the page faults of a fresh one are a tenth of what reading and
  // hashing a small store entry takes.
  static ReadBatch& of_thread();

  void clear() noexcept { used_ = count_ = 0; }
  size_t count() const noexcept { return count_; }

  // One byte more than the file: that there is none proves that it has not grown.
  static bool could_hold(uint64_t bytes) noexcept { return bytes < kBytes; }
  bool has_room(uint64_t bytes) const noexcept { return count_ < kFiles && bytes < kBytes - used_; }

  // Reads a file for which there is room; false if it has not exactly `bytes` bytes.
  bool add(int fd, size_t bytes) noexcept;

  const Message& operator[](size_t index) const noexcept { return messages_[index]; }

  // The digests of all files, in the order in which they were added.
  void hash(Sha256* digests) const noexcept { sha256_messages(messages_, count_, digests); }

  // For files that are too large, piece by piece; overwrites what was read.
  unsigned char* scratch() noexcept { return bytes_.get(); }

 private:
  const std::unique_ptr<unsigned char[]> bytes_{new unsigned char[kBytes]};
  Message messages_[kFiles];
  size_t used_ = 0;
  size_t count_ = 0;
};

}  // namespace pypto_native
