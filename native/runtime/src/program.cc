#include "program.h"

#include <stdexcept>

#include "execution.h"

namespace pypto_rt {

ChipTensor dense_tensor(uint64_t addr, uint64_t bytes, const int64_t* shape, size_t dims,
                        DType dtype) {
  if (dims > kMaxDims) throw std::invalid_argument("a tensor has at most 5 dimensions");
  const uint32_t element = dtype_bytes(dtype);
  if (element == 0) throw std::invalid_argument("the tensor's dtype code is unknown");
  ChipTensor tensor{};
  tensor.addr = addr;
  tensor.size = bytes;
  tensor.owner_task_id = -1;
  tensor.ndims = static_cast<uint8_t>(dims);
  tensor.dtype = dtype;
  tensor.is_contiguous = 1;
  int64_t stride = 1;
  for (int i = kMaxDims - 1; i >= 0; --i) {
    const int64_t extent = i < static_cast<int>(dims) ? shape[i] : 1;
    if (extent < 0 || extent > INT32_MAX) {
      throw std::invalid_argument("a tensor's extents are 0 to 2147483647");
    }
    tensor.shapes[i] = static_cast<uint32_t>(extent);
    tensor.strides[i] = stride;
    if (__builtin_mul_overflow(stride, extent, &stride)) {
      throw std::invalid_argument("the tensor has too many elements");
    }
  }
  tensor.extent = stride;
  if (static_cast<uint64_t>(stride) > bytes / element) {
    throw std::invalid_argument("the tensor's shape needs more bytes than its memory has");
  }
  return tensor;
}

Program::Program(const std::vector<KernelFile>& kernels, const std::string& orchestration,
                 RuntimeKind kind, int32_t tensor_count, int32_t scalar_count)
    : kind_(kind), tensor_count_(tensor_count), scalar_count_(scalar_count) {
  libraries_.reserve(kernels.size() + 1);
  for (const KernelFile& file : kernels) {
    for (const KernelFunction& known : kernels_) {
      if (known.func_id == file.func_id) {
        throw LoadError("two kernels have the id " + std::to_string(file.func_id));
      }
    }
    const Library& library = libraries_.emplace_back(file.path);
    auto* entry = reinterpret_cast<void (*)(int64_t*)>(library.symbol("kernel_entry"));
    kernels_.push_back(KernelFunction{entry, file.func_id, file.core});
  }

  const Library& library = libraries_.emplace_back(orchestration);
  auto* bind = reinterpret_cast<uint32_t (*)(uint32_t)>(library.symbol("framework_bind_runtime"));
  if (bind(kAbiVersion) != kAbiVersion) {
    throw LoadError(orchestration + " was compiled for another version of the runtime");
  }
  auto* config = reinterpret_cast<PTO2OrchestrationConfig (*)(const ChipTaskArgs&)>(
      library.symbol("aicpu_orchestration_config"));
  const int32_t expected = config(ChipTaskArgs(nullptr, 0, nullptr, 0)).expected_arg_count;
  if (expected != tensor_count + scalar_count) {
    throw LoadError(orchestration + " takes " + std::to_string(expected) + " arguments, not " +
                    std::to_string(tensor_count) + " tensors and " + std::to_string(scalar_count) +
                    " scalars");
  }
  entry_ =
      reinterpret_cast<void (*)(const ChipTaskArgs&)>(library.symbol("aicpu_orchestration_entry"));
}

void Program::run(CorePool& cores, const ChipTensor* tensors, const uint64_t* scalars, Poll poll,
                  RunRecord* record) const {
  const ChipTaskArgs args(tensors, tensor_count_, scalars, scalar_count_);
  execute_run(cores, kind_, kernels_, entry_, args, poll, record);
}

}  // namespace pypto_rt
