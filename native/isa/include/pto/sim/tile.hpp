// Tiles: two-dimensional windows of a core's on-chip memory.
#ifndef PTO_SIM_TILE_HPP_
#define PTO_SIM_TILE_HPP_

#include "pto/sim/dtypes.hpp"
#include "pto/sim/fault.hpp"

namespace pto {

enum class TileType { Vec, Mat, Left, Right, Acc, Bias };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class PadValue { Null, Zero, Max, Min };

inline constexpr int DYNAMIC = -1;

namespace sim {

// What instructions see of a tile. Strides are in elements.
struct TileView {
  void* data;
  int64_t valid_rows;
  int64_t valid_cols;
  int64_t rows;
  int64_t cols;
  int64_t row_stride;
  int64_t col_stride;
};

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
    case TileType::Bias:
      return "Bias";
  }
  return "?";
}

[[noreturn]] PTO_COLD inline void fault_valid(int64_t rows, int64_t cols, const TileView& tile) {
  fault(FaultCode::Shape, "SetValidShape",
        Message() << "valid region [" << rows << ", " << cols << "] does not fit a tile of ["
                  << tile.rows << ", " << tile.cols << "]");
}

[[noreturn]] PTO_COLD inline void fault_region(TileType type, int64_t offset, int64_t bytes,
                                               int64_t limit) {
  fault(FaultCode::OnChipBounds, "TASSIGN",
        Message() << "a tile of " << bytes << " bytes at offset " << offset << " does not fit the "
                  << limit << " bytes of " << region_name(type));
}

[[noreturn]] PTO_COLD inline void fault_alignment(int64_t offset, int64_t bytes) {
  fault(FaultCode::OnChipBounds, "TASSIGN",
        Message() << "offset " << offset << " is not aligned to elements of " << bytes << " bytes");
}

[[noreturn]] PTO_COLD inline void fault_element(const char* op, int64_t row, int64_t col,
                                                const TileView& tile) {
  fault(FaultCode::OnChipBounds, op,
        Message() << "element [" << row << ", " << col << "] of a tile of [" << tile.rows << ", "
                  << tile.cols << "]");
}

[[noreturn]] PTO_COLD inline void fault_scratch(const char* op, int64_t bytes, int64_t limit) {
  fault(FaultCode::OnChipBounds, op,
        Message() << "operands need " << bytes << " bytes of staging, the core has " << limit);
}

[[noreturn]] PTO_COLD inline void fault_unassigned(const char* op) {
  fault(FaultCode::OnChipBounds, op, "a tile has no address: TASSIGN it first");
}

[[noreturn]] PTO_COLD inline void fault_mismatch(const char* op, const char* what, int64_t rows,
                                                 int64_t cols, int64_t want_rows,
                                                 int64_t want_cols) {
  fault(FaultCode::Shape, op,
        Message() << what << " is [" << rows << ", " << cols << "] where [" << want_rows << ", "
                  << want_cols << "] is needed");
}

// The address of an offset in the region, or of an address inside it, for a tile of `bytes`.
PTO_SHARED inline void* place(TileType type, uint64_t offset, int64_t bytes, int64_t element) {
  // TileType and Region name the same spaces in the same order.
  const pypto_rt::OnChipRegion& region =
      pypto_rt::current_core()->regions[static_cast<uint32_t>(type)];
  const auto base = reinterpret_cast<uint64_t>(region.base);
  if (offset >= base && offset - base < region.bytes) offset -= base;
  if (offset > region.bytes || static_cast<uint64_t>(bytes) > region.bytes - offset) {
    fault_region(type, static_cast<int64_t>(offset), bytes, static_cast<int64_t>(region.bytes));
  }
  if (offset % static_cast<uint64_t>(element) != 0) {
    fault_alignment(static_cast<int64_t>(offset), element);
  }
  return region.base + offset;
}
static_assert(static_cast<uint32_t>(TileType::Bias) ==
              static_cast<uint32_t>(pypto_rt::Region::Bias));

// The tile has an address and exactly this valid region.
PTO_SHARED inline void require(const char* op, const char* what, const TileView& tile, int64_t rows,
                               int64_t cols) {
  if (tile.data == nullptr) fault_unassigned(op);
  if (tile.valid_rows != rows || tile.valid_cols != cols) {
    fault_mismatch(op, what, tile.valid_rows, tile.valid_cols, rows, cols);
  }
}

inline void require_bound(const char* op, const TileView& tile) {
  if (__builtin_expect(tile.data == nullptr, 0)) fault_unassigned(op);
}

inline bool overlaps(const TileView& a, int64_t a_element, const TileView& b, int64_t b_element) {
  const auto a0 = reinterpret_cast<uintptr_t>(a.data);
  const auto b0 = reinterpret_cast<uintptr_t>(b.data);
  return a0 < b0 + static_cast<uint64_t>(b.rows * b.cols * b_element) &&
         b0 < a0 + static_cast<uint64_t>(a.rows * a.cols * a_element);
}

// Room to stage operands in, at least `bytes` large.
inline void* scratch(const char* op, int64_t bytes) {
  const pypto_rt::OnChipRegion& region = pypto_rt::current_core()->scratch;
  if (__builtin_expect(static_cast<uint64_t>(bytes) > region.bytes, 0)) {
    fault_scratch(op, bytes, static_cast<int64_t>(region.bytes));
  }
  return region.base;
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

  Tile() : Tile(ValidRows, ValidCols) {
    static_assert(ValidRows >= 0 && ValidCols >= 0, "this tile needs its valid extents");
  }
  explicit Tile(int64_t extent)
      : Tile(ValidRows < 0 ? extent : ValidRows, ValidCols < 0 ? extent : ValidCols) {
    static_assert((ValidRows < 0) != (ValidCols < 0), "exactly one valid extent is dynamic");
  }
  Tile(int64_t valid_rows, int64_t valid_cols)
      : view_{nullptr, 0, 0, Rows, Cols, RowStride, ColStride} {
    SetValidShape(valid_rows, valid_cols);
  }

  void SetValidShape(int64_t rows, int64_t cols) {
    if (__builtin_expect(rows < 0 || rows > Rows || cols < 0 || cols > Cols, 0)) {
      sim::fault_valid(rows, cols, view_);
    }
    view_.valid_rows = rows;
    view_.valid_cols = cols;
  }
  int64_t GetValidRow() const noexcept { return view_.valid_rows; }
  int64_t GetValidCol() const noexcept { return view_.valid_cols; }

  T* data() const noexcept { return static_cast<T*>(view_.data); }
  T GetValue(int64_t row, int64_t col) const { return *checked("GetValue", row, col); }
  void SetValue(int64_t row, int64_t col, T value) { *checked("SetValue", row, col) = value; }

  const sim::TileView& view() const noexcept { return view_; }
  void bind(void* data) noexcept { view_.data = data; }

 private:
  T* checked(const char* op, int64_t row, int64_t col) const {
    sim::require_bound(op, view_);
    if (row < 0 || row >= Rows || col < 0 || col >= Cols) sim::fault_element(op, row, col, view_);
    return data() + row * RowStride + col * ColStride;
  }

  sim::TileView view_;
};

// Places the tile at a byte offset of its region. A value that is an address inside the region, as
// `other.data()` gives, is taken as such.
template <class TileT>
inline void TASSIGN(TileT& tile, uint64_t offset) {
  tile.bind(sim::place(TileT::Loc, offset, TileT::Bytes, sizeof(typename TileT::DType)));
}

}  // namespace pto

#endif  // PTO_SIM_TILE_HPP_
