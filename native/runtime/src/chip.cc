#include "chip.h"

#include <pthread.h>

#include <mutex>
#include <new>
#include <stdexcept>

namespace pypto_rt {
namespace {

// Counts forks along the line of ancestors. Guards, and is guarded by, all chips' pool_ members: a
// fork waits for the lock, so a child finds them whole.
struct Processes {
  std::mutex mutex;
  unsigned long generation = 0;
};

Processes& processes() {
  // Never destroyed: fork handlers outlive static destruction.
  static Processes& instance = *[] {
    static auto* created = new Processes;
    pthread_atfork([] { created->mutex.lock(); }, [] { created->mutex.unlock(); },
                   [] {
                     new (&created->mutex) std::mutex;
                     ++created->generation;
                   });
    return created;
  }();
  return instance;
}

// Of another process: its threads are not here to be joined.
void abandon(std::shared_ptr<CorePool>& pool) {
  if (pool != nullptr) new std::shared_ptr<CorePool>(std::move(pool));
}

}  // namespace

Chip::Chip(const ChipOptions& options) : options_(options) {
  if (options.clusters < 1 || options.clusters > 64) {
    throw std::invalid_argument("a chip has 1 to 64 clusters");
  }
  if (options.task_window < 4) throw std::invalid_argument("a task window holds at least 4 tasks");
  if (options.heap_bytes < 1024) throw std::invalid_argument("a heap has at least 1024 bytes");
  processes();
}

Chip::~Chip() { close(); }

std::shared_ptr<CorePool> Chip::cores() {
  Processes& all = processes();
  const std::lock_guard lock(all.mutex);
  if (closed_) throw std::logic_error("the chip is closed");
  if (pool_ != nullptr && generation_ != all.generation) abandon(pool_);
  if (pool_ == nullptr) {
    pool_ = std::make_shared<CorePool>(options_);
    generation_ = all.generation;
  }
  return pool_;
}

void Chip::close() {
  Processes& all = processes();
  std::shared_ptr<CorePool> last;  // before the lock: its threads are joined without it
  const std::lock_guard lock(all.mutex);
  closed_ = true;
  if (pool_ != nullptr && generation_ != all.generation) abandon(pool_);
  last = std::move(pool_);
}

bool Chip::closed() const {
  const std::lock_guard lock(processes().mutex);
  return closed_;
}

}  // namespace pypto_rt
