// A loaded program: an orchestration and the kernels it submits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chip.h"
#include "library.h"
#include "run.h"

namespace pypto_rt {

struct KernelFile {
  int32_t func_id;
  CoreType core;
  std::string path;
};

// A dense tensor in row order; sizes in elements, `bytes` is what the memory holds.
ChipTensor dense_tensor(uint64_t addr, uint64_t bytes, const int64_t* shape, size_t dims,
                        DType dtype);  // std::invalid_argument

// Immutable; runs may overlap.
class Program {
 public:
  // Loads everything and checks that the orchestration takes these arguments. LoadError.
  Program(const std::vector<KernelFile>& kernels, const std::string& orchestration,
          RuntimeKind kind, int32_t tensor_count, int32_t scalar_count);

  int32_t tensor_count() const noexcept { return tensor_count_; }
  int32_t scalar_count() const noexcept { return scalar_count_; }

  // Returns when every task has completed. Throws KernelFault, Interrupted.
  // A `record` is written meanwhile.
  void run(CorePool& cores, const ChipTensor* tensors, const uint64_t* scalars, Poll poll,
           RunRecord* record = nullptr) const;

 private:
  std::vector<Library> libraries_;
  std::vector<KernelFunction> kernels_;
  void (*entry_)(const ChipTaskArgs&) = nullptr;
  RuntimeKind kind_;
  int32_t tensor_count_;
  int32_t scalar_count_;
};

}  // namespace pypto_rt
