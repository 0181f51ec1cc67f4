// The global memory that the orchestration of a run allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pypto_rt/pto_orchestration_api.h"
#include "tensor_map.h"

namespace pypto_rt {

class Buffer {
 public:
  explicit Buffer(size_t bytes);  // std::bad_alloc
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  uint64_t begin() const noexcept { return reinterpret_cast<uint64_t>(data_); }
  uint64_t end() const noexcept { return begin() + bytes_; }
  size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
};

// All of a new tensor but its address, which is 0; the bytes that it takes, of which there are as
// many copies as cores where it says so. Nothing where that is more than 64 bits count.
std::optional<uint64_t> describe(const TensorCreateInfo& info, int64_t cores, ChipTensor& tensor);

// Each allocation belongs to the scope that is open when it is made, and lives until that scope has
// ended and no task holds it. Only the submitting thread makes and looks up allocations; what
// counts bytes, or may free some, is called with the pool's lock held.
class Allocations {
 public:
  // `limit` bounds the bytes that are not freed.
  explicit Allocations(int64_t limit) : limit_(limit) {}

  int64_t bytes() const noexcept { return bytes_; }
  bool fit(int64_t bytes) const noexcept { return bytes_ + bytes <= limit_; }
  void reserve(int64_t bytes) noexcept { bytes_ += bytes; }

  // Memory for bytes that are reserved; its address. std::bad_alloc.
  uint64_t make(uint64_t bytes, size_t scope);
  // The allocation that an address lies in, or null.
  std::shared_ptr<Buffer> holding(uint64_t address) const;

  // A task lets go of what it holds.
  void let_go(std::vector<std::shared_ptr<Buffer>>& held);
  // Frees the allocations of a scope and of those inside it, as far as no task holds them.
  void end_scope(size_t scope, TensorMap& map);

 private:
  struct Allocation {
    std::shared_ptr<Buffer> buffer;
    size_t scope;
  };

  // Called with one holder of the buffer that is about to let go.
  void count_out(const std::shared_ptr<Buffer>& buffer) noexcept;

  const int64_t limit_;
  int64_t bytes_ = 0;                           // of buffers not freed yet
  std::map<uint64_t, Allocation> allocations_;  // by first byte
};

}  // namespace pypto_rt
