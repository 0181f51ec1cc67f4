// Tasks of several blocks and scopes without derived order, under both runtimes, with and without
// the caller's help, with one cluster and with several.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "../src/execution.h"
#include "check.h"

using namespace pypto_rt;

namespace {

constexpr int64_t kMost = INT32_MAX;

ChipTensor dense(std::vector<int32_t>& data) {
  ChipTensor tensor{};
  tensor.addr = reinterpret_cast<uint64_t>(data.data());
  tensor.size = data.size() * sizeof(int32_t);
  tensor.ndims = 1;
  tensor.dtype = DType::INT32;
  tensor.is_contiguous = 1;
  tensor.shapes[0] = static_cast<uint32_t>(data.size());
  tensor.strides[0] = 1;
  return tensor;
}

const LocalContext& local(const int64_t* args) { return *local_context(args); }

// args: x. Each block adds one to an element of its own.
void kernel_count(int64_t* args) {
  auto* x = reinterpret_cast<ChipTensor*>(args[0]);
  const LocalContext& place = local(args);
  tensor_data<int32_t>(x)[place.block_idx] += place.block_num == x->shapes[0] ? 1 : 1000;
  args[0] = 0;  // its arguments are its own
}

// args: x, block. That block faults, the others end at once.
void kernel_fault(int64_t* args) {
  guard_kernel(args, [&] {
    if (local(args).block_idx != static_cast<uint32_t>(args[1])) return;
    static constexpr SourcePosition kHere{"unit:f", 7, 8, 9};
    current_core()->position = &kHere;
    raise_fault(current_core(), FaultCode::Value, "TTEST", "on purpose");
  });
}

// args: x. Waits until the three kernels of its block are there.
void kernel_meet(int64_t* args) {
  auto* count = reinterpret_cast<std::atomic<int32_t>*>(
      tensor_data<int32_t>(reinterpret_cast<ChipTensor*>(args[0])) + local(args).block_idx);
  ++*count;
  while (*count < 3) std::this_thread::yield();
}

// args: x, stage. The stages must come in order.
std::atomic<int64_t> stage = 0;
void kernel_stage(int64_t* args) {
  if (stage.exchange(args[1] + 1) != args[1]) stage = -1000;
}

// args: x, need. Waits until `need` of these tasks run at the same time, for some seconds at most.
std::atomic<int64_t> inside = 0;
void kernel_together(int64_t* args) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  ++inside;
  while (inside < args[1] && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  if (inside < args[1]) inside = -1000;
}

// args: x, scratch, need. Fills the scratch with what no other kernel that runs at the same time
// has, waits until `need` of these have, and counts itself if all of it is still there.
std::atomic<int64_t> filled = 0;
std::atomic<int64_t> kept = 0;
void kernel_scratch(int64_t* args) {
  const auto* scratch = reinterpret_cast<ChipTensor*>(args[1]);
  const auto mine = static_cast<int32_t>(reinterpret_cast<uintptr_t>(local(args).core));
  auto* const first = tensor_data<int32_t>(scratch);
  for (int64_t i = 0; i < scratch->extent; ++i) first[i] = mine;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  ++filled;
  while (filled < args[2] && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  bool whole = filled >= args[2];
  for (int64_t i = 0; i < scratch->extent; ++i) whole = whole && first[i] == mine;
  if (whole) ++kept;
}

const std::vector<KernelFunction> kKernels = {
    {kernel_count, 0, CoreType::AIV},   {kernel_count, 1, CoreType::AIC},
    {kernel_fault, 2, CoreType::AIV},   {kernel_meet, 3, CoreType::AIV},
    {kernel_meet, 4, CoreType::AIC},    {kernel_stage, 5, CoreType::AIV},
    {kernel_stage, 6, CoreType::AIC},   {kernel_together, 7, CoreType::AIV},
    {kernel_scratch, 8, CoreType::AIV}, {kernel_scratch, 9, CoreType::AIC},
};

struct Setting {
  RuntimeKind kind;
  ChipOptions options;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const RuntimeKind kind :
       {RuntimeKind::HostBuildGraph, RuntimeKind::TensormapAndRingbuffer}) {
    for (const int32_t clusters : {1, 3}) {
      for (const bool helps : {false, true}) {
        ChipOptions options;
        options.clusters = clusters;
        options.caller_helps = helps;
        all.push_back({kind, options});
      }
    }
  }
  return all;
}

void run(CorePool& pool, RuntimeKind kind, void (*entry)(const ChipTaskArgs&),
         std::vector<int32_t>& x, int64_t scalar = 0, Poll poll = {}) {
  const ChipTensor tensor = dense(x);
  const auto bits = static_cast<uint64_t>(scalar);
  execute_run(pool, kind, kKernels, entry, ChipTaskArgs(&tensor, 1, &bits, 1), poll);
}

FaultReport fault_of(CorePool& pool, RuntimeKind kind, void (*entry)(const ChipTaskArgs&),
                     std::vector<int32_t>& x, int64_t scalar = 0) {
  try {
    run(pool, kind, entry, x, scalar);
  } catch (const KernelFault& fault) {
    return fault.report();
  }
  test::fail(__FILE__, __LINE__, "the run did not fault");
  return {};
}

CoreTaskArgs task_of(const ChipTaskArgs& args, int64_t blocks) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  task.set_blocks(blocks);
  return task;
}

