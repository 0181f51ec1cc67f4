// Compiled into every orchestration library: the parts of the orchestration interface that need not
// be inline.
#include "pypto_rt/pto_orchestration_api.h"

namespace pypto_rt {
namespace {

void fail(const char* op, const char* message) noexcept {
  const OrchestrationContext& context = current_orchestration();
  context.calls->report_fatal(context.run, op, message);
}

int64_t last_element(const ChipTensor& tensor) noexcept {
  int64_t last = 0;
  for (uint32_t i = 0; i < tensor.ndims; ++i) {
    if (tensor.shapes[i] == 0) return -1;
    last += (int64_t{tensor.shapes[i]} - 1) * tensor.strides[i];
  }
  return last;
}

bool is_dense(const ChipTensor& tensor) noexcept {
  int64_t expected = 1;
  for (int i = tensor.ndims - 1; i >= 0; --i) {
    if (tensor.shapes[i] > 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shapes[i];
  }
  return true;
}

}  // namespace

ChipTensor ChipTensor::view(const uint32_t* shape, const uint32_t* offset) const {
  ChipTensor window = *this;
  for (uint32_t i = 0; i < ndims; ++i) {
    if (uint64_t{offset[i]} + shape[i] > shapes[i]) {
      fail("view", "the window reaches past the end of the tensor");
      window.extent = 0;
      for (uint32_t k = 0; k < ndims; ++k) window.shapes[k] = 0;
      return window;
    }
    window.start_offset += int64_t{offset[i]} * strides[i];
    window.shapes[i] = shape[i];
  }
  window.extent = last_element(window) + 1;
  window.is_contiguous = is_dense(window);
  return window;
}

ChipTensor ChipTensor::reshape(const uint32_t* shape, uint32_t dims) const {
  ChipTensor result = *this;
  int64_t have = 1;
  for (uint32_t i = 0; i < ndims; ++i) have *= shapes[i];
  int64_t want = 1;
  for (uint32_t i = 0; i < dims; ++i) want *= shape[i];
  if (dims > kMaxDims || have != want) {
    fail("reshape", "the new shape has another number of elements");
    return result;
  }
  if (!is_contiguous) {
    fail("reshape", "the tensor is not contiguous");
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

extern "C" uint32_t framework_bind_runtime(uint32_t) { return pypto_rt::kAbiVersion; }
