// Runs on the simulated chip: order, memory, back-pressure, faults, interruption; under both
// runtimes, with and without the caller's help, with one cluster and with several.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../src/execution.h"
#include "check.h"

using namespace pypto_rt;

namespace {

ChipTensor dense(std::vector<float>& data, uint32_t rows, uint32_t cols) {
  ChipTensor tensor{};
  tensor.addr = reinterpret_cast<uint64_t>(data.data());
  tensor.size = data.size() * sizeof(float);
  tensor.ndims = 2;
  tensor.dtype = DType::FP32;
  tensor.is_contiguous = 1;
  tensor.shapes[0] = rows;
  tensor.shapes[1] = cols;
  tensor.strides[0] = cols;
  tensor.strides[1] = 1;
  return tensor;
}

ChipTensor tile(const ChipTensor& whole, uint32_t r, uint32_t c, uint32_t rows, uint32_t cols) {
  ChipTensor part = whole;
  part.start_offset += r * whole.strides[0] + c;
  part.shapes[0] = rows;
  part.shapes[1] = cols;
  part.is_contiguous = 0;
  return part;
}

// Kernel 0, on either core type: out = out * 3 + sum(in) + scalar, in every element of the windows.
void mix(const std::vector<const ChipTensor*>& inputs, const ChipTensor& out, float scalar) {
  float sum = scalar;
  for (const ChipTensor* in : inputs) {
    for (uint32_t r = 0; r < in->shapes[0]; ++r) {
      for (uint32_t c = 0; c < in->shapes[1]; ++c) {
        sum += tensor_data<float>(in)[r * in->strides[0] + c];
      }
    }
  }
  for (uint32_t r = 0; r < out.shapes[0]; ++r) {
    for (uint32_t c = 0; c < out.shapes[1]; ++c) {
      float& element = tensor_data<float>(&out)[r * out.strides[0] + c];
      element = static_cast<float>((static_cast<int>(element) * 3 + static_cast<int>(sum)) % 1000);
    }
  }
}

std::atomic<int> executed = 0;

// args: in, in, out, scalar
void kernel_mix(int64_t* args) {
  guard_kernel(args, [&] {
    ++executed;
    mix({reinterpret_cast<ChipTensor*>(args[0]), reinterpret_cast<ChipTensor*>(args[1])},
        *reinterpret_cast<ChipTensor*>(args[2]), from_u64<float>(static_cast<uint64_t>(args[3])));
  });
}

// args: x
void kernel_fault(int64_t* args) {
  guard_kernel(args, [&] {
    static constexpr SourcePosition kHere{"unit:f", 7, 8, 9};
    current_core()->position = &kHere;
    raise_fault(current_core(), FaultCode::Value, "TTEST", "on purpose");
  });
}

// args: x. Runs until the run is cancelled.
void kernel_endless(int64_t* args) {
  guard_kernel(args, [&] {
    CoreContext* core = current_core();
    for (;;) {
      if (--core->poll_credit == 0 && core->poll != nullptr) core->poll(core);
      if (__atomic_load_n(&core->cancelled, __ATOMIC_RELAXED) != 0) {
        raise_fault(core, FaultCode::Cancelled, "cancel", "");
      }
      if (core->poll == nullptr) std::this_thread::yield();
    }
  });
}

// args: x, y. A core type reports itself.
void kernel_count(int64_t*) { ++executed; }

std::atomic<int> arrived = 0;

// args: x, stage. Waits until the three kernels of its task are there; each adds to a float of its
// own.
void kernel_meet(int64_t* args) {
  const auto* context = reinterpret_cast<GlobalContext*>(args[kGlobalContextSlot]);
  const auto stage = from_u64<int32_t>(static_cast<uint64_t>(args[1]));
  ++arrived;
  while (arrived < 3 * (stage + 1)) std::this_thread::yield();
  tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0]))[context->sub_block_id] += 1;
}
// The same on the matrix core.
void kernel_meet_cube(int64_t* args) {
  const auto stage = from_u64<int32_t>(static_cast<uint64_t>(args[1]));
  ++arrived;
  while (arrived < 3 * (stage + 1)) std::this_thread::yield();
  tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0]))[2] += 1;
}