// On vector cores, then on matrix cores.
void counting_program(const ChipTaskArgs& args) {
  const auto blocks = static_cast<int64_t>(args.tensor(0).ref().shapes[0]);
  rt_submit_aiv_task(0, task_of(args, blocks));
  rt_submit_aic_task(1, task_of(args, blocks));
}

void each_block_runs_once() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    for (const size_t blocks : {1u, 2u, 7u, 1000u, 10000u}) {
      std::vector<int32_t> x(blocks);
      run(pool, setting.kind, counting_program, x);
      CHECK(x == std::vector<int32_t>(blocks, 2));
    }
  }
}

void meeting_program(const ChipTaskArgs& args) {
  const auto blocks = static_cast<int64_t>(args.tensor(0).ref().shapes[0]);
  rt_submit_task(MixedKernels{.aic = 4, .aiv0 = 3, .aiv1 = 3}, task_of(args, blocks));
}

// The kernels of one block run at the same time, however many blocks there are.
void kernels_of_a_block_meet() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(500);
    run(pool, setting.kind, meeting_program, x);
    CHECK(x == std::vector<int32_t>(500, 3));
  }
}

// A task without blocks runs nothing, and yet what waits for it waits for what it waits for.
void empty_program(const ChipTaskArgs& args) {
  TaskId before;
  for (int64_t i = 0; i < 40; ++i) {
    for (const int64_t blocks : {1, 0, 0}) {
      CoreTaskArgs task;
      task.add_no_dep(args.tensor(0).ref());
      task.add_scalar(i);
      task.set_blocks(blocks);
      task.set_dependencies(&before, 1);
      before = i % 2 == 0 ? rt_submit_aiv_task(5, task) : rt_submit_aic_task(6, task);
    }
  }
}

void tasks_without_blocks_hand_on_the_order() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    stage = 0;
    run(pool, setting.kind, empty_program, x);
    CHECK(stage == 40);
  }
}

void nothing_but_empty_program(const ChipTaskArgs& args) {
  for (int i = 0; i < 10; ++i) rt_submit_aiv_task(0, task_of(args, 0));
}

void a_run_may_have_no_block_at_all() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    run(pool, setting.kind, nothing_but_empty_program, x);
    CHECK(x == std::vector<int32_t>(16));
  }
}

void sized_program(const ChipTaskArgs& args) {
  rt_submit_aiv_task(0, task_of(args, static_cast<int64_t>(args.scalar(0))));
}

void impossible_block_counts_are_refused() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    for (const int64_t blocks : {int64_t{-1}, kMost + 1}) {
      const FaultReport report = fault_of(pool, setting.kind, sized_program, x, blocks);
      CHECK(report.message ==
            "a task cannot run in " + std::to_string(blocks) + " blocks; it takes 0 to 2147483647");
    }
    CHECK(x == std::vector<int32_t>(16));
  }
}

void faulting_program(const ChipTaskArgs& args) {
  CoreTaskArgs task = task_of(args, kMost);
  task.add_scalar(int64_t{300});
  rt_submit_aiv_task(2, task);
  rt_submit_aic_task(1, task_of(args, 16));
}

