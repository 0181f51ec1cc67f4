// Hashing many files, and the sources of whole directories, with more than one thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sha256.h"

namespace pypto_native {

// Hashes files from its birth on: in a thread of its own where that pays, and in whoever waits.
// A child forked meanwhile has no such thread; there, whoever waits does it all.
class FileHashing {
 public:
  using Lister = std::function<std::vector<std::string>()>;

  explicit FileHashing(std::vector<std::string> paths);
  // `list` says which files, in the thread where there is one; what it throws is thrown by wait().
  explicit FileHashing(Lister list);
  ~FileHashing();
  FileHashing(const FileHashing&) = delete;
  FileHashing& operator=(const FileHashing&) = delete;

  // In the order of the paths. Throws std::system_error for a file that cannot be read.
  const std::vector<Sha256>& wait();

  // The files; after wait().
  const std::vector<std::string>& paths() const noexcept;

 private:
  struct Work;

  void start_helper();
  void forget_the_parents_helper();

  const Lister list_;
  const pid_t pid_;
  std::unique_ptr<Work> work_;
  std::unique_ptr<std::thread> helper_;
};

// What is a source: names with one of the suffixes. Directories have no dot in their names.
struct SourceRules {
  std::vector<std::string> suffixes;
  std::vector<std::string> skipped_directories;
};

// The sources below `root` by relative name, sorted. Throws std::system_error.
std::vector<std::string> list_sources(const std::string& root, const SourceRules& rules);

}  // namespace pypto_native