const std::vector<KernelFunction> kKernels = {
    {kernel_mix, 0, CoreType::AIV},       {kernel_mix, 1, CoreType::AIC},
    {kernel_fault, 2, CoreType::AIV},     {kernel_endless, 3, CoreType::AIV},
    {kernel_count, 4, CoreType::AIC},     {kernel_meet, 5, CoreType::AIV},
    {kernel_meet_cube, 6, CoreType::AIC},
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
         const std::vector<ChipTensor>& tensors, const std::vector<uint64_t>& scalars = {},
         Poll poll = {}) {
  const ChipTaskArgs args(tensors.data(), static_cast<int32_t>(tensors.size()), scalars.data(),
                          static_cast<int32_t>(scalars.size()));
  execute_run(pool, kind, kKernels, entry, args, poll);
}

// The fault that the orchestration must end with.
FaultReport fault_of(CorePool& pool, RuntimeKind kind, void (*entry)(const ChipTaskArgs&),
                     const std::vector<ChipTensor>& tensors) {
  try {
    run(pool, kind, entry, tensors);
  } catch (const KernelFault& fault) {
    return fault.report();
  }
  test::fail(__FILE__, __LINE__, "the run did not fault");
  return {};
}

// A program of random tasks on random tiles must leave what its tasks leave one after the other.
constexpr uint32_t kRows = 8;
constexpr uint32_t kCols = 12;

struct Step {
  int tensors[3];
  uint32_t r[3], c[3], rows[3], cols[3];
  bool cube;
};

Step random_step(uint64_t& state) {
  const auto next = [&](uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33) % below;
  };
  Step step{};
  for (int i = 0; i < 3; ++i) {
    step.tensors[i] = static_cast<int>(next(2));
    step.r[i] = next(kRows);
    step.c[i] = next(kCols);
    step.rows[i] = 1 + next(kRows - step.r[i]);
    step.cols[i] = 1 + next(kCols - step.c[i]);
  }
  step.cube = next(2) == 0;
  return step;
}

void random_program(const ChipTaskArgs& args) {
  uint64_t state = args.scalar(0);
  for (uint64_t i = 0; i < args.scalar(1); ++i) {
    const Step step = random_step(state);
    CoreTaskArgs task;
    for (int k = 0; k < 3; ++k) {
      const ChipTensor part = tile(args.tensor(step.tensors[k]).ref(), step.r[k], step.c[k],
                                   step.rows[k], step.cols[k]);
      k < 2 ? task.add_input(part) : task.add_inout(part);
    }
    task.add_scalar(static_cast<float>(i));
    step.cube ? rt_submit_aic_task(1, task) : rt_submit_aiv_task(0, task);
  }
}

void order_is_that_of_submission() {
  for (Setting setting : settings()) {
    setting.options.task_window = 16;
    CorePool pool(setting.options);
    for (uint64_t seed = 0; seed < 12; ++seed) {
      std::vector<float> x(kRows * kCols, 1);
      std::vector<float> y(kRows * kCols, 2);
      std::vector<float> want_x = x;
      std::vector<float> want_y = y;
      const uint64_t steps = 120;
      uint64_t state = seed;
      const ChipTensor wanted[] = {dense(want_x, kRows, kCols), dense(want_y, kRows, kCols)};
      for (uint64_t i = 0; i < steps; ++i) {
        const Step step = random_step(state);
        ChipTensor parts[3];
        for (int k = 0; k < 3; ++k) {
          parts[k] =
              tile(wanted[step.tensors[k]], step.r[k], step.c[k], step.rows[k], step.cols[k]);
        }
        mix({&parts[0], &parts[1]}, parts[2], static_cast<float>(i));
      }
      executed = 0;
      run(pool, setting.kind, random_program, {dense(x, kRows, kCols), dense(y, kRows, kCols)},
          {seed, steps});
      CHECK(executed == static_cast<int>(steps));
      CHECK(x == want_x);
      CHECK(y == want_y);
    }
  }
}

