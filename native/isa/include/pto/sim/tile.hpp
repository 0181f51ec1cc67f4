// Tiles: two-dimensional windows of a core's on-chip memory.
#ifndef PTO_SIM_TILE_HPP_
#define PTO_SIM_TILE_HPP_

#include "pto/sim/dtypes.hpp"
#include "pto/sim/fault.hpp"

namespace pto {

enum class TileType { Vec, Mat, Left, Right, Acc };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class PadValue { Null, Zero, Max, Min };

inline constexpr int DYNAMIC = -1;

namespace sim {

constexpr pypto_rt::Region region_of(TileType type) noexcept {
  switch (type) {
    case TileType::Vec:
      return pypto_rt::Region::Vec;
    case TileType::Mat:
      return pypto_rt::Region::Mat;
    case TileType::Left:
      return pypto_rt::Region::Left;
    case TileType::Right:
      return pypto_rt::Region::Right;
    case TileType::Acc:
      return pypto_rt::Region::Acc;
  }
  return pypto_rt::Region::Vec;
}

constexpr const char* region_name(TileType type) noexcept {
  switch (type) {
    case TileType::Vec:
      return "Vec";
    case TileType::Mat:
      return "Mat";
    case TileType::Left:
      return "Left";
    case TileType::Right:
      return "Right";
    case TileType::Acc:
      return "Acc";
  }
  return "?";
}

[[noreturn]] PTO_COLD inline void fault_valid(const char* op, int64_t rows,
                                                                      int64_t cols, int64_t max_rows,
                                                                      int64_t max_cols) {
  fault(FaultCode::Shape, op,
        Message() << "valid region [" << rows << ", " << cols << "] does not fit a tile of ["
                  << max_rows << ", " << max_cols << "]");
}

[[noreturn]] PTO_COLD inline void fault_region(TileType type, int64_t offset,
                                                                       int64_t bytes,
                                                                       int64_t limit) {
  fault(FaultCode::OnChipBounds, "TASSIGN",
        Message() << "a tile of " << bytes << " bytes at offset " << offset
                  << " does not fit the " << limit << " bytes of " << region_name(type));
}

[[noreturn]] PTO_COLD inline void fault_alignment(int64_t offset, int64_t bytes) {
  fault(FaultCode::OnChipBounds, "TASSIGN",
        Message() << "offset " << offset << " is not aligned to elements of " << bytes << " bytes");
}

[[noreturn]] PTO_COLD inline void fault_element(const char* op, int64_t row, int64_t col,
                                                int64_t rows, int64_t cols) {
  fault(FaultCode::OnChipBounds, op,
        Message() << "element [" << row << ", " << col << "] of a tile of [" << rows << ", " << cols
                  << "]");
}

[[noreturn]] PTO_COLD inline void fault_scratch(const char* op, int64_t bytes, int64_t limit) {
  fault(FaultCode::OnChipBounds, op,
        Message() << "operands need " << bytes << " bytes of staging, the core has " << limit);
}

[[noreturn]] PTO_COLD inline void fault_unassigned(const char* op) {
  fault(FaultCode::OnChipBounds, op, Message() << "a tile has no address: TASSIGN it first");
}

}  // namespace sim

// Valid extents of -1 are given when the tile is constructed. Elements are addressed by (row,
// column) whatever the layout.
template <TileType Type, class T, int Rows_, int Cols_, BLayout Block = BLayout::RowMajor,
          int ValidRows = Rows_, int ValidCols = Cols_, SLayout Inner = SLayout::NoneBox,
          int FractalBytes = 512, PadValue Pad_ = PadValue::Null>
class Tile {
 public:
  using DType = T;
  static constexpr TileType Loc = Type;
  static constexpr int64_t Rows = Rows_;
  static constexpr int64_t Cols = Cols_;
  static constexpr PadValue Pad = Pad_;
  static constexpr int64_t Bytes = Rows * Cols * static_cast<int64_t>(sizeof(T));
  // Only unboxed column-major tiles are stored by columns.
  static constexpr bool ByColumns = Inner == SLayout::NoneBox && Block == BLayout::ColMajor;
  static constexpr int64_t RowStride = ByColumns ? 1 : Cols;
  static constexpr int64_t ColStride = ByColumns ? Rows : 1;

  Tile() {
    static_assert(ValidRows >= 0 && ValidCols >= 0, "this tile needs its valid extents");
    SetValidShape(ValidRows, ValidCols);
  }
  explicit Tile(int64_t extent) {
    static_assert((ValidRows < 0) != (ValidCols < 0), "exactly one valid extent is dynamic");
    SetValidShape(ValidRows < 0 ? extent : ValidRows, ValidCols < 0 ? extent : ValidCols);
  }
  Tile(int64_t valid_rows, int64_t valid_cols) { SetValidShape(valid_rows, valid_cols); }

