// Hashing many files, and the sources of whole directories, with more than one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sha256.h"

namespace pypto_native {

// The files of several places, those of one after those of another: place i has the paths up to
// ends[i].
struct Listing {
  std::vector<std::string> paths;
  std::vector<size_t> ends;
};

// Hashes files from its birth on: in a thread of its own where that pays, and in whoever waits.
// The thread only helps: nobody waits for it, so neither a fork nor a busy machine matters.
class FileHashing {
 public:
  using Lister = std::function<Listing()>;

  explicit FileHashing(std::vector<std::string> paths);
  // `list` says which files, in the thread or in whoever waits, or in both; what it throws is
  // thrown by wait().
  explicit FileHashing(Lister list);
  ~FileHashing();
  FileHashing(const FileHashing&) = delete;
  FileHashing& operator=(const FileHashing&) = delete;

  // In the order of the paths. Throws std::system_error for a file that cannot be read.
  const std::vector<Sha256>& wait();

  // The files; after wait().
  const Listing& files() const noexcept;

 private:
  struct Work;

  void start_helper();

  std::shared_ptr<Work> work_;
  std::vector<Sha256> digests_;
  bool waited_ = false;
};

// What is a source: names with one of the suffixes. Directories have no dot in their names.
struct SourceRules {
  std::vector<std::string> suffixes;
  std::vector<std::string> skipped_directories;
};

// The sources below `root` by relative name, sorted. Throws std::system_error.
std::vector<std::string> list_sources(const std::string& root, const SourceRules& rules);

}  // namespace pypto_native