// Explicit dependencies order tasks that share no memory as far as the map knows.
std::atomic<int> stage = 0;
void kernel_stage(int64_t* args) {
  const auto expected = static_cast<int>(args[1]);
  if (stage.exchange(expected + 1) != expected) stage = -1000;
}

void explicit_program(const ChipTaskArgs& args) {
  TaskId before;
  for (int i = 0; i < 50; ++i) {
    CoreTaskArgs task;
    task.add_no_dep(args.tensor(0).ref());
    task.add_scalar(int64_t{i});
    const TaskId list[] = {TaskId{}, before};
    task.set_dependencies(list, 2);
    before = rt_submit_aiv_task(0, task);
  }
}

void explicit_dependencies_hold() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<float> x(16);
    const ChipTensor tensor = dense(x, 4, 4);
    const std::vector<KernelFunction> kernels = {{kernel_stage, 0, CoreType::AIV}};
    stage = 0;
    execute_run(pool, setting.kind, kernels, explicit_program, ChipTaskArgs(&tensor, 1, nullptr, 0),
                {});
    CHECK(stage == 50);
  }
}

constexpr int kMeetings = 20;

void meeting_program(const ChipTaskArgs& args) {
  for (int32_t stage = 0; stage < kMeetings; ++stage) {
    CoreTaskArgs task;
    task.add_inout(args.tensor(0).ref());
    task.add_scalar(stage);
    rt_submit_task(MixedKernels{.aic = 6, .aiv0 = 5, .aiv1 = 5}, task);
  }
}

// The kernels of a task run at the same time, each knows which it is, and the next task waits for
// all of them.
void mixed_tasks_run_on_several_cores() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<float> x(16);
    arrived = 0;
    run(pool, setting.kind, meeting_program, {dense(x, 4, 4)});
    CHECK(arrived == 3 * kMeetings);
    for (int i = 0; i < 3; ++i) CHECK(x[static_cast<size_t>(i)] == kMeetings);
  }
}

// A fault of one kernel of a task is the task's.
void faulting_part_program(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  rt_submit_task(MixedKernels{.aic = 4, .aiv0 = 3, .aiv1 = 2}, task);
  rt_submit_aic_task(4, task);
}

void fault_of_one_kernel_ends_the_others() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<float> x(16);
    executed = 0;
    const FaultReport report =
        fault_of(pool, setting.kind, faulting_part_program, {dense(x, 4, 4)});
    CHECK(report.op == "TTEST");
    CHECK(report.func_id == 2);
    CHECK(executed <= 1);  // what depends on the task never runs
  }
}

// x += 1 through a temporary of each iteration's own.
void temporaries_program(const ChipTaskArgs& args) {
  const ChipTensor& x = args.tensor(0).ref();
  PTO2_SCOPE() {
    for (int i = 0; i < 64; ++i) {
      PTO2_SCOPE() {
        const uint32_t shape[] = {64, 64};
        const auto made = alloc_tensors(TensorCreateInfo(shape, 2, DType::FP32),
                                        TensorCreateInfo(shape, 2, DType::FP32));
        if (rt_is_fatal()) return;
        const ChipTensor first = tile(made.get_ref(0), 0, 0, 1, 1);
        const ChipTensor second = tile(made.get_ref(1), 0, 0, 1, 1);
        for (const ChipTensor* from : {&x, &first}) {
          CoreTaskArgs task;
          task.add_input(*from);
          task.add_output(from == &x ? first : second);
          rt_submit_aiv_task(0, task);
        }
        CoreTaskArgs task;
        task.add_input(second);
        task.add_inout(x);
        rt_submit_aic_task(1, task);
      }
    }
  }
}

