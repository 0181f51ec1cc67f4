// How orchestration code reads and writes single elements: when it may, and where they are.
#include "run.h"

namespace pypto_rt {

void Run::find_users(const ChipTensor& window, bool writes, std::vector<int64_t>& tasks) const {
  const Footprint print = Footprint::of(window);
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    for (size_t i = 0; i < task.tensors.size(); ++i) {
      const bool concerns = writes || (task.writes >> i & 1) != 0;
      if (concerns && may_overlap(print, Footprint::of(task.tensors[i]))) {
        tasks.push_back(first_id_ + static_cast<int64_t>(t));
        break;
      }
    }
  }
}

bool Run::await_data(const ChipTensor& window, bool writes) {
  Lock lock(pool_.mutex);
  retire();
  lock.unlock();
  dependencies_.clear();
  find_users(window, writes, dependencies_);
  lock.lock();
  if (building_ && !dependencies_.empty()) {
    fail(lock, orchestration_fault(
                   writes ? "write" : "read",
                   writes ? "a task uses this element, and host_build_graph starts no task before "
                            "the whole graph is built; use the tensormap_and_ringbuffer runtime"
                          : "a task writes this element, and host_build_graph starts no task "
                            "before the whole graph is built; use the tensormap_and_ringbuffer "
                            "runtime"));
  }
  for (const int64_t task : dependencies_) {
    while (!ended_early_ && !tasks_[static_cast<size_t>(task - first_id_)].done) advance(lock);
  }
  return !ended_early_;
}

void* Run::element(const ChipTensor& tensor, const int64_t* index, int32_t count, bool writes) {
  const char* op = writes ? "write" : "read";
  if (count != tensor.ndims) {
    report_fatal(op, "an element needs one index for each dimension");
    return nullptr;
  }
  ChipTensor window = tensor;
  for (int32_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= int64_t{tensor.shapes[i]}) {
      const std::string message = "index " + std::to_string(index[i]) + " is outside dimension " +
                                  std::to_string(i) + " of extent " +
                                  std::to_string(tensor.shapes[i]);
      report_fatal(op, message.c_str());
      return nullptr;
    }
    window.start_offset += index[i] * tensor.strides[i];
    window.shapes[i] = 1;
  }
  if (!await_data(window, writes)) return nullptr;
  const int64_t offset = window.start_offset * dtype_bytes(window.dtype);
  return reinterpret_cast<unsigned char*>(window.addr) + offset;
}

}  // namespace pypto_rt
