// The cores of a simulated chip and the threads that animate them.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core_stack.h"
#include "pypto_rt/kernel_abi.h"
#include "pypto_rt/pto_orchestration_api.h"

namespace pypto_rt {

class Run;
struct KernelFunction;
struct Task;

// What one core does of a task: one of its kernels.
struct Part {
  const KernelFunction* kernel;
  uint32_t sub_block_id;
};

// Some blocks of one part, for one core to run one after the other; all units that are left of a
// task where its run has ended.
struct Work {
  Task* task;
  Part part;
  int64_t first_block;
  int64_t blocks;
};

// A ready task as the cores of one type see it. Its units are its blocks, each with all parts for
// that type side by side; `next` is the first that no core has taken.
struct Ready {
  Task* task;
  int64_t next;
};

inline constexpr int kCoreTypes = 2;  // indexed by CoreType

// On-chip bytes of one core, by Region.
struct RegionLimits {
  uint64_t bytes[kRegionCount];
};
RegionLimits limits_of(Arch arch) noexcept;

struct ChipOptions {
  Arch arch = Arch::A2A3;
  // One AIC and two AIV cores each.
  int32_t clusters = 2;
  // Tasks that the ring of a tensormap_and_ringbuffer run holds.
  int64_t task_window = 16384;
  // Bytes that a run's own tensors may take before submission waits for tasks to release some.
  int64_t heap_bytes = int64_t{1} << 30;
  // The calling thread borrows idle cores while it would only wait. Saves thread switches; has no
  // effect on results.
  bool caller_helps = true;
};

// One logical core. Its thread starts when there is first more to do than the caller can.
class Core {
 public:
  enum class State { Unstarted, Sleeping, Waking, Running, Borrowed };

  Core(const ChipOptions& options, CoreType type, int32_t index);  // std::bad_alloc
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  CoreContext context;  // first: poll() finds the core from it
  FaultRecord fault;
  const CoreType type;
  const int32_t index;  // among the cores of its type
  uint32_t polls = 0;   // how often a kernel has polled since its work began
  State state = State::Unstarted;
  Run* run = nullptr;  // whose task it executes
  std::condition_variable wake;
  CoreStack stack;
  pthread_t thread{};

 private:
  void* memory_;
  size_t memory_bytes_;
};

// All state of the pool, and of the runs on it, is guarded by `mutex`.
class CorePool {
 public:
  explicit CorePool(const ChipOptions& options);
  ~CorePool();
  CorePool(const CorePool&) = delete;
  CorePool& operator=(const CorePool&) = delete;

  using Lock = std::unique_lock<std::mutex>;

  // Queues tasks whose dependencies are met, which have a block at least, and wakes cores for all
  // but one block of the first `taken`, which the calling thread will see to itself, unless they
  // need several cores. Fails the run of a task for which no core can be started.
  void make_ready(Lock& lock, Task* const* tasks, size_t count, size_t taken);

  // Executes one ready task of `run` on the calling thread, which must be on a CoreStack, if a core
  // of the right type is idle.
  bool help(Lock& lock, Run& run, CoreStackHeader& header);

  // How many cores there are, of both types.
  int64_t core_count() const noexcept { return int64_t{3} * options.clusters; }

  // Tells the cores that execute tasks of `run` that it has ended.
  void cancel(const Lock& lock, const Run& run) noexcept;

  // A stack for a caller; goes back with release_stack.
  std::unique_ptr<CoreStack> acquire_stack();
  void release_stack(std::unique_ptr<CoreStack> stack);

  const ChipOptions options;
  std::mutex mutex;

 private:
  struct Animation {
    CorePool* pool;
    Core* core;
  };

  static void* animate(void* animation);
  void work(Core& core);
  // Takes blocks of the entry for one core, and the entry from its queue when none is left.
  Work take(CoreType type, std::deque<Ready>::iterator entry);
  void execute(Lock& lock, Core& core, const Work& work);
  // A number below core_count() that no other core has.
  int64_t number_of(const Core& core) const noexcept;
  bool wake_one(CoreType type);

  std::deque<Ready> ready_[kCoreTypes];
  std::vector<std::unique_ptr<Core>> cores_[kCoreTypes];
  std::vector<std::unique_ptr<CoreStack>> idle_stacks_;
  bool stopping_ = false;
};

}  // namespace pypto_rt
