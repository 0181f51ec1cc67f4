// What orchestration code sees of the runtime.
//
// An orchestration library defines aicpu_orchestration_config and aicpu_orchestration_entry and is
// linked with orchestration_support.cpp. Its code runs on an orchestrator's stack (see
// CoreStackHeader), from which every call below finds its run: there is no global state, so one
// library serves concurrent runs. No call throws. After a fatal error calls do nothing and return
// empty values; the run ends with the first error.
#ifndef PYPTO_RT_PTO_ORCHESTRATION_API_H_
#define PYPTO_RT_PTO_ORCHESTRATION_API_H_

#include "pypto_rt/kernel_abi.h"
#include "pypto_rt/orchestration_calls.h"
#include "pypto_rt/tensor_views.h"

namespace pypto_rt {

enum class CoreType : int32_t { AIC = 0, AIV = 1 };
enum class ArgDirection : uint8_t { Scalar = 0, In = 1, Out = 2, InOut = 3, NoDep = 4 };

// Names a submitted task of the current run; negative: none.
struct TaskId {
  int64_t raw = -1;
  constexpr bool valid() const noexcept { return raw >= 0; }
};

// The kernels of one task, by id; negative: none. Each runs on a core of its own, all with the same
// arguments and in no order among each other; the task is complete when all are.
struct MixedKernels {
  int32_t aic = -1;
  int32_t aiv0 = -1;
  int32_t aiv1 = -1;
};

// A tensor the run shall allocate. Contents are undefined until a task writes them. With `per_core`
// every core has a copy, so that the blocks of one task do not meet in it; what a block leaves
// there, no other task or block may count on.
struct TensorCreateInfo {
  uint32_t shapes[kMaxDims];
  uint32_t ndims;
  DType dtype;
  bool manual_dep;
  bool per_core;

  TensorCreateInfo() = default;
  TensorCreateInfo(const uint32_t* shape, uint32_t dims, DType type, bool manual = false,
                   bool each_core = false) noexcept
      : shapes{}, ndims(dims), dtype(type), manual_dep(manual), per_core(each_core) {
    for (uint32_t i = 0; i < dims && i < kMaxDims; ++i) shapes[i] = shape[i];
  }
};

// Arguments of one task: tensors first, then scalars.
class CoreTaskArgs {
 public:
  CoreTaskArgs() noexcept {}
  void add_input(const ChipTensor& tensor) noexcept { add(tensor, ArgDirection::In); }
  void add_output(const ChipTensor& tensor) noexcept { add(tensor, ArgDirection::Out); }
  void add_inout(const ChipTensor& tensor) noexcept { add(tensor, ArgDirection::InOut); }
  // Takes part in no dependency.
  void add_no_dep(const ChipTensor& tensor) noexcept { add(tensor, ArgDirection::NoDep); }
  template <class T>
  void add_scalar(T value) noexcept {
    if (scalar_count_ < kMaxKernelScalars) scalars_[scalar_count_] = to_u64(value);
    ++scalar_count_;
  }
  // Tasks that must complete first, besides those found by overlap. The array must live until the
  // submit; invalid ids are skipped.
  void set_dependencies(const TaskId* tasks, int32_t count) noexcept {
    dependencies_ = tasks;
    dependency_count_ = count;
  }

  // Each kernel runs once for each block, 0 to blocks - 1, in any order and at the same time. The
  // task is complete when all have run, and at once if there is none.
  void set_blocks(int64_t blocks) noexcept { blocks_ = blocks; }
  // Names a tensor by its position as one to show where arguments are dumped.
  // A task of more tensors is refused when it is submitted.
  void add_dump(int32_t tensor) noexcept {
    if (tensor < 32) dumps_ |= uint32_t{1} << tensor;
  }

  int64_t blocks() const noexcept { return blocks_; }
  uint32_t dumps() const noexcept { return dumps_; }
  int32_t tensor_count() const noexcept { return tensor_count_; }
  int32_t scalar_count() const noexcept { return scalar_count_; }
  bool tensor_after_scalar() const noexcept { return tensor_after_scalar_; }
  const ChipTensor& tensor(int32_t index) const noexcept { return tensors_[index]; }
  ArgDirection direction(int32_t index) const noexcept { return directions_[index]; }
  uint64_t scalar(int32_t index) const noexcept { return scalars_[index]; }
  const TaskId* dependencies() const noexcept { return dependencies_; }
  int32_t dependency_count() const noexcept { return dependency_count_; }