  void SetValidShape(int64_t rows, int64_t cols) {
    if (__builtin_expect(rows < 0 || rows > Rows || cols < 0 || cols > Cols, 0)) {
      sim::fault_valid("SetValidShape", rows, cols, Rows, Cols);
    }
    valid_rows_ = rows;
    valid_cols_ = cols;
  }
  int64_t GetValidRow() const noexcept { return valid_rows_; }
  int64_t GetValidCol() const noexcept { return valid_cols_; }

  T* data() const noexcept { return data_; }
  void bind(T* data) noexcept { data_ = data; }

  T* at(int64_t row, int64_t col) const noexcept {
    return data_ + row * RowStride + col * ColStride;
  }
  T GetValue(int64_t row, int64_t col) const { return *checked("GetValue", row, col); }
  void SetValue(int64_t row, int64_t col, T value) { *checked("SetValue", row, col) = value; }

 private:
  T* checked(const char* op, int64_t row, int64_t col) const {
    if (data_ == nullptr) sim::fault_unassigned(op);
    if (row < 0 || row >= Rows || col < 0 || col >= Cols) {
      sim::fault_element(op, row, col, Rows, Cols);
    }
    return at(row, col);
  }

  T* data_ = nullptr;
  int64_t valid_rows_ = 0;
  int64_t valid_cols_ = 0;
};

// Places the tile at a byte offset of its region. A value that is an address inside the region, as
// `other.data()` gives, is taken as such.
template <TileType Type, class T, int R, int C, BLayout B, int VR, int VC, SLayout S, int F,
          PadValue P>
inline void TASSIGN(Tile<Type, T, R, C, B, VR, VC, S, F, P>& tile, uint64_t offset) {
  using TileT = Tile<Type, T, R, C, B, VR, VC, S, F, P>;
  const pypto_rt::OnChipRegion& region =
      pypto_rt::current_core()->regions[static_cast<uint32_t>(sim::region_of(Type))];
  const auto base = reinterpret_cast<uint64_t>(region.base);
  if (offset >= base && offset - base < region.bytes) offset -= base;
  if (__builtin_expect(offset > region.bytes || TileT::Bytes > static_cast<int64_t>(
                                                                  region.bytes - offset), 0)) {
    sim::fault_region(Type, static_cast<int64_t>(offset), TileT::Bytes,
                      static_cast<int64_t>(region.bytes));
  }
  if (__builtin_expect(offset % alignof(T) != 0, 0)) {
    sim::fault_alignment(static_cast<int64_t>(offset), sizeof(T));
  }
  tile.bind(reinterpret_cast<T*>(region.base + offset));
}

namespace sim {

[[noreturn]] PTO_COLD inline void fault_mismatch(const char* op,
                                                                         const char* what,
                                                                         int64_t rows, int64_t cols,
                                                                         int64_t want_rows,
                                                                         int64_t want_cols) {
  fault(FaultCode::Shape, op,
        Message() << what << " is [" << rows << ", " << cols << "] where [" << want_rows << ", "
                  << want_cols << "] is needed");
}

template <class TileT>
__attribute__((always_inline)) inline void require_bound(const char* op, const TileT& tile) {
  if (__builtin_expect(tile.data() == nullptr, 0)) fault_unassigned(op);
}

// The tile has an address and exactly this valid region.
template <class TileT>
__attribute__((always_inline)) inline void require_valid(const char* op, const char* what,
                                                         const TileT& tile, int64_t rows,
                                                         int64_t cols) {
  require_bound(op, tile);
  if (__builtin_expect(tile.GetValidRow() != rows || tile.GetValidCol() != cols, 0)) {
    fault_mismatch(op, what, tile.GetValidRow(), tile.GetValidCol(), rows, cols);
  }
}

template <class A, class B>
inline bool overlaps(const A& a, const B& b) noexcept {
  const auto a0 = reinterpret_cast<uintptr_t>(a.data());
  const auto b0 = reinterpret_cast<uintptr_t>(b.data());
  return a0 < b0 + B::Bytes && b0 < a0 + A::Bytes;
}

// Room to stage operands in, at least `bytes` large.
inline void* scratch(const char* op, uint64_t bytes) {
  const pypto_rt::OnChipRegion& region = pypto_rt::current_core()->scratch;
  if (__builtin_expect(bytes > region.bytes, 0)) {
    fault_scratch(op, static_cast<int64_t>(bytes), static_cast<int64_t>(region.bytes));
  }
  return region.base;
}

}  // namespace sim
}  // namespace pto

#endif  // PTO_SIM_TILE_HPP_
