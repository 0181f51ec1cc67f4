#include "run.h"

#include <algorithm>
#include <new>

#include "run_calls.h"

namespace pypto_rt {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);
constexpr int64_t kGraphLimit = 131072;  // tasks of a host_build_graph run

FaultReport runtime_fault(const char* op, std::string message) {
  FaultReport report;
  report.code = FaultCode::Abi;
  report.op = op;
  report.message = std::move(message);
  return report;
}

}  // namespace

size_t Parts::of(CoreType type) const noexcept {
  return static_cast<size_t>(
      std::count_if(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count),
                    [&](const Part& part) { return part.kernel->core == type; }));
}

Part Parts::at(CoreType type, size_t n) const noexcept {
  size_t i = 0;
  while (list[i].kernel->core != type || n-- > 0) ++i;
  return list[i];
}

Run::Run(CorePool& pool, RuntimeKind kind, const std::vector<KernelFunction>& kernels, Poll poll,
         CoreStackHeader& header, RunRecord* record)
    : pool_(pool),
      kernels_(kernels),
      poll_(poll),
      header_(header),
      record_(record),
      building_(kind == RuntimeKind::HostBuildGraph),
      last_poll_(std::chrono::steady_clock::now()),
      allocations_(pool.options.heap_bytes) {}

void Run::execute(void (*entry)(const ChipTaskArgs&), const ChipTaskArgs& args) {
  OrchestrationContext context{&kRunCalls, this, nullptr};
  header_.orchestration = &context;
  try {
    entry(args);
  } catch (...) {
    FaultReport report =
        orchestration_fault("orchestration", "the orchestration threw a C++ exception");
    report.code = FaultCode::Exception;
    Lock lock(pool_.mutex);
    fail(lock, std::move(report));
  }
  header_.orchestration = nullptr;

  Lock lock(pool_.mutex);
  if (building_) release_graph(lock);
  while (outstanding_ > 0) advance(lock);
  if (record_ != nullptr) record_->ended();
  lock.unlock();
  if (interrupted_) throw Interrupted();
  if (fault_) throw KernelFault(std::move(*fault_));
}

void Run::release_graph(Lock& lock) {
  building_ = false;
  if (ended_early_) {  // nothing has started
    outstanding_ = 0;
    return;
  }
  std::vector<Task*> ready;
  for (Task& task : tasks_) {
    if (task.waits_for == 0 && !task.done) ready.push_back(&task);
  }
  pass_empty(ready);
  pool_.make_ready(lock, ready.data(), ready.size(), pool_.options.caller_helps ? 1 : 0);
}

const KernelFunction* Run::find_kernel(CoreType core, int32_t func_id) {
  for (const KernelFunction& kernel : kernels_) {
    if (kernel.func_id != func_id) continue;
    if (kernel.core == core) return &kernel;
    report_fatal("submit", "a kernel was submitted to another core type than it was compiled for");
    return nullptr;
  }
  const std::string message = "the program has no kernel " + std::to_string(func_id);
  report_fatal("submit", message.c_str());
  return nullptr;
}

Parts Run::find_parts(const MixedKernels& kernels) {
  struct Slot {
    CoreType core;
    int32_t func_id;
    uint32_t sub_block_id;
  };
  Parts parts;
  for (const Slot& slot :
       {Slot{CoreType::AIC, kernels.aic, 0}, Slot{CoreType::AIV, kernels.aiv0, 0},
        Slot{CoreType::AIV, kernels.aiv1, 1}}) {
    if (slot.func_id < 0) continue;
    const KernelFunction* kernel = find_kernel(slot.core, slot.func_id);
    if (kernel == nullptr) return {};
    parts.list[parts.count++] = Part{kernel, slot.sub_block_id};
  }
  if (parts.count == 0) report_fatal("submit", "a task has no kernel");
  return parts;
}

bool Run::check_arguments(const CoreTaskArgs& args) {
  if (args.tensor_after_scalar()) {
    report_fatal("submit", "a task's tensors must be added before its scalars");
    return false;
  }
  if (args.tensor_count() > kMaxKernelTensors || args.scalar_count() > kMaxKernelScalars) {
    const std::string message = "a task has " + std::to_string(args.tensor_count()) +
                                " tensors and " + std::to_string(args.scalar_count()) +
                                " scalars; the limits are 32 and 16";
    report_fatal("submit", message.c_str());
    return false;
  }
  if (args.blocks() < 0 || args.blocks() > INT32_MAX) {
    const std::string message = "a task cannot run in " + std::to_string(args.blocks()) +
                                " blocks; it takes 0 to 2147483647";
    report_fatal("submit", message.c_str());
    return false;
  }
  return true;
}

