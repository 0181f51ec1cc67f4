// What a record says of a run: its tasks, their order, times, counters and tensors.
#include "../src/run_record.h"

#include <cstring>
#include <vector>

#include "../src/execution.h"
#include "check.h"

using namespace pypto_rt;

namespace {

ChipTensor window(std::vector<float>& data, uint32_t rows, uint32_t cols, int64_t stride) {
  ChipTensor tensor{};
  tensor.addr = reinterpret_cast<uint64_t>(data.data());
  tensor.size = data.size() * sizeof(float);
  tensor.ndims = 2;
  tensor.dtype = DType::FP32;
  tensor.is_contiguous = stride == cols;
  tensor.shapes[0] = rows;
  tensor.shapes[1] = cols;
  tensor.strides[0] = stride;
  tensor.strides[1] = 1;
  return tensor;
}

// args: x. Adds one to its first element, in three statements.
void kernel_count(int64_t* args) {
  guard_kernel(args, [&] {
    for (int i = 0; i < 3; ++i) {
      CoreContext* core = current_core();
      if (--core->poll_credit == 0 && core->poll != nullptr) core->poll(core);
    }
    tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0]))[0] += 1;
  });
}

// Two tasks, the second of two blocks in a scope of its own.
void program(const ChipTaskArgs& args) {
  CoreTaskArgs first;
  first.add_inout(args.tensor(0).ref());
  rt_submit_aiv_task(0, first);
  PTO2_SCOPE() {
    const uint32_t shape[] = {4, 4};
    const TensorCreateInfo info(shape, 2, DType::FP32);
    alloc_tensors(info);
    CoreTaskArgs second;
    second.add_inout(args.tensor(0).ref());
    second.set_blocks(2);
    rt_submit_aiv_task(0, second);
  }
}

RunRecord recorded(RuntimeKind kind, bool contents, std::vector<float>& data) {
  CorePool pool(ChipOptions{});
  const ChipTensor tensor = window(data, 2, 2, 3);
  const std::vector<KernelFunction> kernels = {{kernel_count, 0, CoreType::AIV}};
  RunRecord record(contents);
  execute_run(pool, kind, kernels, program, ChipTaskArgs(&tensor, 1, nullptr, 0), Poll{}, &record);
  return record;
}

void test_tasks_and_spans(RuntimeKind kind) {
  std::vector<float> data = {0, 1, 2, 3, 4, 5};
  const RunRecord record = recorded(kind, false, data);
  CHECK(record.tasks.size() == 2);
  CHECK(record.tasks[0].waits_for.empty());
  CHECK(record.tasks[1].waits_for == std::vector<int64_t>{0});
  CHECK(record.tasks[1].blocks == 2);
  CHECK(record.tasks[0].scope == 0 && record.tasks[1].scope == 1);
  CHECK(record.tasks[0].contents.empty());
  int64_t blocks = 0;
  uint64_t instructions = 0;
  for (const RecordedSpan& span : record.spans) {
    blocks += span.blocks;
    instructions += span.instructions;
    CHECK(span.core == CoreType::AIV && span.core_index >= 0);
    CHECK(span.start_ns <= span.end_ns && span.end_ns <= record.duration_ns);
    CHECK(span.cpu_ns >= 0);
  }
  CHECK(blocks == 3 && instructions == 9);
  CHECK(record.scopes.size() == 2 && record.scopes[1].depth == 1);
  CHECK(record.scopes[1].tensors == 1 && record.scopes[1].bytes == 64);
  CHECK(record.most_bytes == 64 && record.most_tasks >= 1);
}

void test_contents(RuntimeKind kind) {
  std::vector<float> data = {0, 1, 2, 3, 4, 5};
  const RunRecord record = recorded(kind, true, data);
  const auto& contents = record.tasks[0].contents;
  CHECK(contents.size() == 2 && !contents[0].after && contents[1].after);
  // The window's rows are apart in memory and side by side here.
  const float before[] = {0, 1, 3, 4};
  const float after[] = {1, 1, 3, 4};
  CHECK(contents[0].bytes.size() == sizeof(before));
  CHECK(std::memcmp(contents[0].bytes.data(), before, sizeof(before)) == 0);
  CHECK(std::memcmp(contents[1].bytes.data(), after, sizeof(after)) == 0);
}

}  // namespace

int main() {
  for (const RuntimeKind kind :
       {RuntimeKind::HostBuildGraph, RuntimeKind::TensormapAndRingbuffer}) {
    test_tasks_and_spans(kind);
    test_contents(kind);
  }
  return pypto_rt::test::result();
}
