// The chip as an object: limits, forks, closing.
#include "../src/chip.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../src/execution.h"
#include "../src/program.h"
#include "check.h"

using namespace pypto_rt;

namespace {

void kernel_increment(int64_t* args) {
  *tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0])) += 1;
}

void program(const ChipTaskArgs& args) {
  for (int i = 0; i < 10; ++i) {
    CoreTaskArgs task;
    task.add_inout(args.tensor(0).ref());
    i % 2 == 0 ? rt_submit_aiv_task(0, task) : rt_submit_aic_task(1, task);
  }
}

float run_on(Chip& chip) {
  float x = 0;
  const int64_t shape[] = {1};
  const ChipTensor tensor =
      dense_tensor(reinterpret_cast<uint64_t>(&x), sizeof x, shape, 1, DType::FP32);
  const std::vector<KernelFunction> kernels = {{kernel_increment, 0, CoreType::AIV},
                                               {kernel_increment, 1, CoreType::AIC}};
  const auto cores = chip.cores();
  execute_run(*cores, RuntimeKind::TensormapAndRingbuffer, kernels, program,
              ChipTaskArgs(&tensor, 1, nullptr, 0), {});
  return x;
}

// The exit status of f() in a child.
template <class F>
int in_child(F f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void works_in_forked_children() {
  for (const bool helps : {false, true}) {
    ChipOptions options;
    options.caller_helps = helps;
    Chip chip(options);
    CHECK(run_on(chip) == 10);
    for (int i = 0; i < 5; ++i) {
      CHECK(in_child([&] {
              if (run_on(chip) != 10) return 1;
              // And in children of children.
              return in_child([&] { return run_on(chip) == 10 ? 0 : 1; });
            }) == 0);
      CHECK(run_on(chip) == 10);
    }
    // Closing in a child joins no thread that is not there.
    CHECK(in_child([&] {
            chip.close();
            return chip.closed() ? 0 : 1;
          }) == 0);
    CHECK(!chip.closed());
    CHECK(run_on(chip) == 10);
  }
}

void forks_while_others_run() {
  Chip chip({});
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) CHECK(run_on(chip) == 10);
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(in_child([&] { return run_on(chip) == 10 ? 0 : 1; }) == 0);
  }
  stop = true;
  other.join();
}

void closing() {
  Chip chip({});
  const auto held = chip.cores();
  chip.close();
  chip.close();
  bool refused = false;
  try {
    chip.cores();
  } catch (const std::logic_error&) {
    refused = true;
  }
  CHECK(refused);
}

void options_are_checked() {
  const auto refused = [](auto change) {
    ChipOptions options;
    change(options);
    try {
      Chip chip(options);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(refused([](ChipOptions& o) { o.clusters = 0; }));
  CHECK(refused([](ChipOptions& o) { o.task_window = 1; }));
  CHECK(refused([](ChipOptions& o) { o.heap_bytes = 0; }));
}

void tensors_are_checked() {
  const auto refused = [](std::vector<int64_t> shape, uint64_t bytes, DType dtype) {
    try {
      dense_tensor(4096, bytes, shape.data(), shape.size(), dtype);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(!refused({4, 4}, 64, DType::FP32));
  CHECK(refused({4, 4}, 63, DType::FP32));
  CHECK(!refused({4, 4}, 32, DType::BF16));
  CHECK(!refused({}, 4, DType::FP32));
  CHECK(refused({1, 1, 1, 1, 1, 1}, 64, DType::FP32));
  CHECK(refused({-1}, 64, DType::FP32));
  CHECK(refused({4}, 64, static_cast<DType>(77)));
  CHECK(refused({INT32_MAX, INT32_MAX, INT32_MAX}, UINT64_MAX, DType::INT8));
}

}  // namespace

int main() {
  works_in_forked_children();
  forks_while_others_run();
  closing();
  options_are_checked();
  tensors_are_checked();
  return test::result();
}
