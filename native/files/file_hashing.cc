#include "file_hashing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>
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

}  // namespace

// What the thread and whoever waits share.
struct FileHashing::Work {
  std::vector<std::string> paths;
  std::vector<Sha256> digests;
  std::atomic<size_t> next{0};
  std::atomic<bool> listed{false};
  std::exception_ptr failures[2];

  void list(const Lister& lister, std::exception_ptr& failure) noexcept {
    try {
      paths = lister();
      digests.resize(paths.size());
    } catch (...) {
      failure = std::current_exception();
      paths.clear();
    }
    listed = true;
    listed.notify_all();
  }

  void hash(std::exception_ptr& failure) noexcept {
    try {
      ReadBatch& batch = ReadBatch::of_thread();
      batch.clear();
      for (size_t begin = next.fetch_add(kTogether); begin < paths.size();
           begin = next.fetch_add(kTogether)) {
        hash_some(begin, std::min(begin + kTogether, paths.size()), batch);
      }
    } catch (...) {
      failure = std::current_exception();
      next = paths.size();
    }
  }

 private:
  void hash_some(size_t begin, size_t end, ReadBatch& batch) {
    size_t pending[kTogether];
    const auto flush = [&] {
      Sha256 found[kTogether];
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
};

FileHashing::FileHashing(std::vector<std::string> paths)
    : pid_(getpid()), work_(std::make_unique<Work>()) {
  work_->paths = std::move(paths);
  work_->digests.resize(work_->paths.size());
  work_->listed = true;
  if (work_->paths.size() >= kWorthAThread) start_helper();
}

FileHashing::FileHashing(Lister list)
    : list_(std::move(list)), pid_(getpid()), work_(std::make_unique<Work>()) {
  start_helper();
}

FileHashing::~FileHashing() {
  if (getpid() != pid_) {
    forget_the_parents_helper();
    return;
  }
  if (helper_ == nullptr || !helper_->joinable()) return;
  work_->listed.wait(false);
  work_->next = work_->paths.size();
  helper_->join();
}

void FileHashing::start_helper() {
  try {
    helper_ = std::make_unique<std::thread>([this] {
      if (!work_->listed) work_->list(list_, work_->failures[1]);
      work_->hash(work_->failures[1]);
    });
  } catch (const std::system_error&) {
    // No thread to be had: whoever waits does it all.
  }
}

const std::vector<Sha256>& FileHashing::wait() {
  if (getpid() != pid_) forget_the_parents_helper();
  if (helper_ == nullptr) {
    if (!work_->listed) work_->list(list_, work_->failures[0]);
  } else {
    work_->listed.wait(false);
  }
  work_->hash(work_->failures[0]);
  if (helper_ != nullptr && helper_->joinable()) helper_->join();
  for (const std::exception_ptr& failure : work_->failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return work_->digests;
}

const std::vector<std::string>& FileHashing::paths() const noexcept { return work_->paths; }

void FileHashing::forget_the_parents_helper() {
  if (helper_ == nullptr) return;
  // Neither joining nor detaching works on a thread that is not in this process, and it may have
  // been in the middle of any of the shared values.
  static_cast<void>(helper_.release());
  auto fresh = std::make_unique<Work>();
  if (!list_) {
    fresh->paths = work_->paths;  // not changed after the thread's start
    fresh->digests.resize(fresh->paths.size());
    fresh->listed = true;
  }
  static_cast<void>(work_.release());
  work_ = std::move(fresh);
}

std::vector<std::string> list_sources(const std::string& root, const SourceRules& rules) {
  std::vector<std::string> names;
  collect(root, "", rules, false, names);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pypto_native
