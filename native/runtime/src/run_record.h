// What a run did, written down while it runs: for callers who asked for it, at some cost.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "pypto_rt/pto_orchestration_api.h"

namespace pypto_rt {

struct Task;

// A tensor's elements in row order, without gaps.
struct RecordedContents {
  size_t tensor;  // index in its task
  bool after;     // the task, else before
  std::vector<unsigned char> bytes;
};

struct RecordedTask {
  std::vector<int32_t> kernels;  // func_ids
  int64_t blocks;
  std::vector<int64_t> waits_for;  // tasks that had to end before, earliest first
  std::vector<ChipTensor> tensors;
  std::vector<ArgDirection> directions;
  std::vector<uint64_t> scalars;
  uint32_t dumps;  // see Task
  size_t scope;    // index of the innermost scope that was open
  int64_t submitted_ns;
  std::vector<RecordedContents> contents;
};

// Some blocks of one part of a task, on one core.
struct RecordedSpan {
  int64_t task;
  int32_t func_id;
  CoreType core;
  int32_t core_index;
  int64_t first_block;
  int64_t blocks;
  int64_t start_ns;
  int64_t end_ns;
  int64_t cpu_ns;         // of the thread that was the core
  uint64_t instructions;  // statements of the .pto text
};

struct RecordedScope {
  size_t depth;  // 0: the whole orchestration
  int64_t begin_ns;
  int64_t end_ns;
  int64_t tasks = 0;
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the tensors that it allocated
};

// Times are nanoseconds since the record was made. Tasks are numbered as the run numbers them.
class RunRecord {
 public:
  // With `contents`, what is in the tasks' tensors is kept too: of those that a task reads before
  // it, of those that it writes after it.
  explicit RunRecord(bool contents);

  int64_t now() const noexcept;

  // By the submitting thread.
  void scope_begin();
  void scope_end();
  void allocated(int64_t bytes, int64_t in_use);

  // With the pool's lock held.
  void submitted(const Task& task, const CoreTaskArgs& args, const std::vector<int64_t>& waits_for,
                 size_t in_ring);
  void ready(const Task& task);
  void finished(const Task& task);
  void span(const RecordedSpan& span) { spans.push_back(span); }
  void ended() { duration_ns = scopes.front().end_ns = now(); }

  std::vector<RecordedTask> tasks;
  std::vector<RecordedSpan> spans;
  std::vector<RecordedScope> scopes;
  int64_t most_tasks = 0;  // in the ring at once
  int64_t most_bytes = 0;  // of the run's own tensors at once
  int64_t duration_ns = 0;

 private:
  static void keep(RecordedTask& task, bool after);

  const bool contents_;
  const std::chrono::steady_clock::time_point begin_;
  std::vector<size_t> open_;  // scopes
};

// CPU time of the calling thread in nanoseconds.
int64_t thread_cpu_ns() noexcept;

}  // namespace pypto_rt