// Until there is a place for one more task.
void Run::make_room(Lock& lock) {
  if (building_) {
    if (static_cast<int64_t>(tasks_.size()) >= kGraphLimit) {
      fail(lock, orchestration_fault("submit",
                                     "the graph has more than 131072 tasks; use the "
                                     "tensormap_and_ringbuffer runtime"));
    }
    return;
  }
  retire();
  while (!ended_early_ && static_cast<int64_t>(tasks_.size()) >= pool_.options.task_window) {
    advance(lock);
    retire();
  }
}

// Also fills dependencies_. Needs no lock: other threads reach tasks by address, never through
// tasks_, and ids and the tensor map are this thread's.
Task& Run::add_task(const Parts& parts, const CoreTaskArgs& args, int64_t id) {
  dependencies_.clear();
  Task& task = tasks_.emplace_back();
  task.run = this;
  task.id = id;
  task.parts = parts;
  task.blocks = args.blocks();
  task.unfinished = static_cast<int64_t>(parts.count) * task.blocks;
  task.dumps = args.dumps();
  const int64_t group = open_manual_scopes_ > 0 ? manual_group_ : 0;
  for (int32_t i = 0; i < args.tensor_count(); ++i) {
    const ChipTensor& tensor = args.tensor(i);
    task.tensors.push_back(tensor);
    if (args.direction(i) != ArgDirection::In) task.writes |= uint32_t{1} << i;
    tensor_map_.access(id, group, tensor, args.direction(i), first_id_, dependencies_);
    const auto buffer = allocations_.holding(tensor.addr);
    if (buffer != nullptr &&
        std::find(task.buffers.begin(), task.buffers.end(), buffer) == task.buffers.end()) {
      task.buffers.push_back(buffer);
    }
  }
  for (int32_t i = 0; i < args.scalar_count(); ++i) task.scalars.push_back(args.scalar(i));
  for (int32_t i = 0; i < args.dependency_count(); ++i) {
    if (args.dependencies()[i].valid()) dependencies_.push_back(args.dependencies()[i].raw);
  }
  std::sort(dependencies_.begin(), dependencies_.end());
  dependencies_.erase(std::unique(dependencies_.begin(), dependencies_.end()), dependencies_.end());
  return task;
}

int64_t Run::submit(const MixedKernels& kernels, const CoreTaskArgs& args) {
  const Parts parts = find_parts(kernels);
  if (parts.count == 0 || !check_arguments(args)) return -1;

  Lock lock(pool_.mutex);
  make_room(lock);
  if (ended_early_) return -1;
  lock.unlock();
  const int64_t id = first_id_ + static_cast<int64_t>(tasks_.size());
  Task& task = add_task(parts, args, id);
  lock.lock();

  for (const int64_t earlier : dependencies_) {
    if (earlier < first_id_ || earlier >= id) continue;
    Task& producer = tasks_[static_cast<size_t>(earlier - first_id_)];
    if (producer.done) continue;
    producer.successors.push_back(&task);
    ++task.waits_for;
  }
  ++outstanding_;
  if (record_ != nullptr) record_->submitted(task, args, dependencies_, tasks_.size());
  if (!building_ && task.waits_for == 0) {
    std::vector<Task*> ready = {&task};
    pass_empty(ready);
    // The first task is left for the caller, who comes to it when all is submitted or the ring is
    // full; every further one gets a core at once.
    const bool first = pool_.options.caller_helps && outstanding_ == 1;
    pool_.make_ready(lock, ready.data(), ready.size(), first ? 1 : 0);
  }
  return id;
}

void Run::finish(Task& task, std::vector<Task*>& ready) {
  task.done = true;
  if (record_ != nullptr && !ended_early_) record_->finished(task);
  for (Task* successor : task.successors) {
    if (--successor->waits_for == 0) ready.push_back(successor);
  }
  task.successors.clear();
  allocations_.let_go(task.buffers);
  --outstanding_;
}

void Run::pass_empty(std::vector<Task*>& ready) {
  for (size_t i = 0; i < ready.size();) {
    if (ready[i]->blocks > 0) {
      ++i;
      continue;
    }
    Task& empty = *ready[i];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(i));
    finish(empty, ready);
  }
}

