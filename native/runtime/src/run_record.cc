#include "run_record.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "run.h"

namespace pypto_rt {
namespace {

// Copies the elements of axes [axis, ndims) that begin at `from`.
void append(const ChipTensor& tensor, uint32_t axis, const unsigned char* from, size_t element,
            std::vector<unsigned char>& bytes) {
  if (axis == tensor.ndims) {
    bytes.insert(bytes.end(), from, from + element);
    return;
  }
  const auto step = static_cast<ptrdiff_t>(element) * static_cast<ptrdiff_t>(tensor.strides[axis]);
  for (uint32_t i = 0; i < tensor.shapes[axis]; ++i) {
    append(tensor, axis + 1, from + step * i, element, bytes);
  }
}

std::vector<unsigned char> contents_of(const ChipTensor& tensor) {
  std::vector<unsigned char> bytes;
  const size_t element = dtype_bytes(tensor.dtype);
  const auto* from = reinterpret_cast<const unsigned char*>(tensor.addr) +
                     static_cast<ptrdiff_t>(tensor.start_offset) * static_cast<ptrdiff_t>(element);
  if (tensor.is_contiguous != 0) {
    size_t count = element;
    for (uint32_t i = 0; i < tensor.ndims; ++i) count *= tensor.shapes[i];
    bytes.assign(from, from + count);
  } else {
    append(tensor, 0, from, element, bytes);
  }
  return bytes;
}

}  // namespace

int64_t thread_cpu_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

RunRecord::RunRecord(bool contents)
    : contents_(contents), begin_(std::chrono::steady_clock::now()) {
  scopes.push_back(RecordedScope{0, 0, 0});
  open_.push_back(0);
}

int64_t RunRecord::now() const noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              begin_)
      .count();
}

void RunRecord::scope_begin() {
  scopes.push_back(RecordedScope{open_.size(), now(), 0});
  open_.push_back(scopes.size() - 1);
}

void RunRecord::scope_end() {
  scopes[open_.back()].end_ns = now();
  open_.pop_back();
}

void RunRecord::allocated(int64_t bytes, int64_t in_use) {
  RecordedScope& scope = scopes[open_.back()];
  ++scope.tensors;
  scope.bytes += bytes;
  most_bytes = std::max(most_bytes, in_use);
}

void RunRecord::submitted(const Task& task, const CoreTaskArgs& args,
                          const std::vector<int64_t>& waits_for, size_t in_ring) {
  RecordedTask& recorded = tasks.emplace_back();
  for (size_t i = 0; i < task.parts.count; ++i) {
    recorded.kernels.push_back(task.parts.list[i].kernel->func_id);
  }
  recorded.blocks = task.blocks;
  recorded.waits_for = waits_for;
  recorded.tensors = task.tensors;
  for (int32_t i = 0; i < args.tensor_count(); ++i) {
    recorded.directions.push_back(args.direction(i));
  }
  recorded.scalars = task.scalars;
  recorded.dumps = task.dumps;
  recorded.scope = open_.back();
  recorded.submitted_ns = now();
  ++scopes[open_.back()].tasks;
  most_tasks = std::max(most_tasks, static_cast<int64_t>(in_ring));
}

void RunRecord::keep(RecordedTask& task, bool after) {
  for (size_t i = 0; i < task.tensors.size(); ++i) {
    const ArgDirection direction = task.directions[i];
    const bool written = direction == ArgDirection::Out || direction == ArgDirection::InOut;
    const bool read = direction != ArgDirection::Out;
    if (after ? !written : !read) continue;
    task.contents.push_back(RecordedContents{i, after, contents_of(task.tensors[i])});
  }
}

void RunRecord::ready(const Task& task) {
  if (contents_) keep(tasks[static_cast<size_t>(task.id)], false);
}

void RunRecord::finished(const Task& task) {
  if (contents_) keep(tasks[static_cast<size_t>(task.id)], true);
}

}  // namespace pypto_rt
