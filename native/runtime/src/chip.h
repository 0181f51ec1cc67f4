// A simulated chip: its cores, in whichever process it is used.
#pragma once

#include <memory>

#include "core_pool.h"

namespace pypto_rt {

// Thread-safe. A forked child gets cores of its own on first use: the parent's threads do not exist
// there, and its locks may be held for ever.
class Chip {
 public:
  explicit Chip(const ChipOptions& options);  // std::invalid_argument
  ~Chip();
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  const ChipOptions& options() const noexcept { return options_; }

  // The cores, kept alive by what is returned. std::logic_error after close().
  std::shared_ptr<CorePool> cores();

  // Ends the cores once the last run on them has ended. Idempotent.
  void close();
  bool closed() const;

 private:
  const ChipOptions options_;
  bool closed_ = false;
  std::shared_ptr<CorePool> pool_;
  unsigned long generation_ = 0;  // of the process that pool_ belongs to
};

}  // namespace pypto_rt