// The blocks that are left, two thousand million, are not so much as counted.
void a_fault_of_one_block_ends_all() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    const FaultReport report = fault_of(pool, setting.kind, faulting_program, x);
    CHECK(report.op == "TTEST");
    CHECK(report.line == 8);
    CHECK(x == std::vector<int32_t>(16));  // what depends on the task never runs
  }
}

void endless_program(const ChipTaskArgs& args) {
  CoreTaskArgs task = task_of(args, kMost);
  task.add_scalar(int64_t{-1});
  rt_submit_aiv_task(2, task);
}

void an_interrupt_ends_all_blocks() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    int polls = 0;
    bool interrupted = false;
    try {
      run(pool, setting.kind, endless_program, x, 0,
          {[](void* count) { return ++*static_cast<int*>(count) == 3; }, &polls});
    } catch (const Interrupted&) {
      interrupted = true;
    }
    CHECK(interrupted);
  }
}

// A task before, two that overlap inside, a task after.
void manual_program(const ChipTaskArgs& args) {
  const auto staged = [&](int64_t at) {
    CoreTaskArgs task = task_of(args, 1);
    task.add_scalar(at);
    return rt_submit_aiv_task(5, task);
  };
  staged(0);
  rt_manual_begin();
  for (int i = 0; i < 2; ++i) {
    if (i == 1) rt_manual_begin();  // what is inside is the outer one's
    CoreTaskArgs task = task_of(args, 1);
    task.add_scalar(int64_t{2});
    rt_submit_aiv_task(7, task);
    if (i == 1) rt_manual_end();
  }
  rt_manual_end();
  staged(1);
  rt_manual_begin();
  const TaskId first = staged(2);
  CoreTaskArgs task = task_of(args, 1);
  task.add_scalar(int64_t{3});
  task.set_dependencies(&first, 1);
  rt_submit_aic_task(6, task);
  rt_manual_end();
}

void manual_scopes_order_only_what_is_declared() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    stage = 0;
    inside = 0;
    run(pool, setting.kind, manual_program, x);
    CHECK(inside == 2);
    CHECK(stage == 4);
  }
}

// A task of so many blocks on vector cores at once, or, for 0, one on all cores of a cluster.
void scratch_program(const ChipTaskArgs& args) {
  const auto blocks = static_cast<int64_t>(args.scalar(0));
  const uint32_t shape[] = {7, 5};
  const auto made = alloc_tensors(TensorCreateInfo(shape, 2, DType::INT32, false, true));
  CoreTaskArgs task = task_of(args, blocks == 0 ? 1 : blocks);
  task.add_inout(made.get_ref(0));
  task.add_scalar(blocks == 0 ? int64_t{3} : blocks);
  if (blocks == 0) {
    rt_submit_task(MixedKernels{.aic = 9, .aiv0 = 8, .aiv1 = 8}, task);
  } else {
    rt_submit_aiv_task(8, task);
  }
}

void each_core_has_a_copy() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    for (const int64_t blocks : {int64_t{0}, int64_t{2} * setting.options.clusters}) {
      filled = kept = 0;
      run(pool, setting.kind, scratch_program, x, blocks);
      CHECK(kept == (blocks == 0 ? 3 : blocks));
    }
  }
}

// All copies count as memory of the run.
void copies_take_room() {
  for (Setting setting : settings()) {
    setting.options.heap_bytes = 1024;  // the three copies of one cluster take 576
    CorePool pool(setting.options);
    std::vector<int32_t> x(16);
    if (setting.options.clusters == 1) {
      filled = kept = 0;
      run(pool, setting.kind, scratch_program, x, 2);
      CHECK(kept == 2);
      continue;
    }
    CHECK(fault_of(pool, setting.kind, scratch_program, x, 2).message ==
          "a tensor is larger than the run's heap");
  }
}

}  // namespace

int main() {
  each_block_runs_once();
  kernels_of_a_block_meet();
  tasks_without_blocks_hand_on_the_order();
  a_run_may_have_no_block_at_all();
  impossible_block_counts_are_refused();
  a_fault_of_one_block_ends_all();
  an_interrupt_ends_all_blocks();
  manual_scopes_order_only_what_is_declared();
  each_core_has_a_copy();
  copies_take_room();
  return test::result();
}