void kernel_copy(int64_t* args) {
  *tensor_data<float>(reinterpret_cast<ChipTensor*>(args[1])) =
      *tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0]));
}
void kernel_increment(int64_t* args) {
  *tensor_data<float>(reinterpret_cast<ChipTensor*>(args[1])) =
      *tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0])) + 1;
}

void temporaries_live_long_enough() {
  const std::vector<KernelFunction> kernels = {{kernel_copy, 0, CoreType::AIV},
                                               {kernel_increment, 1, CoreType::AIC}};
  for (Setting setting : settings()) {
    // Three iterations' worth: the ring must wait, the graph cannot.
    if (setting.kind == RuntimeKind::TensormapAndRingbuffer) {
      setting.options.heap_bytes = 3 * 2 * 64 * 64 * 4;
    }
    CorePool pool(setting.options);
    std::vector<float> x(1);
    const ChipTensor tensor = dense(x, 1, 1);
    execute_run(pool, setting.kind, kernels, temporaries_program,
                ChipTaskArgs(&tensor, 1, nullptr, 0), {});
    CHECK(x[0] == 64);
  }
}

// Each step reads what the task before it wrote and hands the value on; between two steps the
// orchestration overwrites the element itself.
void element_program(const ChipTaskArgs& args) {
  const ChipTensor& x = args.tensor(0).ref();
  for (int i = 0; i < 50; ++i) {
    const float before = get_tensor_data<float>(x, {2, 1});
    set_tensor_data<float>(x, {2, 1}, before + 1);
    CoreTaskArgs task;
    task.add_input(x);
    task.add_no_dep(x);  // what takes part in no dependency is waited for all the same
    rt_submit_aiv_task(5, task);
  }
  CHECK(get_tensor_data<float>(x, {2, 1}) == 150);
}
void kernel_add_two(int64_t* args) {
  auto* x = reinterpret_cast<ChipTensor*>(args[1]);
  for (volatile int i = 0; i < 10000;) i = i + 1;
  tensor_data<float>(x)[2 * x->strides[0] + 1] += 2;
}
void reading_program(const ChipTaskArgs& args) {
  const ChipTensor& x = args.tensor(0).ref();
  CHECK(get_tensor_data<float>(x, {0, 0}) == 7);  // no task writes x
  set_tensor_data<float>(x, {0, 1}, get_tensor_data<float>(x, {0, 0}) + 1);
  CoreTaskArgs task;
  task.add_input(x);
  rt_submit_aiv_task(6, task);
  CHECK(get_tensor_data<float>(x, {0, 1}) == 8);  // nor does this one
}

void elements_are_waited_for() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    const std::vector<KernelFunction> kernels = {{kernel_add_two, 5, CoreType::AIV},
                                                 {kernel_count, 6, CoreType::AIV}};
    std::vector<float> x(12);
    ChipTensor tensor = dense(x, 4, 3);
    x[0] = 7;
    execute_run(pool, setting.kind, kernels, reading_program, ChipTaskArgs(&tensor, 1, nullptr, 0),
                {});
    CHECK(x[1] == 8);
    if (setting.kind == RuntimeKind::HostBuildGraph) continue;
    execute_run(pool, setting.kind, kernels, element_program, ChipTaskArgs(&tensor, 1, nullptr, 0),
                {});
    CHECK(x[7] == 150);
  }
}

void outside_program(const ChipTaskArgs& args) {
  CHECK(get_tensor_data<float>(args.tensor(0).ref(), {0, 4}) == 0);
}
void negative_program(const ChipTaskArgs& args) {
  set_tensor_data<float>(args.tensor(0).ref(), {-1, 0}, 1);
}
void rank_program(const ChipTaskArgs& args) { get_tensor_data<float>(args.tensor(0).ref(), {0}); }
void produced_program(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_output(args.tensor(0).ref());
  rt_submit_aiv_task(0, task);
  get_tensor_data<float>(args.tensor(0).ref(), {0, 0});
}
void used_program(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_input(args.tensor(0).ref());
  rt_submit_aiv_task(0, task);
  set_tensor_data<float>(args.tensor(0).ref(), {0, 0}, 1);
}

