#include "file_hashing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "read_batch.h"

namespace pypto_native {
namespace {

// Opening a small file costs as much as hashing it, and files are independent: from a few on, a
// second thread halves the wait.
constexpr size_t kWorthAThread = 16;

// How many files a thread takes at a time; hashed two at a time, each pair costs little more than
// one file.
constexpr size_t kTogether = 8;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};

bool is_one_of(std::string_view name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_source(std::string_view name, const SourceRules& rules) {
  return std::any_of(rules.suffixes.begin(), rules.suffixes.end(),
                     [name](const std::string& suffix) { return name.ends_with(suffix); });
}

void collect(const std::string& directory, const std::string& prefix, const SourceRules& rules,
             bool may_be_a_file, std::vector<std::string>& names) {
  const std::unique_ptr<DIR, CloseDirectory> opened(opendir(directory.c_str()));
  if (opened == nullptr) {
    if (errno == ENOTDIR && may_be_a_file) return;
    throw std::system_error(errno, std::generic_category(), directory);
  }
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(opened.get());
    if (entry == nullptr) {
      if (errno != 0) throw std::system_error(errno, std::generic_category(), directory);
      return;
    }
    const std::string_view name(entry->d_name);
    if (is_source(name, rules)) {
      names.push_back(prefix + entry->d_name);
    } else if (entry->d_type != DT_REG && name.find('.') == std::string_view::npos &&
               !is_one_of(name, rules.skipped_directories)) {
      collect(directory + "/" + entry->d_name, prefix + entry->d_name + "/", rules, true, names);
    }
  }
}

Sha256 hash_in_pieces(int fd, const std::string& path, ReadBatch& batch) {
  Sha256Hasher hasher;
  if (lseek(fd, 0, SEEK_SET) < 0 && errno != ESPIPE) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  for (;;) {
    const ssize_t got = read_some(fd, batch.scratch(), ReadBatch::kBytes);
    if (got < 0) throw std::system_error(errno, std::generic_category(), path);
    if (got == 0) return hasher.finish();
    hasher.update(batch.scratch(), static_cast<size_t>(got));
  }
}

// Hashes the files [begin, end) of `paths` into the same places of `digests`.
void hash_some(const std::vector<std::string>& paths, size_t begin, size_t end, Sha256* digests) {
  ReadBatch& batch = ReadBatch::of_thread();
  batch.clear();
  size_t pending[ReadBatch::kFiles];
  const auto flush = [&] {
    Sha256 found[ReadBatch::kFiles];
    batch.hash(found);
    for (size_t i = 0; i < batch.count(); ++i) digests[pending[i]] = found[i];
    batch.clear();
  };
  for (size_t i = begin; i < end; ++i) {
    const std::string& path = paths[i];
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (!file || fstat(file.get(), &status) != 0) {
      throw std::system_error(errno, std::generic_category(), path);
    }
    const auto bytes = static_cast<uint64_t>(status.st_size);
    // Only a file that stays as long as it says is read in one piece; others have no such size.
    if (S_ISREG(status.st_mode) && bytes > 0 && ReadBatch::could_hold(bytes)) {
      if (!batch.has_room(bytes)) flush();
      pending[batch.count()] = i;
      if (batch.add(file.get(), bytes)) continue;
    }
    flush();
    digests[i] = hash_in_pieces(file.get(), path, batch);
  }
  flush();
}

}  // namespace

// What the thread has found so far. It only adds, and says so after each step; what is not said to
// be there, because the thread has not come to it, has met a failure or is in another process,
// whoever waits finds out without it.
struct FileHashing::Work {
  explicit Work(Lister lister) : list(std::move(lister)) {}

  const Lister list;
  Listing files;
  std::vector<Sha256> digests;
  std::unique_ptr<std::atomic<bool>[]> done;  // of each kTogether files
  std::atomic<size_t> next{0};
  std::atomic<bool> listed{false};

  void set_files(Listing found) {
    files = std::move(found);
    digests.resize(files.paths.size());
    done = std::make_unique<std::atomic<bool>[]>(steps());
    listed.store(true, std::memory_order_release);
  }

  size_t steps() const noexcept { return (files.paths.size() + kTogether - 1) / kTogether; }

  void hash_step(size_t step, Sha256* into) const {
    const size_t begin = step * kTogether;
    hash_some(files.paths, begin, std::min(begin + kTogether, files.paths.size()), into);
  }

  // Until all steps were begun, by this thread or by another one.
  void hash() {
    for (size_t step = next++; step < steps(); step = next++) {
      hash_step(step, digests.data());
      done[step].store(true, std::memory_order_release);
    }
  }

  void run() noexcept {
    try {
      if (!listed) set_files(list());
      hash();
    } catch (...) {
      // Whoever waits meets the same failure, and can say so.
    }
  }
};

FileHashing::FileHashing(std::vector<std::string> paths) : work_(std::make_shared<Work>(Lister())) {
  const bool worth_a_thread = paths.size() >= kWorthAThread;
  work_->set_files({std::move(paths), {}});
  if (worth_a_thread) start_helper();
}

FileHashing::FileHashing(Lister list) : work_(std::make_shared<Work>(std::move(list))) {
  start_helper();
}

FileHashing::~FileHashing() {
  // A helper that is on its way ends after its step; it owns what it works on.
  work_->next = std::numeric_limits<size_t>::max() / 2;
}

void FileHashing::start_helper() {
  try {
    std::thread([work = work_] { work->run(); }).detach();
  } catch (const std::system_error&) {
    // No thread to be had: whoever waits does it all.
  }
}

const std::vector<Sha256>& FileHashing::wait() {
  if (waited_) return digests_;
  // Not a moment is spent waiting for the helper: on a busy machine its turn may come late.
  if (!work_->listed.load(std::memory_order_acquire)) {
    auto own = std::make_shared<Work>(work_->list);
    own->set_files(own->list());
    work_->next = std::numeric_limits<size_t>::max() / 2;
    work_ = std::move(own);
  }
  work_->hash();
  digests_.resize(work_->files.paths.size());
  for (size_t step = 0; step < work_->steps(); ++step) {
    if (work_->done[step].load(std::memory_order_acquire)) {
      const size_t begin = step * kTogether;
      const size_t end = std::min(begin + kTogether, digests_.size());
      std::copy(work_->digests.begin() + static_cast<ptrdiff_t>(begin),
                work_->digests.begin() + static_cast<ptrdiff_t>(end),
                digests_.begin() + static_cast<ptrdiff_t>(begin));
    } else {
      work_->hash_step(step, digests_.data());
    }
  }
  waited_ = true;
  return digests_;
}

const Listing& FileHashing::files() const noexcept { return work_->files; }

std::vector<std::string> list_sources(const std::string& root, const SourceRules& rules) {
  std::vector<std::string> names;
  collect(root, "", rules, false, names);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pypto_native
