// Global tensors: strided windows of global memory with extents that every access is checked
// against.
#ifndef PTO_SIM_GLOBAL_TENSOR_HPP_
#define PTO_SIM_GLOBAL_TENSOR_HPP_

#include "pto/sim/tile.hpp"

namespace pto {

enum class Layout { ND, DN, NZ };

namespace sim {

// What instructions see of a global tensor. Strides are in elements.
struct Window {
  unsigned char* data;
  int64_t shape[5];
  int64_t stride[5];

  int64_t rows() const noexcept { return shape[0] * shape[1] * shape[2] * shape[3]; }
  int64_t cols() const noexcept { return shape[4]; }
};

// Five numbers, each a template argument or, where that is -1, a run-time value.
template <int64_t N0, int64_t N1, int64_t N2, int64_t N3, int64_t N4>
struct FiveExtents {
  int64_t value[5];

  FiveExtents(int64_t n0, int64_t n1, int64_t n2, int64_t n3, int64_t n4) noexcept
      : value{N0 < 0 ? n0 : N0, N1 < 0 ? n1 : N1, N2 < 0 ? n2 : N2, N3 < 0 ? n3 : N3,
              N4 < 0 ? n4 : N4} {}

  // One number per dynamic entry, in order; a dynamic entry that is not given is 1.
  template <class... Ints>
    requires(sizeof...(Ints) < 5)
  explicit FiveExtents(Ints... given) noexcept {
    const int64_t fixed[] = {N0, N1, N2, N3, N4};
    const int64_t list[] = {static_cast<int64_t>(given)..., 1};
    int next = 0;
    for (int i = 0; i < 5; ++i) {
      value[i] = fixed[i] >= 0 ? fixed[i] : list[next];
      if (fixed[i] < 0 && next < static_cast<int>(sizeof...(Ints))) ++next;
    }
  }
};

[[noreturn]] PTO_COLD inline void fault_confined(int64_t bytes) {
  fault(FaultCode::GlobalBounds, "make_tensor_view",
        Message() << "a view of " << bytes
                  << " bytes reaches outside the tensors that were passed to the kernel");
}

[[noreturn]] PTO_COLD inline void fault_view(int dim, int64_t extent, int64_t stride) {
  fault(FaultCode::GlobalBounds, "make_tensor_view",
        Message() << "dimension " << int64_t{dim} - 5 << " has extent " << extent << " and stride "
                  << stride);
}

[[noreturn]] PTO_COLD inline void fault_fractals(const char* op, const char* what, int64_t columns,
                                                 int64_t block) {
  fault(FaultCode::GlobalBounds, op,
        Message() << "layout NZ: " << what << " " << columns << ", which is no multiple of the "
                  << block << " columns of a fractal");
}

[[noreturn]] PTO_COLD inline void fault_partition(int dim, int64_t offset, int64_t size,
                                                  int64_t extent) {
  fault(FaultCode::GlobalBounds, "partition_view",
        Message() << "offset " << offset << " and size " << size << " reach outside dimension "
                  << int64_t{dim} - 5 << " of extent " << extent);
}

[[noreturn]] PTO_COLD inline void fault_index(const char* op, int dim, int64_t index,
                                              int64_t extent) {
  fault(FaultCode::GlobalBounds, op,
        Message() << "index " << index << " is outside dimension " << int64_t{dim} - 5
                  << " of extent " << extent);
}

// Where an element is.
PTO_SHARED inline unsigned char* element_at(const char* op, const Window& whole,
                                            const int64_t* indices, int64_t element) {
  unsigned char* at = whole.data;
#pragma GCC unroll 1
  for (int i = 0; i < 5; ++i) {
    if (indices[i] < 0 || indices[i] >= whole.shape[i]) {
      fault_index(op, i, indices[i], whole.shape[i]);
    }
    at += indices[i] * whole.stride[i] * element;
  }
  return at;
}

// Faults unless the window lies inside one of the task's tensors. Views come from text that can be
// edited by hand; this is what keeps such text from touching memory that is not the task's.
PTO_SHARED inline void confine(const Window& window, int64_t element) {
  int64_t bytes = element;
  bool empty = false;
#pragma GCC unroll 1
  for (int i = 0; i < 5; ++i) {
    int64_t reach = 0;
    const int64_t extent = window.shape[i];
    if (extent < 0 || window.stride[i] < 0 ||
        __builtin_mul_overflow((extent - (extent > 0)) * element, window.stride[i], &reach) ||
        __builtin_add_overflow(bytes, reach, &bytes)) {
      fault_view(i, extent, window.stride[i]);
    }
    empty |= extent == 0;
  }
  const pypto_rt::CoreContext* core = pypto_rt::current_core();
  if (empty || core->tensor_count < 0) return;
  const auto begin = reinterpret_cast<uint64_t>(window.data);
  for (int32_t i = 0; i < core->tensor_count; ++i) {
    const ChipTensor& tensor = *core->tensors[i];
    const uint64_t from = begin - tensor.addr;
    if (begin >= tensor.addr && from <= tensor.size &&
        static_cast<uint64_t>(bytes) <= tensor.size - from) {
      return;
    }
  }
  fault_confined(bytes);
}

// The window of `sizes` elements at `offsets`.
PTO_SHARED inline Window part(const Window& whole, const int64_t* offsets, const int64_t* sizes,
                              int64_t element) {
  Window window = whole;
#pragma GCC unroll 1
  for (int i = 0; i < 5; ++i) {
    if (offsets[i] < 0 || sizes[i] < 0 || sizes[i] > whole.shape[i] ||
        offsets[i] > whole.shape[i] - sizes[i]) {
      fault_partition(i, offsets[i], sizes[i], whole.shape[i]);
    }
    window.data += offsets[i] * whole.stride[i] * element;
    window.shape[i] = sizes[i];
  }
  return window;
}

// Columns of a fractal in layout NZ.
constexpr int64_t fractal_columns(int64_t element) noexcept { return 32 / element; }

// A matrix in layout NZ: column blocks of one fractal's width after each other, in each of them the
// rows. Dimension 2 counts the blocks, 3 the rows, 4 the columns of one block.
PTO_SHARED inline Window fractals(unsigned char* data, int64_t rows, int64_t columns,
                                  int64_t element) {
  const int64_t block = fractal_columns(element);
  if (columns % block != 0) fault_fractals("make_tensor_view", "the columns are", columns, block);
  return Window{data, {1, 1, columns / block, rows, block}, {0, 0, rows * block, block, 1}};
}

// The part of such a matrix whose rows and columns are the last two of `offsets` and `sizes`.
PTO_SHARED inline Window fractal_part(const Window& whole, const int64_t* offsets,
                                      const int64_t* sizes, int64_t element) {
  const int64_t block = fractal_columns(element);
  if (offsets[4] % block != 0) fault_fractals("partition_view", "the offset is", offsets[4], block);
  if (sizes[4] % block != 0) fault_fractals("partition_view", "the size is", sizes[4], block);
  const int64_t from[5] = {0, 0, offsets[4] / block, offsets[3], 0};
  const int64_t count[5] = {1, 1, sizes[4] / block, sizes[3], block};
  return part(whole, from, count, element);
}

}  // namespace sim

template <int64_t N0 = -1, int64_t N1 = -1, int64_t N2 = -1, int64_t N3 = -1, int64_t N4 = -1>
struct Shape : sim::FiveExtents<N0, N1, N2, N3, N4> {
  using sim::FiveExtents<N0, N1, N2, N3, N4>::FiveExtents;
};
// In elements.
template <int64_t N0 = -1, int64_t N1 = -1, int64_t N2 = -1, int64_t N3 = -1, int64_t N4 = -1>
struct Stride : sim::FiveExtents<N0, N1, N2, N3, N4> {
  using sim::FiveExtents<N0, N1, N2, N3, N4>::FiveExtents;
};

// Dimensions 0 to 3 are a tile's rows, dimension 4 its columns.
template <class T, class ShapeT = Shape<>, class StrideT = Stride<>, Layout L = Layout::ND>
class GlobalTensor {
 public:
  using DType = T;
  static constexpr bool Fractal = L == Layout::NZ;