 private:
  void add(const ChipTensor& tensor, ArgDirection direction) noexcept {
    if (scalar_count_ > 0) tensor_after_scalar_ = true;
    if (tensor_count_ < kMaxKernelTensors) {
      tensors_[tensor_count_] = tensor;
      directions_[tensor_count_] = direction;
    }
    ++tensor_count_;  // counted past the limit too: submit refuses and says how many there were
  }

  ChipTensor tensors_[kMaxKernelTensors];
  uint64_t scalars_[kMaxKernelScalars];
  ArgDirection directions_[kMaxKernelTensors];
  int32_t tensor_count_ = 0;
  int32_t scalar_count_ = 0;
  const TaskId* dependencies_ = nullptr;
  int64_t blocks_ = 1;
  uint32_t dumps_ = 0;  // a bit for each tensor
  int32_t dependency_count_ = 0;
  bool tensor_after_scalar_ = false;
};

// The arguments of the whole program, as the caller passed them.
class ChipTaskArgs {
 public:
  class TensorSlot {
   public:
    explicit TensorSlot(const ChipTensor* tensor) noexcept : tensor_(tensor) {}
    const ChipTensor& ref() const noexcept { return *tensor_; }

   private:
    const ChipTensor* tensor_;
  };

  ChipTaskArgs(const ChipTensor* tensors, int32_t tensor_count, const uint64_t* scalars,
               int32_t scalar_count) noexcept
      : tensors_(tensors),
        scalars_(scalars),
        tensor_count_(tensor_count),
        scalar_count_(scalar_count) {}
  TensorSlot tensor(int32_t index) const noexcept { return TensorSlot(tensors_ + index); }
  uint64_t scalar(int32_t index) const noexcept { return scalars_[index]; }
  int32_t tensor_count() const noexcept { return tensor_count_; }
  int32_t scalar_count() const noexcept { return scalar_count_; }

 private:
  const ChipTensor* tensors_;
  const uint64_t* scalars_;
  int32_t tensor_count_;
  int32_t scalar_count_;
};

struct PTO2OrchestrationConfig {
  int32_t expected_arg_count;  // tensors + scalars
};

// Tensors that alloc_tensors made. They belong to the scope that is open, and live until it has
// been left and every task that uses them has completed.
template <int N>
class AllocatedTensors {
 public:
  const ChipTensor& get_ref(int32_t index) const noexcept { return tensors_[index]; }
  ChipTensor* data() noexcept { return tensors_; }