void heap_program(const ChipTaskArgs&) {
  PTO2_SCOPE() {
    for (int i = 0; i < 10; ++i) {
      const uint32_t shape[] = {1024};
      alloc_tensors(TensorCreateInfo(shape, 1, DType::FP32));
    }
  }
}
void huge_program(const ChipTaskArgs&) {
  const uint32_t shape[] = {0xffffffffu, 0xffffffffu, 0xffffffffu};
  alloc_tensors(TensorCreateInfo(shape, 3, DType::FP32));
}
// 2^62 elements can be counted, their bytes cannot.
void uncountable_program(const ChipTaskArgs&) {
  const uint32_t shape[] = {0x80000000u, 0x80000000u};
  alloc_tensors(TensorCreateInfo(shape, 2, DType::FP32));
}
void endless_submit_program(const ChipTaskArgs& args) {
  for (int i = 0; i < 140000; ++i) {
    CoreTaskArgs task;
    task.add_no_dep(args.tensor(0).ref());
    if (!rt_submit_aic_task(4, task).valid()) return;
  }
}
void no_kernel_program(const ChipTaskArgs&) { rt_submit_task(MixedKernels{}, CoreTaskArgs()); }
void unknown_kernel_program(const ChipTaskArgs&) { rt_submit_aiv_task(99, CoreTaskArgs()); }
void wrong_core_program(const ChipTaskArgs&) { rt_submit_aiv_task(1, CoreTaskArgs()); }
void too_many_program(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  for (int i = 0; i < 40; ++i) task.add_input(args.tensor(0).ref());
  rt_submit_aiv_task(0, task);
}
void scalar_first_program(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_scalar(1);
  task.add_input(args.tensor(0).ref());
  rt_submit_aiv_task(0, task);
}
void own_fatal_program(const ChipTaskArgs&) {
  rt_report_fatal("first");
  rt_report_fatal("second");
  CHECK(rt_is_fatal());
}
void throwing_program(const ChipTaskArgs&) { throw std::runtime_error("no"); }

void misuse_is_reported() {
  for (Setting setting : settings()) {
    setting.options.heap_bytes = 16384;
    CorePool pool(setting.options);
    std::vector<float> x(16);
    const std::vector<ChipTensor> tensors{dense(x, 4, 4)};
    const auto expect = [&](void (*entry)(const ChipTaskArgs&), const char* op, const char* part) {
      const FaultReport report = fault_of(pool, setting.kind, entry, tensors);
      CHECK(report.op == op);
      CHECK(report.func_id == -1);
      if (report.message.find(part) == std::string::npos) {
        test::fail(__FILE__, __LINE__, report.message.c_str());
      }
    };
    expect(heap_program, "create_tensor", "do not fit the run's heap");
    expect(huge_program, "create_tensor", "larger than the run's heap");
    expect(uncountable_program, "create_tensor", "larger than the run's heap");
    expect(unknown_kernel_program, "submit", "no kernel 99");
    expect(no_kernel_program, "submit", "no kernel");
    expect(wrong_core_program, "submit", "another core type");
    expect(too_many_program, "submit", "40 tensors");
    expect(scalar_first_program, "submit", "before its scalars");
    expect(own_fatal_program, "orchestration", "first");
    expect(throwing_program, "orchestration", "threw");
    expect(outside_program, "read", "index 4 is outside dimension 1 of extent 4");
    expect(negative_program, "write", "index -1 is outside dimension 0 of extent 4");
    expect(rank_program, "read", "one index for each dimension");
    if (setting.kind == RuntimeKind::HostBuildGraph) {
      expect(endless_submit_program, "submit", "131072");
      expect(produced_program, "read", "a task writes this element");
      expect(used_program, "write", "a task uses this element");
    }
  }
}

