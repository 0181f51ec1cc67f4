#include "file_hashing.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

namespace pypto_native {
namespace {

// Opening a small file costs as much as hashing it, and files are independent: from a few on, a
// second thread halves the wait.
constexpr size_t kWorthAThread = 16;

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

}  // namespace

FileHashing::FileHashing(std::vector<std::string> paths)
    : paths_(std::move(paths)), digests_(paths_.size()), pid_(getpid()) {
  if (paths_.size() < kWorthAThread) return;
  try {
    helper_ = std::make_unique<std::thread>([this] { work(failures_[1]); });
  } catch (const std::system_error&) {
    // No thread to be had: whoever waits does it all.
  }
}

FileHashing::~FileHashing() {
  forget_the_parents_helper();
  next_ = paths_.size();
  if (helper_ != nullptr && helper_->joinable()) helper_->join();
}

const std::vector<Sha256>& FileHashing::wait() {
  forget_the_parents_helper();
  work(failures_[0]);
  if (helper_ != nullptr && helper_->joinable()) helper_->join();
  for (const std::exception_ptr& failure : failures_) {
    if (failure) std::rethrow_exception(failure);
  }
  return digests_;
}

void FileHashing::work(std::exception_ptr& failure) noexcept {
  try {
    FileBuffer buffer;
    for (size_t i = next_++; i < paths_.size(); i = next_++) {
      digests_[i] = sha256_file(paths_[i], buffer);
    }
  } catch (...) {
    failure = std::current_exception();
    next_ = paths_.size();
  }
}

void FileHashing::forget_the_parents_helper() noexcept {
  if (helper_ == nullptr || getpid() == pid_) return;
  // Neither joining nor detaching works on a thread that is not in this process.
  static_cast<void>(helper_.release());
  next_ = 0;
  for (std::exception_ptr& failure : failures_) failure = nullptr;
}

std::vector<std::string> list_sources(const std::string& root, const SourceRules& rules) {
  std::vector<std::string> names;
  collect(root, "", rules, false, names);
  return names;
}

}  // namespace pypto_native
