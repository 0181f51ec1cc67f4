// Global tensors: strided windows of global memory with extents that every access is checked
// against.
#ifndef PTO_SIM_GLOBAL_TENSOR_HPP_
#define PTO_SIM_GLOBAL_TENSOR_HPP_

#include "pto/sim/tile.hpp"

namespace pto {

enum class Layout { ND, DN, NZ };

namespace sim {

// Five numbers, each a template argument or, where that is -1, a run-time value.
template <int64_t N0, int64_t N1, int64_t N2, int64_t N3, int64_t N4>
struct FiveExtents {
  static constexpr int64_t fixed[5] = {N0, N1, N2, N3, N4};
  int64_t value[5];

  // All five, or one per dynamic entry in order; a dynamic entry that is not given is 1.
  template <class... Ints>
  FiveExtents(Ints... given) noexcept {
    static_assert(sizeof...(Ints) <= 5);
    const int64_t list[] = {static_cast<int64_t>(given)..., 0};
    int next = 0;
    for (int i = 0; i < 5; ++i) {
      if constexpr (sizeof...(Ints) == 5) {
        value[i] = fixed[i] < 0 ? list[i] : fixed[i];
      } else {
        value[i] = fixed[i] >= 0                                  ? fixed[i]
                   : next < static_cast<int>(sizeof...(Ints)) ? list[next++]
                                                                  : 1;
      }
    }
  }
};

// Faults unless the bytes lie inside one of the task's tensors. Views come from text that can be
// edited by hand; this is what keeps such text from touching memory that is not the task's.
__attribute__((noinline)) inline void confine(uint64_t begin, uint64_t bytes) {
  const pypto_rt::CoreContext* core = pypto_rt::current_core();
  if (core->tensor_count < 0) return;
  for (int32_t i = 0; i < core->tensor_count; ++i) {
    const ChipTensor& tensor = *core->tensors[i];
    if (begin >= tensor.addr && begin - tensor.addr <= tensor.size &&
        bytes <= tensor.size - (begin - tensor.addr)) {
      return;
    }
  }
  fault(FaultCode::GlobalBounds, "make_tensor_view",
        Message() << "a view of " << static_cast<int64_t>(bytes)
                  << " bytes reaches outside the tensors that were passed to the kernel");
}

[[noreturn]] PTO_COLD inline void fault_view(int dim, int64_t extent,
                                                                     int64_t stride) {
  fault(FaultCode::GlobalBounds, "make_tensor_view",
        Message() << "dimension " << int64_t{dim} - 5 << " has extent " << extent << " and stride "
                  << stride);
}

[[noreturn]] PTO_COLD inline void fault_partition(int dim, int64_t offset,
                                                                          int64_t size,
                                                                          int64_t extent) {
  fault(FaultCode::GlobalBounds, "partition_view",
        Message() << "offset " << offset << " and size " << size << " reach outside dimension "
                  << int64_t{dim} - 5 << " of extent " << extent);
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

  GlobalTensor(T* data, const ShapeT& shape, const StrideT& stride)
      : GlobalTensor(Unchecked{}, data, shape.value, stride.value) {
    uint64_t last = 0;
    bool empty = false;
    for (int i = 0; i < 5; ++i) {
      uint64_t reach = 0;
      if (__builtin_expect(
              shape_[i] < 0 || stride_[i] < 0 ||
                  __builtin_mul_overflow(static_cast<uint64_t>(shape_[i] - (shape_[i] > 0)),
                                         static_cast<uint64_t>(stride_[i]), &reach) ||
                  __builtin_add_overflow(last, reach, &last) || last > (uint64_t{1} << 56),
              0)) {
        sim::fault_view(i, shape_[i], stride_[i]);
      }
      empty |= shape_[i] == 0;
    }
    if (!empty) sim::confine(reinterpret_cast<uint64_t>(data), (last + 1) * sizeof(T));
  }

  T* data() const noexcept { return data_; }
  int64_t shape(int dim) const noexcept { return shape_[dim]; }
  int64_t stride(int dim) const noexcept { return stride_[dim]; }
  int64_t rows() const noexcept { return shape_[0] * shape_[1] * shape_[2] * shape_[3]; }
  int64_t cols() const noexcept { return shape_[4]; }

  // The window of `sizes` elements at `offsets`.
  auto partition(const int64_t (&offsets)[5], const int64_t (&sizes)[5]) const {
    T* data = data_;
    for (int i = 0; i < 5; ++i) {
      if (__builtin_expect(offsets[i] < 0 || sizes[i] < 0 || sizes[i] > shape_[i] ||
                               offsets[i] > shape_[i] - sizes[i],
                           0)) {
        sim::fault_partition(i, offsets[i], sizes[i], shape_[i]);
      }
      data += offsets[i] * stride_[i];
    }
    using Part = GlobalTensor<T, Shape<>, Stride<>, L>;
    return Part(typename Part::Unchecked{}, data, sizes, stride_);
  }

  struct Unchecked {};
  // A window that is known to lie inside a checked one.
  GlobalTensor(Unchecked, T* data, const int64_t (&shape)[5], const int64_t (&stride)[5]) noexcept
      : data_(data) {
    for (int i = 0; i < 5; ++i) {
      shape_[i] = shape[i];
      stride_[i] = stride[i];
    }
  }

 private:
  T* data_;
  int64_t shape_[5];
  int64_t stride_[5];
};

template <class T, class ShapeT, class StrideT, Layout L>
inline auto partition_view(const GlobalTensor<T, ShapeT, StrideT, L>& view,
                           const int64_t (&offsets)[5], const int64_t (&sizes)[5]) {
  return view.partition(offsets, sizes);
}

}  // namespace pto

#endif  // PTO_SIM_GLOBAL_TENSOR_HPP_
