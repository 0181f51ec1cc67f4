#include "read_batch.h"

#include <cerrno>

namespace pypto_native {

ssize_t read_some(int fd, void* into, size_t bytes) noexcept {
  ssize_t got;
  do {
    got = read(fd, into, bytes);
  } while (got < 0 && errno == EINTR);
  return got;
}

bool read_exactly(int fd, unsigned char* into, size_t bytes) noexcept {
  size_t total = 0;
  do {
    // One byte more than there should be: getting all but that one proves the end as well as a
    // further call would.
    const ssize_t got = read_some(fd, into + total, bytes + 1 - total);
    if (got <= 0) return got == 0 && total == bytes;
    total += static_cast<size_t>(got);
  } while (total < bytes);
  return total == bytes;
}

ReadBatch& ReadBatch::of_thread() {
  thread_local ReadBatch batch;
  return batch;
}

bool ReadBatch::add(int fd, size_t bytes) noexcept {
  unsigned char* const at = bytes_.get() + used_;
  if (!read_exactly(fd, at, bytes)) return false;
  messages_[count_++] = {at, bytes};
  used_ += bytes;
  return true;
}

}  // namespace pypto_native
