#include "core_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "run.h"

namespace pypto_rt {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kScratchBytes = uint64_t{8} << 20;
constexpr uint32_t kPollInterval = 2048;  // instructions
constexpr int64_t kLongestTake = 64;      // blocks

constexpr uint64_t round_up(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Called between two instructions of a kernel that runs on the caller's thread.
void poll_caller(CoreContext* context) {
  auto* core = reinterpret_cast<Core*>(context);
  context->poll_credit = kPollInterval;
  ++core->polls;
  if (core->run->poll_from_kernel()) {
    __atomic_store_n(&context->cancelled, 1, __ATOMIC_RELAXED);
  }
}

// A kernel may change its arguments, so each block gets them anew. The tensors are the context's.
void run_block(const KernelFunction& kernel, const Task& task, uint32_t sub_block_id, int64_t block,
               CoreContext& context) {
  int64_t args[kKernelArgSlots];
  const size_t tensors = task.tensors.size();
  for (size_t i = 0; i < tensors; ++i) {
    args[i] = reinterpret_cast<int64_t>(context.tensors[i]);
  }
  for (size_t i = 0; i < task.scalars.size(); ++i) {
    args[tensors + i] = static_cast<int64_t>(task.scalars[i]);
  }
  LocalContext local{static_cast<uint32_t>(block), static_cast<uint32_t>(task.blocks), &context,
                     nullptr};
  GlobalContext global{sub_block_id, 0};
  args[kLocalContextSlot] = reinterpret_cast<int64_t>(&local);
  args[kGlobalContextSlot] = reinterpret_cast<int64_t>(&global);
  kernel.entry(args);
}

// `cpu_ns` and `instructions` count from here until the span has ended.
RecordedSpan begin_span(const RunRecord& record, Core& core, const Work& work) {
  core.polls = 0;
  RecordedSpan span{};
  span.task = work.task->id;
  span.func_id = work.part.kernel->func_id;
  span.core = core.type;
  span.core_index = core.index;
  span.first_block = work.first_block;
  span.blocks = work.blocks;
  span.instructions = core.context.poll_credit;
  span.cpu_ns = thread_cpu_ns();
  span.start_ns = record.now();
  return span;
}

void end_span(const RunRecord& record, const Core& core, RecordedSpan& span) {
  span.end_ns = record.now();
  span.cpu_ns = thread_cpu_ns() - span.cpu_ns;
  // The credit falls by one an instruction, and is filled up at each poll.
  const auto spent = static_cast<uint32_t>(span.instructions) - core.context.poll_credit;
  span.instructions = core.polls == 0 ? spent
                                      : span.instructions + uint64_t{kPollInterval} * core.polls -
                                            core.context.poll_credit;
}

}  // namespace

RegionLimits limits_of(Arch arch) noexcept {
  constexpr uint64_t kKiB = 1024;
  switch (arch) {
    case Arch::A2A3:
      return {{192 * kKiB, 512 * kKiB, 64 * kKiB, 64 * kKiB, 128 * kKiB, 1 * kKiB}};
    case Arch::A5:
      return {{256 * kKiB, 512 * kKiB, 64 * kKiB, 64 * kKiB, 256 * kKiB, 4 * kKiB}};
  }
  return {};
}

Core::Core(const ChipOptions& options, CoreType core_type, int32_t core_index)
    : context{}, fault{}, type(core_type), index(core_index) {
  const RegionLimits limits = limits_of(options.arch);
  memory_bytes_ = kScratchBytes;
  for (const uint64_t bytes : limits.bytes) memory_bytes_ += round_up(bytes);
  memory_ = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  auto* next = static_cast<unsigned char*>(memory_);
  for (int i = 0; i < kRegionCount; ++i) {
    context.regions[i] = {next, limits.bytes[i]};
    next += round_up(limits.bytes[i]);
  }
  context.scratch = {next, kScratchBytes};
  context.abi_version = kAbiVersion;
  context.arch = options.arch;
  context.fault = &fault;
  stack.header().core = &context;
}

Core::~Core() { munmap(memory_, memory_bytes_); }

CorePool::CorePool(const ChipOptions& chip_options) : options(chip_options) {
  for (int32_t i = 0; i < options.clusters; ++i) {
    cores_[static_cast<int>(CoreType::AIC)].push_back(
        std::make_unique<Core>(options, CoreType::AIC, i));
    for (int k = 0; k < 2; ++k) {
      cores_[static_cast<int>(CoreType::AIV)].push_back(
          std::make_unique<Core>(options, CoreType::AIV, 2 * i + k));
    }
  }
}

CorePool::~CorePool() {
  {
    const Lock lock(mutex);
    stopping_ = true;
    for (auto& group : cores_) {
      for (auto& core : group) core->wake.notify_one();
    }
  }
  for (auto& group : cores_) {
    for (auto& core : group) {
      if (core->state != Core::State::Unstarted) pthread_join(core->thread, nullptr);
    }
  }
}

std::unique_ptr<CoreStack> CorePool::acquire_stack() {
  {
    const Lock lock(mutex);
    if (!idle_stacks_.empty()) {
      auto stack = std::move(idle_stacks_.back());
      idle_stacks_.pop_back();
      return stack;
    }
  }
  return std::make_unique<CoreStack>();
}

void CorePool::release_stack(std::unique_ptr<CoreStack> stack) {
  const Lock lock(mutex);
  idle_stacks_.push_back(std::move(stack));
}

void* CorePool::animate(void* argument) {
  const auto animation = *std::unique_ptr<Animation>(static_cast<Animation*>(argument));
  animation.pool->work(*animation.core);
  return nullptr;
}

// Gives one idle core of the type something to look for. False if a thread could not be started.
bool CorePool::wake_one(CoreType type) {
  for (auto& core : cores_[static_cast<int>(type)]) {
    if (core->state == Core::State::Sleeping) {
      core->state = Core::State::Waking;
      core->wake.notify_one();
      return true;
    }
    if (core->state == Core::State::Unstarted) {
      auto animation = std::make_unique<Animation>(Animation{this, core.get()});
      try {
        core->thread = core->stack.start_thread(animate, animation.get());
      } catch (const std::system_error&) {
        return false;
      }
      animation.release();
      core->state = Core::State::Waking;
      return true;
    }
  }
  return true;  // all are busy and will look again
}

void CorePool::make_ready(Lock& lock, Task* const* tasks, size_t count, size_t taken) {
  for (size_t i = 0; i < count; ++i) {
    Task& task = *tasks[i];
    if (RunRecord* record = task.run->record()) record->ready(task);
    for (const CoreType type : {CoreType::AIC, CoreType::AIV}) {
      const auto parts = static_cast<int64_t>(task.parts.of(type));
      if (parts == 0) continue;
      ready_[static_cast<int>(type)].push_back(Ready{&task, 0});
      const int64_t own = i < taken && task.parts.count == 1 ? 1 : 0;
      const auto cores = static_cast<int64_t>(cores_[static_cast<int>(type)].size());
      for (int64_t k = std::min(parts * task.blocks - own, cores); k > 0; --k) {
        if (wake_one(type)) continue;
        FaultReport report;
        report.code = FaultCode::Abi;
        report.op = "submit";
        report.message = "no thread could be started for a core; the process is out of threads";
        task.run->fail(lock, std::move(report));
        break;
      }
    }
  }
}

Work CorePool::take(CoreType type, std::deque<Ready>::iterator entry) {
  Task& task = *entry->task;
  const auto parts = static_cast<int64_t>(task.parts.of(type));
  const int64_t block = entry->next / parts;
  Work work{&task, task.parts.at(type, static_cast<size_t>(entry->next % parts)), block, 1};
  // Several blocks at once save locking; fewer towards the end, so that all cores end together. The
  // kernels of one block may wait for each other, so each core takes one of them.
  if (task.run->ended_early()) {  // nothing runs any more, so all go at once
    work.blocks = parts * task.blocks - entry->next;
  } else if (task.parts.count == 1) {
    const auto cores = static_cast<int64_t>(cores_[static_cast<int>(type)].size());
    work.blocks = std::clamp<int64_t>((task.blocks - block) / (4 * cores), 1, kLongestTake);
  }
  entry->next += work.blocks;
  if (entry->next == parts * task.blocks) ready_[static_cast<int>(type)].erase(entry);
  return work;
}

void CorePool::work(Core& core) {
  Lock lock(mutex);
  auto& queue = ready_[static_cast<int>(core.type)];
  while (!stopping_) {
    if (!queue.empty()) {
      const Work work = take(core.type, queue.begin());
      core.state = Core::State::Running;
      core.context.poll = nullptr;
      execute(lock, core, work);
      continue;
    }
    core.state = Core::State::Sleeping;
    core.wake.wait(lock, [&] { return core.state == Core::State::Waking || stopping_; });
  }
}

bool CorePool::help(Lock& lock, Run& run, CoreStackHeader& header) {
  for (int type = 0; type < kCoreTypes; ++type) {
    auto& queue = ready_[type];
    const auto own = std::find_if(queue.begin(), queue.end(),
                                  [&](const Ready& ready) { return ready.task->run == &run; });
    if (own == queue.end()) continue;
    const auto idle = std::find_if(cores_[type].begin(), cores_[type].end(), [](const auto& core) {
      return core->state == Core::State::Sleeping || core->state == Core::State::Unstarted;
    });
    if (idle == cores_[type].end()) continue;
    Core& core = **idle;
    const Work work = take(static_cast<CoreType>(type), own);
    const Core::State before = core.state;
    core.state = Core::State::Borrowed;
    core.context.poll = poll_caller;
    core.context.poll_credit = kPollInterval;
    header.core = &core.context;
    execute(lock, core, work);
    header.core = nullptr;
    core.state = before;
    // Nobody could wake it meanwhile; what this caller will not take itself needs a core.
    const bool taken =
        queue.size() == 1 && queue.front().task->run == &run && queue.front().task->blocks == 1;
    if (!queue.empty() && !taken) wake_one(core.type);
    return true;
  }
  return false;
}

void CorePool::execute(Lock& lock, Core& core, const Work& work) {
  const Task& task = *work.task;
  const KernelFunction& kernel = *work.part.kernel;
  Run& run = *task.run;
  if (!run.ended_early()) {
    core.run = &run;
    core.fault.code = FaultCode::None;
    __atomic_store_n(&core.context.cancelled, 0, __ATOMIC_RELAXED);
    lock.unlock();

    RunRecord* const record = run.record();
    RecordedSpan span{};
    if (record != nullptr) span = begin_span(*record, core, work);
    const ChipTensor* tensors[kMaxKernelTensors];
    ChipTensor own[kMaxKernelTensors];
    for (size_t i = 0; i < task.tensors.size(); ++i) {
      tensors[i] = &task.tensors[i];
      if (tensors[i]->core_bytes == 0) continue;
      own[i] = *tensors[i];
      own[i].addr += own[i].core_bytes * static_cast<uint64_t>(number_of(core));
      tensors[i] = &own[i];
    }
    core.context.tensors = tensors;
    core.context.tensor_count = static_cast<int32_t>(task.tensors.size());
    for (int64_t block = work.first_block; block < work.first_block + work.blocks; ++block) {
      run_block(kernel, task, work.part.sub_block_id, block, core.context);
      if (core.fault.code != FaultCode::None) break;
      if (__atomic_load_n(&core.context.cancelled, __ATOMIC_RELAXED) != 0) break;
    }
    core.context.position = nullptr;
    if (record != nullptr) end_span(*record, core, span);

    lock.lock();
    core.run = nullptr;
    if (record != nullptr) record->span(span);
    if (core.fault.code != FaultCode::None && core.fault.code != FaultCode::Cancelled) {
      run.fail(lock, FaultReport{core.fault.code, kernel.func_id, core.fault.op, core.fault.message,
                                 core.fault.unit, core.fault.line, core.fault.column,
                                 core.fault.pto_line});
    }
  }
  run.complete(lock, work, core);
}

int64_t CorePool::number_of(const Core& core) const noexcept {
  return core.type == CoreType::AIC ? core.index : int64_t{options.clusters} + core.index;
}

void CorePool::cancel(const Lock&, const Run& run) noexcept {
  for (auto& group : cores_) {
    for (auto& core : group) {
      if (core->run == &run) __atomic_store_n(&core->context.cancelled, 1, __ATOMIC_RELAXED);
    }
  }
}

}  // namespace pypto_rt