 private:
  ChipTensor tensors_[N];
};

class ScopeGuard {
 public:
  ScopeGuard() noexcept {
    const OrchestrationContext& context = current_orchestration();
    context.calls->scope_begin(context.run);
  }
  ~ScopeGuard() {
    const OrchestrationContext& context = current_orchestration();
    context.calls->scope_end(context.run);
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
};

}  // namespace pypto_rt

using pypto_rt::AllocatedTensors;
using pypto_rt::ChipTaskArgs;
using pypto_rt::CoreTaskArgs;
using pypto_rt::DType;
using pypto_rt::MixedKernels;
using pypto_rt::PTO2OrchestrationConfig;
using pypto_rt::TaskId;
using pypto_rt::TensorCreateInfo;

// Says where the statements that follow came from: the line and column in `unit`.
#define PTO2_AT(unit, line, column)                                                   \
  do {                                                                                \
    static constexpr ::pypto_rt::SourcePosition pto_position_{unit, 0, line, column}; \
    ::pypto_rt::current_orchestration().position = &pto_position_;                    \
  } while (false)

// Opens a scope for the statement that follows: PTO2_SCOPE() { ... }
#define PTO2_SCOPE() if (const ::pypto_rt::ScopeGuard pypto_scope_guard_{}; true)

// Between the two, tasks are not ordered among each other by the tensors they share, only by
// set_dependencies. Tasks outside are ordered against them as always. May be nested: what is inside
// belongs to the outermost.
inline void rt_manual_begin() noexcept {
  const auto& context = pypto_rt::current_orchestration();
  context.calls->manual_begin(context.run);
}
inline void rt_manual_end() noexcept {
  const auto& context = pypto_rt::current_orchestration();
  context.calls->manual_end(context.run);
}

inline TaskId rt_submit_task(const MixedKernels& kernels, const CoreTaskArgs& args) noexcept {
  const auto& context = pypto_rt::current_orchestration();
  return TaskId{context.calls->submit(context.run, &kernels, &args)};
}

inline TaskId rt_submit_aiv_task(int32_t func_id, const CoreTaskArgs& args) noexcept {
  return rt_submit_task(MixedKernels{.aiv0 = func_id}, args);
}

inline TaskId rt_submit_aic_task(int32_t func_id, const CoreTaskArgs& args) noexcept {
  return rt_submit_task(MixedKernels{.aic = func_id}, args);
}

// alloc_tensors(info0, info1, ...).get_ref(i)
template <class... Infos>
inline auto alloc_tensors(const Infos&... infos) noexcept {
  const TensorCreateInfo list[] = {infos...};
  AllocatedTensors<static_cast<int>(sizeof...(Infos))> tensors;
  const auto& context = pypto_rt::current_orchestration();
  context.calls->alloc(context.run, list, static_cast<int32_t>(sizeof...(Infos)), tensors.data());
  return tensors;
}

// The value of one element, by one index for each dimension. Waits for the tasks submitted before
// that write it; 0 after a fatal error. host_build_graph, which starts no task before the
// orchestration ends, has nothing to wait for: there, reading what a task writes is fatal.
template <class T, int N>
inline T get_tensor_data(const ChipTensor& tensor, const int64_t (&index)[N]) noexcept {
  const auto& context = pypto_rt::current_orchestration();
  const void* at = context.calls->element(context.run, &tensor, index, N, false);
  if (at == nullptr) return T{};
  if constexpr (static_cast<T>(2) == static_cast<T>(1)) {  // bool: memory may hold any byte
    return *static_cast<const unsigned char*>(at) != 0;
  } else {
    T value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
  }
}

// Writes one element. Waits for the tasks submitted before that touch it; those submitted later see
// the new value. Under host_build_graph, writing what a task touches is fatal.
template <class T, int N>
inline void set_tensor_data(const ChipTensor& tensor, const int64_t (&index)[N], T value) noexcept {
  const auto& context = pypto_rt::current_orchestration();
  void* at = context.calls->element(context.run, &tensor, index, N, true);
  if (at != nullptr) __builtin_memcpy(at, &value, sizeof value);
}

// Gives every element of a tensor that was just made, and that no task knows, a value.
template <class T>
inline void rt_fill(const ChipTensor& tensor, T value) noexcept {
  if (tensor.addr == 0) return;  // there was no memory, which has ended the run
  T* elements = tensor_data<T>(&tensor);
  for (int64_t i = 0; i < tensor.extent; ++i) elements[i] = value;
}

// Ends the run with this message; the first one counts.
inline void rt_report_fatal(const char* message) noexcept {
  const auto& context = pypto_rt::current_orchestration();
  context.calls->report_fatal(context.run, "orchestration", message);
}

inline bool rt_is_fatal() noexcept {
  const auto& context = pypto_rt::current_orchestration();
  return context.calls->is_fatal(context.run);
}

inline int32_t rt_available_cluster_count() noexcept {
  const auto& context = pypto_rt::current_orchestration();
  return context.calls->cluster_count(context.run);
}

#define PYPTO_ORCHESTRATION_EXPORT __attribute__((visibility("default")))

extern "C" PYPTO_ORCHESTRATION_EXPORT PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs& args);
extern "C" PYPTO_ORCHESTRATION_EXPORT void aicpu_orchestration_entry(const ChipTaskArgs& args);
// Returns the interface version the library was compiled for, which must be the runtime's.
extern "C" PYPTO_ORCHESTRATION_EXPORT uint32_t framework_bind_runtime(uint32_t runtime_abi_version);

#endif  // PYPTO_RT_PTO_ORCHESTRATION_API_H_
