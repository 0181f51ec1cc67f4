#include "allocations.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

namespace pypto_rt {
namespace {

constexpr size_t kAlignment = 64;

// A whole number of alignments, at least one.
uint64_t aligned(uint64_t bytes) noexcept {
  return std::max<uint64_t>(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

Buffer::Buffer(size_t bytes)
    : data_(std::aligned_alloc(kAlignment, aligned(bytes))), bytes_(bytes) {
  if (data_ == nullptr) throw std::bad_alloc();
}

Buffer::~Buffer() { std::free(data_); }

std::optional<uint64_t> describe(const TensorCreateInfo& info, int64_t cores, ChipTensor& tensor) {
  tensor = ChipTensor{};
  if (info.ndims > kMaxDims) return std::nullopt;
  uint64_t bytes = dtype_bytes(info.dtype);
  uint64_t elements = 1;
  for (uint32_t d = 0; d < info.ndims; ++d) {
    if (__builtin_mul_overflow(elements, info.shapes[d], &elements)) return std::nullopt;
  }
  if (__builtin_mul_overflow(bytes, elements, &bytes)) return std::nullopt;
  tensor.size = bytes;
  if (info.per_core) {
    if (bytes > UINT64_MAX - kAlignment) return std::nullopt;
    tensor.core_bytes = aligned(bytes);
    if (__builtin_mul_overflow(tensor.core_bytes, static_cast<uint64_t>(cores), &bytes)) {
      return std::nullopt;
    }
  }
  tensor.owner_task_id = -1;
  tensor.ndims = static_cast<uint8_t>(info.ndims);
  tensor.dtype = info.dtype;
  tensor.manual_dep = info.manual_dep;
  tensor.is_contiguous = 1;
  tensor.extent = static_cast<int64_t>(elements);
  int64_t stride = 1;
  for (int d = kMaxDims - 1; d >= 0; --d) {
    tensor.shapes[d] = d < static_cast<int>(info.ndims) ? info.shapes[d] : 1;
    tensor.strides[d] = stride;
    stride *= tensor.shapes[d];
  }
  return bytes;
}

uint64_t Allocations::make(uint64_t bytes, size_t scope) {
  auto buffer = std::make_shared<Buffer>(bytes);
  const uint64_t address = buffer->begin();
  allocations_.emplace(address, Allocation{std::move(buffer), scope});
  return address;
}

std::shared_ptr<Buffer> Allocations::holding(uint64_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  const auto& buffer = std::prev(after)->second.buffer;
  return address < buffer->end() ? buffer : nullptr;
}

void Allocations::let_go(std::vector<std::shared_ptr<Buffer>>& held) {
  for (const auto& buffer : held) count_out(buffer);
  held.clear();
}

void Allocations::end_scope(size_t scope, TensorMap& map) {
  for (auto it = allocations_.begin(); it != allocations_.end();) {
    if (it->second.scope < scope) {
      ++it;
      continue;
    }
    const auto& buffer = it->second.buffer;
    map.forget(buffer->begin(), buffer->end());
    count_out(buffer);
    it = allocations_.erase(it);
  }
}

void Allocations::count_out(const std::shared_ptr<Buffer>& buffer) noexcept {
  if (buffer.use_count() == 1) bytes_ -= static_cast<int64_t>(buffer->bytes());
}

}  // namespace pypto_rt
