// Windows and other shapes of tensors, in orchestration code. Included by pto_orchestration_api.h;
// a program that makes none pays for reading this and nothing more.
#ifndef PYPTO_RT_TENSOR_VIEWS_H_
#define PYPTO_RT_TENSOR_VIEWS_H_

#include "pypto_rt/orchestration_calls.h"

namespace pypto_rt {
namespace views {

inline void fail(const char* op, const char* message) noexcept {
  const OrchestrationContext& context = current_orchestration();
  context.calls->report_fatal(context.run, op, message);
}

// A message; orchestration libraries are linked without a C library's formatting.
class Text {
 public:
  Text& add(const char* words) noexcept {
    for (; *words != 0 && length_ + 1 < sizeof text_; ++words) text_[length_++] = *words;
    text_[length_] = 0;
    return *this;
  }
  Text& add(int64_t number) noexcept {
    char digits[24];
    char* first = digits + sizeof digits;
    *--first = 0;
    auto rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    do {
      *--first = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (number < 0) *--first = '-';
    return add(first);
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[160] = {};
  size_t length_ = 0;
};

inline int64_t last_element(const ChipTensor& tensor) noexcept {
  int64_t last = 0;
  for (uint32_t i = 0; i < tensor.ndims; ++i) {
    if (tensor.shapes[i] == 0) return -1;
    last += (int64_t{tensor.shapes[i]} - 1) * tensor.strides[i];
  }
  return last;
}

inline bool is_dense(const ChipTensor& tensor) noexcept {
  int64_t expected = 1;
  for (int i = tensor.ndims - 1; i >= 0; --i) {
    if (tensor.shapes[i] > 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shapes[i];
  }
  return true;
}

}  // namespace views

__attribute__((noinline)) inline ChipTensor ChipTensor::view(const int64_t* shape,
                                                             const int64_t* offset) const {
  ChipTensor window = *this;
  for (uint32_t i = 0; i < ndims; ++i) {
    if (offset[i] < 0 || shape[i] < 0 || shape[i] > shapes[i] || offset[i] > shapes[i] - shape[i]) {
      views::Text text;
      text.add("axis ").add(i).add(": ").add(shape[i]).add(" elements from ").add(offset[i]);
      views::fail("slice", text.add(" do not lie in an extent of ").add(shapes[i]).c_str());
      window.extent = 0;
      for (uint32_t k = 0; k < ndims; ++k) window.shapes[k] = 0;
      return window;
    }
    window.start_offset += offset[i] * strides[i];
    window.shapes[i] = static_cast<uint32_t>(shape[i]);
  }
  window.extent = views::last_element(window) + 1;
  window.is_contiguous = views::is_dense(window);
  return window;
}

__attribute__((noinline)) inline ChipTensor ChipTensor::without_axis(uint32_t axis) const {
  ChipTensor result = *this;
  for (uint32_t i = axis + 1; i < ndims; ++i) {
    result.shapes[i - 1] = shapes[i];
    result.strides[i - 1] = strides[i];
  }
  --result.ndims;
  result.shapes[result.ndims] = 1;
  result.strides[result.ndims] = 1;
  return result;
}

__attribute__((noinline)) inline ChipTensor ChipTensor::reshape(const uint32_t* shape,
                                                                uint32_t dims) const {
  ChipTensor result = *this;
  int64_t have = 1;
  for (uint32_t i = 0; i < ndims; ++i) have *= shapes[i];
  int64_t want = 1;
  for (uint32_t i = 0; i < dims; ++i) want *= shape[i];
  if (dims > kMaxDims || have != want) {
    views::fail("reshape", "the new shape has another number of elements");
    return result;
  }
  if (!is_contiguous) {
    views::fail("reshape", "the tensor is not contiguous");
    return result;
  }
  result.ndims = static_cast<uint8_t>(dims);
  int64_t stride = 1;
  for (int i = static_cast<int>(dims) - 1; i >= 0; --i) {
    result.shapes[i] = shape[i];
    result.strides[i] = stride;
    stride *= shape[i];
  }
  for (uint32_t i = dims; i < kMaxDims; ++i) {
    result.shapes[i] = 1;
    result.strides[i] = 1;
  }
  return result;
}

}  // namespace pypto_rt

#endif  // PYPTO_RT_TENSOR_VIEWS_H_