  GlobalTensor(T* data, const ShapeT& shape, const StrideT& stride) {
    if constexpr (L == Layout::NZ) {
      window_ = sim::fractals(reinterpret_cast<unsigned char*>(data), shape.value[3],
                              shape.value[4], sizeof(T));
    } else {
      window_.data = reinterpret_cast<unsigned char*>(data);
      __builtin_memcpy(window_.shape, shape.value, sizeof window_.shape);
      __builtin_memcpy(window_.stride, stride.value, sizeof window_.stride);
    }
    sim::confine(window_, sizeof(T));
  }
  // A window that is known to lie inside a checked one.
  explicit GlobalTensor(const sim::Window& window) noexcept : window_(window) {}

  T* data() const noexcept { return reinterpret_cast<T*>(window_.data); }
  int64_t GetShape(int dim) const noexcept { return window_.shape[dim]; }
  int64_t GetStride(int dim) const noexcept { return window_.stride[dim]; }
  const sim::Window& window() const noexcept { return window_; }

  T GetValue(const int64_t (&indices)[5]) const {
    const unsigned char* at = sim::element_at("GetValue", window_, indices, sizeof(T));
    if constexpr (sim::same_type<T, bool>) {
      return *at != 0;  // memory may hold any byte, a bool must not
    } else {
      T value;
      __builtin_memcpy(&value, at, sizeof(T));
      return value;
    }
  }
  void SetValue(const int64_t (&indices)[5], T value) const {
    __builtin_memcpy(sim::element_at("SetValue", window_, indices, sizeof(T)), &value, sizeof(T));
  }

 private:
  sim::Window window_;
};

template <class T, class ShapeT, class StrideT, Layout L>
inline auto partition_view(const GlobalTensor<T, ShapeT, StrideT, L>& view,
                           const int64_t (&offsets)[5], const int64_t (&sizes)[5]) {
  const auto part = L == Layout::NZ ? sim::fractal_part : sim::part;
  return GlobalTensor<T, Shape<>, Stride<>, L>(part(view.window(), offsets, sizes, sizeof(T)));
}

}  // namespace pto

#endif  // PTO_SIM_GLOBAL_TENSOR_HPP_
