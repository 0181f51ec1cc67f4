#include "tensor_map.h"

#include <algorithm>

namespace pypto_rt {

Footprint Footprint::of(const ChipTensor& tensor) noexcept {
  Footprint print;
  print.base = tensor.addr;
  print.offset = tensor.start_offset;
  print.element = dtype_bytes(tensor.dtype);
  print.dims = tensor.ndims;
  int64_t last = 0;
  int64_t count = 1;
  for (uint32_t i = 0; i < print.dims; ++i) {
    print.shape[i] = tensor.shapes[i];
    print.stride[i] = tensor.strides[i];
    last += (print.shape[i] - 1) * print.stride[i];
    count *= print.shape[i];
  }
  print.begin = tensor.addr + static_cast<uint64_t>(tensor.start_offset) * print.element;
  print.end =
      count == 0 ? print.begin : print.begin + (static_cast<uint64_t>(last) + 1) * print.element;
  print.dense = count == last + 1;
  return print;
}

namespace {

// The windows' first elements as coordinates of the buffer both are cut from. False if the strides
// do not nest, so that coordinates would be ambiguous.
bool coordinates(const Footprint& print, int64_t (&start)[kMaxDims], int64_t& rest) noexcept {
  int64_t offset = print.offset;
  for (uint32_t i = 0; i < print.dims; ++i) {
    if (print.stride[i] <= 0) return false;
    start[i] = offset / print.stride[i];
    offset %= print.stride[i];
    if (i > 0) {
      const int64_t room = print.stride[i - 1] / print.stride[i];
      if (print.stride[i - 1] % print.stride[i] != 0 || start[i] + print.shape[i] > room) {
        return false;
      }
    }
  }
  rest = offset;
  return true;
}

}  // namespace

bool may_overlap(const Footprint& a, const Footprint& b) noexcept {
  if (a.begin == a.end || b.begin == b.end) return false;
  if (a.end <= b.begin || b.end <= a.begin) return false;
  if (a.dense && b.dense) return true;
  if (a.base != b.base || a.element != b.element || a.dims != b.dims) return true;
  for (uint32_t i = 0; i < a.dims; ++i) {
    if (a.stride[i] != b.stride[i]) return true;
  }
  int64_t start_a[kMaxDims];
  int64_t start_b[kMaxDims];
  int64_t rest_a = 0;
  int64_t rest_b = 0;
  if (!coordinates(a, start_a, rest_a) || !coordinates(b, start_b, rest_b)) return true;
  if (rest_a != rest_b) return false;
  for (uint32_t i = 0; i < a.dims; ++i) {
    if (start_a[i] + a.shape[i] <= start_b[i] || start_b[i] + b.shape[i] <= start_a[i])
      return false;
  }
  return true;
}

void TensorMap::access(int64_t task, int64_t group, const ChipTensor& tensor,
                       ArgDirection direction, int64_t retired,
                       std::vector<int64_t>& dependencies) {
  if (direction == ArgDirection::NoDep || tensor.manual_dep != 0) return;
  const Footprint print = Footprint::of(tensor);
  if (print.begin == print.end) return;
  const bool writes = direction != ArgDirection::In;
  size_t kept = 0;
  for (size_t i = 0; i < accesses_.size(); ++i) {
    const Access& earlier = accesses_[i];
    if (earlier.task < retired) continue;
    bool obsolete = false;
    const bool apart = earlier.task != task && (group == 0 || earlier.group != group);
    if (apart && (writes || earlier.write) && may_overlap(print, earlier.footprint)) {
      dependencies.push_back(earlier.task);
      // Whoever touches these bytes later waits for `task`, and with it for the earlier one; but
      // for the rest of its group.
      obsolete = group == 0 && writes && print.dense && print.begin <= earlier.footprint.begin &&
                 earlier.footprint.end <= print.end;
    }
    if (!obsolete) {
      if (kept != i) accesses_[kept] = accesses_[i];
      ++kept;
    }
  }
  accesses_.resize(kept);
  accesses_.push_back(Access{print, task, group, writes});
}

void TensorMap::forget(uint64_t begin, uint64_t end) {
  std::erase_if(accesses_, [&](const Access& access) {
    return access.footprint.begin < end && begin < access.footprint.end;
  });
}

}  // namespace pypto_rt