// Task 20 faults; what depends on it must not run.
void faulting_program(const ChipTaskArgs& args) {
  const ChipTensor& x = args.tensor(0).ref();
  for (int i = 0; i < 60; ++i) {
    CoreTaskArgs task;
    task.add_inout(x);
    i == 20 ? rt_submit_aiv_task(2, task) : rt_submit_aic_task(4, task);
  }
}

void first_fault_ends_the_run() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<float> x(16);
    for (int repeat = 0; repeat < 5; ++repeat) {
      executed = 0;
      const FaultReport report = fault_of(pool, setting.kind, faulting_program, {dense(x, 4, 4)});
      CHECK(executed == 20);
      CHECK(report.code == FaultCode::Value);
      CHECK(report.func_id == 2);
      CHECK(report.op == "TTEST");
      CHECK(report.message == "on purpose");
      CHECK(report.unit == "unit:f");
      CHECK(report.pto_line == 7);
      CHECK(report.line == 8);
      CHECK(report.column == 9);
    }
  }
}

// An endless kernel beside one that faults: the fault ends both.
void endless_and_fault_program(const ChipTaskArgs& args) {
  for (const int32_t func : {3, 2}) {
    CoreTaskArgs task;
    task.add_input(args.tensor(0).ref());
    rt_submit_aiv_task(func, task);
  }
}

void fault_cancels_running_kernels() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<float> x(16);
    const FaultReport report =
        fault_of(pool, setting.kind, endless_and_fault_program, {dense(x, 4, 4)});
    CHECK(report.op == "TTEST");
  }
}

void endless_program(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  rt_submit_aiv_task(3, task);
  CoreTaskArgs never;
  never.add_inout(args.tensor(0).ref());
  rt_submit_aic_task(4, never);
}

void poll_interrupts() {
  for (const Setting& setting : settings()) {
    CorePool pool(setting.options);
    std::vector<float> x(16);
    int polls = 0;
    executed = 0;
    bool interrupted = false;
    try {
      run(pool, setting.kind, endless_program, {dense(x, 4, 4)}, {},
          {[](void* count) { return ++*static_cast<int*>(count) == 3; }, &polls});
    } catch (const Interrupted&) {
      interrupted = true;
    }
    CHECK(interrupted);
    CHECK(polls == 3);
    CHECK(executed == 0);
    // The chip is as good as new.
    const FaultReport report = fault_of(pool, setting.kind, faulting_program, {dense(x, 4, 4)});
    CHECK(report.op == "TTEST");
  }
}

void concurrent_runs_do_not_meet() {
  for (Setting setting : settings()) {
    setting.options.task_window = 8;
    CorePool pool(setting.options);
    std::vector<std::thread> callers;
    for (uint64_t caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&, caller] {
        for (uint64_t repeat = 0; repeat < 5; ++repeat) {
          std::vector<float> x(kRows * kCols, 1);
          std::vector<float> y(kRows * kCols, 2);
          if (caller == 3) {
            CHECK(fault_of(pool, setting.kind, faulting_program, {dense(x, 8, 12)}).op == "TTEST");
            continue;
          }
          std::vector<float> again_x = x;
          std::vector<float> again_y = y;
          run(pool, setting.kind, random_program, {dense(x, kRows, kCols), dense(y, kRows, kCols)},
              {caller, 40});
          run(pool, setting.kind, random_program,
              {dense(again_x, kRows, kCols), dense(again_y, kRows, kCols)}, {caller, 40});
          CHECK(x == again_x);
          CHECK(y == again_y);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

}  // namespace

int main() {
  order_is_that_of_submission();
  explicit_dependencies_hold();
  mixed_tasks_run_on_several_cores();
  fault_of_one_kernel_ends_the_others();
  temporaries_live_long_enough();
  elements_are_waited_for();
  misuse_is_reported();
  first_fault_ends_the_run();
  fault_cancels_running_kernels();
  poll_interrupts();
  concurrent_runs_do_not_meet();
  return test::result();
}
