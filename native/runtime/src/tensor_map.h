// Which earlier tasks a task must wait for, found from the memory both touch.
#pragma once

#include <cstdint>
#include <vector>

#include "pypto_rt/kernel_abi.h"
#include "pypto_rt/pto_orchestration_api.h"

namespace pypto_rt {

// The elements of a window: where they are, to the byte, and their geometry.
struct Footprint {
  uint64_t begin = 0;  // first byte
  uint64_t end = 0;    // past the last byte; == begin if there is no element
  uint64_t base = 0;   // of the whole buffer
  int64_t offset = 0;  // elements from base
  int64_t shape[kMaxDims] = {};
  int64_t stride[kMaxDims] = {};
  uint32_t element = 0;  // bytes
  uint32_t dims = 0;
  bool dense = false;  // every byte of [begin, end) is the window's

  static Footprint of(const ChipTensor& tensor) noexcept;
};

// Whether the two may have a byte in common. Never false if they have; windows of one buffer with
// equal strides, such as tiles of one matrix, are told apart exactly.
bool may_overlap(const Footprint& a, const Footprint& b) noexcept;

// Accesses of one run in the order of their submission. Used by the submitting thread only.
class TensorMap {
 public:
  // Records the access of `task` and appends the tasks it depends on: readers on writers, writers
  // on writers and readers. Tasks of one `group` do not depend on each other; group 0 is none.
  // Tasks below `retired` have completed and are forgotten on the way.
  void access(int64_t task, int64_t group, const ChipTensor& tensor, ArgDirection direction,
              int64_t retired, std::vector<int64_t>& dependencies);

  // Forgets accesses to memory that is about to be reused for something else.
  void forget(uint64_t begin, uint64_t end);

  void clear() noexcept { accesses_.clear(); }

 private:
  struct Access {
    Footprint footprint;
    int64_t task;
    int64_t group;
    bool write;
  };
  std::vector<Access> accesses_;
};

}  // namespace pypto_rt
