// The tensor map against sets of bytes.
#include "../src/tensor_map.h"

#include <cstdint>
#include <set>
#include <vector>

#include "check.h"

using namespace pypto_rt;

namespace {

uint32_t next(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33);
}

ChipTensor window(uint64_t addr, DType dtype, int64_t offset, std::vector<uint32_t> shape,
                  std::vector<int64_t> stride) {
  ChipTensor tensor{};
  tensor.addr = addr;
  tensor.size = 1 << 20;
  tensor.dtype = dtype;
  tensor.start_offset = offset;
  tensor.ndims = static_cast<uint8_t>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    tensor.shapes[i] = shape[i];
    tensor.strides[i] = stride[i];
  }
  return tensor;
}

std::set<uint64_t> bytes_of(const ChipTensor& tensor) {
  std::set<uint64_t> bytes;
  const uint32_t element = dtype_bytes(tensor.dtype);
  int64_t total = 1;
  for (uint32_t i = 0; i < tensor.ndims; ++i) total *= tensor.shapes[i];
  for (int64_t flat = 0; flat < total; ++flat) {
    int64_t rest = flat;
    int64_t at = tensor.start_offset;
    for (int i = tensor.ndims - 1; i >= 0; --i) {
      at += rest % tensor.shapes[i] * tensor.strides[i];
      rest /= tensor.shapes[i];
    }
    for (uint32_t b = 0; b < element; ++b) {
      bytes.insert(tensor.addr + static_cast<uint64_t>(at) * element + b);
    }
  }
  return bytes;
}

bool truly_overlap(const ChipTensor& a, const ChipTensor& b) {
  const auto x = bytes_of(a);
  for (const uint64_t byte : bytes_of(b)) {
    if (x.count(byte) != 0) return true;
  }
  return false;
}

// Tiles of one [R, C] or [D, R, C] tensor.
ChipTensor random_tile(uint64_t& state, uint64_t addr, DType dtype) {
  constexpr int64_t kRows = 6;
  constexpr int64_t kCols = 10;
  const uint32_t r0 = next(state) % kRows;
  const uint32_t c0 = next(state) % kCols;
  const uint32_t rows = next(state) % (kRows - r0 + 1);
  const uint32_t cols = next(state) % (kCols - c0 + 1);
  const int64_t offset = r0 * kCols + c0;
  if (next(state) % 3 != 0) return window(addr, dtype, offset, {rows, cols}, {kCols, 1});
  const uint32_t d0 = next(state) % 3;
  return window(addr, dtype, offset + d0 * kRows * kCols, {1 + next(state) % 2, rows, cols},
                {kRows * kCols, kCols, 1});
}

void overlap_is_never_missed() {
  uint64_t state = 1;
  int exact = 0;
  for (int i = 0; i < 20000; ++i) {
    const DType types[] = {DType::FP32, DType::FP16};
    const DType first = types[next(state) % 2];
    const DType second = next(state) % 4 == 0 ? types[next(state) % 2] : first;
    const ChipTensor a = random_tile(state, 4096, first);
    const ChipTensor b = random_tile(state, next(state) % 8 == 0 ? 4096 + 80 : 4096, second);
    const bool truth = truly_overlap(a, b);
    const bool guess = may_overlap(Footprint::of(a), Footprint::of(b));
    CHECK(guess || !truth);
    // Windows of one buffer with one set of strides are told apart exactly.
    if (a.addr == b.addr && a.ndims == b.ndims && first == second) {
      CHECK(guess == truth);
      ++exact;
    }
  }
  CHECK(exact > 5000);
}

std::vector<int64_t> access(TensorMap& map, int64_t task, const ChipTensor& tensor,
                            ArgDirection direction, int64_t retired = 0) {
  std::vector<int64_t> dependencies;
  map.access(task, 0, tensor, direction, retired, dependencies);
  return dependencies;
}

void hazards() {
  using Ids = std::vector<int64_t>;
  const ChipTensor x = window(0, DType::FP32, 0, {4, 4}, {4, 1});
  const ChipTensor row = window(0, DType::FP32, 4, {1, 4}, {4, 1});
  const ChipTensor other = window(1 << 16, DType::FP32, 0, {4, 4}, {4, 1});
  TensorMap map;
  CHECK(access(map, 0, x, ArgDirection::In).empty());
  CHECK(access(map, 1, x, ArgDirection::In).empty());                    // two readers
  CHECK(access(map, 2, other, ArgDirection::Out).empty());               // elsewhere
  CHECK((access(map, 3, row, ArgDirection::Out) == Ids{0, 1}));          // write after read
  CHECK((access(map, 4, x, ArgDirection::In) == Ids{3}));                // read after write
  CHECK((access(map, 5, row, ArgDirection::InOut) == Ids{0, 1, 3, 4}));  // both
  CHECK(access(map, 6, x, ArgDirection::NoDep).empty());
  ChipTensor manual = x;
  manual.manual_dep = 1;
  CHECK(access(map, 7, manual, ArgDirection::Out).empty());
  // A write of everything takes the place of what came before.
  access(map, 8, x, ArgDirection::Out);
  CHECK((access(map, 9, x, ArgDirection::In) == Ids{8}));
  // Completed tasks are not waited for.
  CHECK(access(map, 10, row, ArgDirection::In, 9).empty());
  map.forget(0, 64);
  CHECK(access(map, 11, x, ArgDirection::Out).empty());
  // A task does not wait for itself.
  access(map, 12, x, ArgDirection::In);
  const Ids own = access(map, 12, x, ArgDirection::Out);
  CHECK((own == Ids{11}));
}

// Tasks of one group are ordered against what is outside it, on either side, and not among
// themselves.
void groups_are_not_ordered_inside() {
  using Ids = std::vector<int64_t>;
  const ChipTensor x = window(0, DType::FP32, 0, {4, 4}, {4, 1});
  TensorMap map;
  const auto grouped = [&](int64_t task, int64_t group, ArgDirection direction) {
    Ids dependencies;
    map.access(task, group, x, direction, 0, dependencies);
    return dependencies;
  };
  CHECK(grouped(0, 0, ArgDirection::Out).empty());
  CHECK((grouped(1, 1, ArgDirection::Out) == Ids{0}));
  CHECK((grouped(2, 1, ArgDirection::InOut) == Ids{0}));
  CHECK((grouped(3, 2, ArgDirection::In) == Ids{0, 1, 2}));
  CHECK((grouped(4, 0, ArgDirection::Out) == Ids{0, 1, 2, 3}));
  CHECK((grouped(5, 1, ArgDirection::In) == Ids{4}));
}

}  // namespace

int main() {
  overlap_is_never_missed();
  hazards();
  groups_are_not_ordered_inside();
  return test::result();
}