void Run::complete(Lock& lock, const Work& work, const Core& core) {
  work.task->unfinished -= work.blocks;
  if (work.task->unfinished > 0) return;
  std::vector<Task*> ready;
  finish(*work.task, ready);
  pass_empty(ready);
  // This thread looks for its next task when it comes back from here: a core for one of its own
  // type, a caller who borrowed the core for any.
  const auto own = std::find_if(ready.begin(), ready.end(), [&](const Task* next) {
    return core.state == Core::State::Borrowed || next->parts.list[0].kernel->core == core.type;
  });
  const bool takes = own != ready.end();
  if (takes) std::iter_swap(ready.begin(), own);
  pool_.make_ready(lock, ready.data(), ready.size(), takes ? 1 : 0);
  if (caller_waits_) changed_.notify_one();
}

void Run::fail(Lock& lock, FaultReport report) {
  if (ended_early_) return;
  ended_early_ = true;
  fault_ = std::move(report);
  pool_.cancel(lock, *this);
}

void Run::retire() {
  while (!tasks_.empty() && tasks_.front().done) {
    tasks_.pop_front();
    ++first_id_;
  }
}

void Run::advance(Lock& lock) {
  if (!pool_.options.caller_helps || !pool_.help(lock, *this, header_)) {
    caller_waits_ = true;
    changed_.wait_for(lock, kPollInterval);
    caller_waits_ = false;
  }
  poll(lock);
}

void Run::poll(Lock& lock) {
  if (poll_.interrupted == nullptr || interrupted_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_poll_ < kPollInterval) return;
  last_poll_ = now;
  lock.unlock();
  const bool interrupted = poll_.interrupted(poll_.context);
  lock.lock();
  if (interrupted) {
    interrupted_ = true;
    ended_early_ = true;
    pool_.cancel(lock, *this);
  }
}

bool Run::poll_from_kernel() {
  Lock lock(pool_.mutex);
  poll(lock);
  return ended_early_;
}

bool Run::alloc(const TensorCreateInfo* infos, int32_t count, ChipTensor* tensors) {
  for (int32_t i = 0; i < count; ++i) {
    const auto needed = describe(infos[i], pool_.core_count(), tensors[i]);
    if (!needed || *needed > static_cast<uint64_t>(pool_.options.heap_bytes)) {
      report_fatal("create_tensor", "a tensor is larger than the run's heap");
      return false;
    }
    const auto bytes = static_cast<int64_t>(*needed);

    Lock lock(pool_.mutex);
    while (!ended_early_ && !building_ && outstanding_ > 0 && !allocations_.fit(bytes)) {
      advance(lock);
    }
    if (ended_early_) return false;
    if (!allocations_.fit(bytes)) {
      fail(lock, orchestration_fault("create_tensor",
                                     "the tensors of the open scopes do not fit the run's heap"));
      return false;
    }
    allocations_.reserve(bytes);
    if (record_ != nullptr) record_->allocated(bytes, allocations_.bytes());
    lock.unlock();
    try {
      tensors[i].addr = allocations_.make(*needed, open_scopes_);
    } catch (const std::bad_alloc&) {
      report_fatal("create_tensor", "the host is out of memory");
      return false;
    }
  }
  return true;
}

void Run::scope_begin() {
  ++open_scopes_;
  if (record_ != nullptr) record_->scope_begin();
}

void Run::scope_end() {
  if (record_ != nullptr) record_->scope_end();
  const Lock lock(pool_.mutex);
  allocations_.end_scope(open_scopes_, tensor_map_);
  --open_scopes_;
}

void Run::manual_begin() {
  if (open_manual_scopes_++ == 0) ++manual_group_;
}

void Run::manual_end() { --open_manual_scopes_; }

void Run::report_fatal(const char* op, const char* message) {
  Lock lock(pool_.mutex);
  fail(lock, orchestration_fault(op, message));
}

// At the statement that the orchestration has come to.
FaultReport Run::orchestration_fault(const char* op, std::string message) const {
  FaultReport report = runtime_fault(op, std::move(message));
  const auto* context = static_cast<const OrchestrationContext*>(header_.orchestration);
  if (context != nullptr && context->position != nullptr) {
    report.unit = context->position->unit;
    report.line = context->position->line;
    report.column = context->position->column;
  }
  return report;
}

bool Run::is_fatal() {
  const Lock lock(pool_.mutex);
  return ended_early_;
}

}  // namespace pypto_rt
