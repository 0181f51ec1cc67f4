// One execution of a program: its tasks, their order, its memory and its end.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "allocations.h"
#include "core_pool.h"
#include "faults.h"
#include "run_record.h"
#include "tensor_map.h"

namespace pypto_rt {

enum class RuntimeKind {
  HostBuildGraph,          // the whole graph is built, then scheduled
  TensormapAndRingbuffer,  // tasks are scheduled while they are submitted, in a ring
};

struct KernelFunction {
  void (*entry)(int64_t* args);
  int32_t func_id;
  CoreType core;
};

// What a caller is asked while it waits. True: the run shall end.
struct Poll {
  bool (*interrupted)(void* context) = nullptr;
  void* context = nullptr;
};

// The parts of one task, at most one for each core of a cluster.
struct Parts {
  std::array<Part, 3> list{};
  size_t count = 0;

  // How many run on cores of the type, and the n-th of them.
  size_t of(CoreType type) const noexcept;
  Part at(CoreType type, size_t n) const noexcept;
};

struct Task {
  Run* run = nullptr;
  int64_t id = 0;
  Parts parts;
  int64_t blocks = 1;
  int64_t unfinished = 0;  // blocks of all parts
  uint32_t dumps = 0;      // a bit for each tensor to show where arguments are dumped
  int32_t waits_for = 0;
  bool done = false;
  std::vector<Task*> successors;
  std::vector<ChipTensor> tensors;
  uint32_t writes = 0;  // bit i: tensors[i] may be written
  std::vector<uint64_t> scalars;
  std::vector<std::shared_ptr<Buffer>> buffers;  // kept alive until it has completed
};

// Methods without a Lock are called by the submitting thread only, methods with one by any.
class Run {
 public:
  // A `record` is written as long as the run lasts.
  Run(CorePool& pool, RuntimeKind kind, const std::vector<KernelFunction>& kernels, Poll poll,
      CoreStackHeader& header, RunRecord* record = nullptr);

  // Runs the orchestration, waits for all tasks, and throws KernelFault or Interrupted if that is
  // how it ended. Must be called on the stack that the header belongs to.
  void execute(void (*entry)(const ChipTaskArgs&), const ChipTaskArgs& args);

  using Lock = CorePool::Lock;

  // The orchestration interface.
  int64_t submit(const MixedKernels& kernels, const CoreTaskArgs& args);
  bool alloc(const TensorCreateInfo* infos, int32_t count, ChipTensor* tensors);
  void scope_begin();
  void scope_end();
  void manual_begin();
  void manual_end();
  void report_fatal(const char* op, const char* message);
  bool is_fatal();
  // Waits for the tasks that use an element. Null if the run has ended or cannot go on.
  void* element(const ChipTensor& tensor, const int64_t* index, int32_t count, bool writes);
  int32_t cluster_count() const noexcept { return pool_.options.clusters; }

  // The first fault counts; it ends the run early.
  void fail(Lock& lock, FaultReport report);
  void complete(Lock& lock, const Work& work, const Core& core);
  bool ended_early() const noexcept { return ended_early_; }
  bool poll_from_kernel();
  RunRecord* record() const noexcept { return record_; }

 private:
  FaultReport orchestration_fault(const char* op, std::string message) const;
  const KernelFunction* find_kernel(CoreType core, int32_t func_id);
  // The parts of a task, as many as there are kernels; none after a fault.
  Parts find_parts(const MixedKernels& kernels);
  bool check_arguments(const CoreTaskArgs& args);
  // Does or waits for something that brings the run forward, and polls now and then.
  void advance(Lock& lock);
  void poll(Lock& lock);
  void release_graph(Lock& lock);
  void make_room(Lock& lock);
  Task& add_task(const Parts& parts, const CoreTaskArgs& args, int64_t id);
  void retire();
  // Marks the task as done; its successors that wait for nothing else are added to `ready`.
  void finish(Task& task, std::vector<Task*>& ready);
  // Finishes the tasks without blocks among those that are ready, and whatever that makes ready.
  void pass_empty(std::vector<Task*>& ready);
  // False if the run has ended, or if what would have to be waited for cannot have started.
  bool await_data(const ChipTensor& window, bool writes);
  // The tasks in the ring that may write a window, or, for `writes`, touch it. Looks at the tasks'
  // own tensors: the tensor map knows nothing of those that take part in no dependency.
  void find_users(const ChipTensor& window, bool writes, std::vector<int64_t>& tasks) const;

  CorePool& pool_;
  const std::vector<KernelFunction>& kernels_;
  const Poll poll_;
  CoreStackHeader& header_;
  RunRecord* const record_;

  std::deque<Task> tasks_;  // [first_id_, first_id_ + size): those that may not have completed
  int64_t first_id_ = 0;
  int64_t outstanding_ = 0;
  bool building_;  // host_build_graph before its graph is complete
  bool ended_early_ = false;
  bool interrupted_ = false;
  bool caller_waits_ = false;
  std::optional<FaultReport> fault_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point last_poll_;

  TensorMap tensor_map_;
  Allocations allocations_;
  size_t open_scopes_ = 0;
  size_t open_manual_scopes_ = 0;
  int64_t manual_group_ = 0;  // of the outermost manual scope that was opened last
  std::vector<int64_t> dependencies_;
};

}  // namespace pypto_rt
