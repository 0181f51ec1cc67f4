#include "tree_digest.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "file_hashing.h"
#include "sha256.h"

namespace pypto_native {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};

struct Entry {
  std::string name;   // relative to the root
  std::string state;  // empty for a file whose content is to be hashed
};

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

class Collector {
 public:
  Collector(const std::string& root, const std::vector<std::string_view>& skipped)
      : root_(root), skipped_(skipped) {}

  // False if `root` is no directory.
  bool collect() {
    const std::unique_ptr<DIR, CloseDirectory> top(opendir(root_.c_str()));
    if (top == nullptr) {
      if (errno == ENOENT || errno == ENOTDIR) return false;
      fail(root_);
    }
    below(top.get(), "");
    return true;
  }

  std::vector<Entry>& entries() noexcept { return entries_; }

 private:
  std::string path_of(const std::string& name) const { return root_ + "/" + name; }

  void below(DIR* directory, const std::string& prefix) {
    struct stat status;
    if (fstat(dirfd(directory), &status) != 0) fail(path_of(prefix));
    const std::pair<dev_t, ino_t> here(status.st_dev, status.st_ino);
    if (std::find(above_.begin(), above_.end(), here) != above_.end()) {
      entries_.push_back({prefix.substr(0, prefix.size() - 1), "loop"});
      return;
    }
    above_.push_back(here);
    for (;;) {
      errno = 0;
      const dirent* const found = readdir(directory);
      if (found == nullptr) break;
      const std::string_view name(found->d_name);
      if (name != "." && name != "..") entry(prefix, *found);
    }
    if (errno != 0) fail(path_of(prefix));
    above_.pop_back();
  }

  void entry(const std::string& prefix, const dirent& found) {
    std::string name = prefix + found.d_name;
    unsigned char type = found.d_type;
    if (type == DT_LNK || type == DT_UNKNOWN) {
      struct stat status;
      if (stat(path_of(name).c_str(), &status) != 0) {
        if (errno != ENOENT && errno != ELOOP) fail(path_of(name));
        entries_.push_back({std::move(name), "dangling"});
        return;
      }
      type = IFTODT(status.st_mode);
    }
    if (type == DT_REG) {
      entries_.push_back({std::move(name), ""});
    } else if (type != DT_DIR) {
      entries_.push_back({std::move(name), "special"});
    } else if (std::find(skipped_.begin(), skipped_.end(), found.d_name) == skipped_.end()) {
      const std::unique_ptr<DIR, CloseDirectory> opened(opendir(path_of(name).c_str()));
      if (opened == nullptr) fail(path_of(name));
      below(opened.get(), name + "/");
    }
  }

  const std::string& root_;
  const std::vector<std::string_view>& skipped_;
  std::vector<std::pair<dev_t, ino_t>> above_;
  std::vector<Entry> entries_;
};

std::string hexadecimal(const Sha256& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

std::string tree_digest(const std::string& root, const std::vector<std::string_view>& skipped) {
  Collector collector(root, skipped);
  if (!collector.collect()) return "";
  std::vector<Entry>& entries = collector.entries();
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  std::vector<std::string> paths;
  for (const Entry& entry : entries) {
    if (entry.state.empty()) paths.push_back(root + "/" + entry.name);
  }
  FileHashing hashing(std::move(paths));
  const std::vector<Sha256>& digests = hashing.wait();
  Sha256Hasher content;
  size_t next = 0;
  std::string line;
  for (const Entry& entry : entries) {
    const std::string state = entry.state.empty() ? hexadecimal(digests[next++]) : entry.state;
    line.assign(entry.name).append(1, '\0').append(state).append(1, '\n');
    content.update(reinterpret_cast<const unsigned char*>(line.data()), line.size());
  }
  return hexadecimal(content.finish());
}

}  // namespace pypto_native
