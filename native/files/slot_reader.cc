#include "slot_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "read_batch.h"
#include "sha256.h"

namespace pypto_native {
namespace {

// O_NONBLOCK: opening a FIFO that someone put into an entry must not wait for its writer.
constexpr int kFileFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr size_t kNameLimit = 255;

// A name of one component, as the system wants it.
class Name {
 public:
  explicit Name(std::string_view name) noexcept {
    const size_t bytes = std::min(name.size(), kNameLimit);
    std::memcpy(text_, name.data(), bytes);
    text_[bytes] = '\0';
  }
  const char* get() const noexcept { return text_; }

 private:
  char text_[kNameLimit + 1];
};

bool is_hexadecimal(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool is_word(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_plain(char c) noexcept {
  return is_word(c) || c == '.' || c == '+' || c == '@' || c == '=' || c == '-';
}

// Components that begin with a word character and hold plain ones, between single slashes.
bool is_plain_path(std::string_view path) noexcept {
  bool begins = true;
  for (const char c : path) {
    if (begins ? !is_word(c) : !(is_plain(c) || c == '/')) return false;
    begins = c == '/';
  }
  return !begins;
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) noexcept : rest_(text) {}

  bool skip(std::string_view expected) noexcept {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  // What comes before the next quotation mark, which is skipped.
  bool quoted(std::string_view& value) noexcept {
    const size_t end = rest_.find('"');
    if (end == std::string_view::npos) return false;
    value = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  // At most 18 digits, so that it fits; none before which is a zero.
  bool number(uint64_t& value) noexcept {
    size_t digits = 0;
    value = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
      if (digits == 18) return false;
      value = value * 10 + static_cast<uint64_t>(rest_[digits] - '0');
      ++digits;
    }
    if (digits == 0 || (digits > 1 && rest_.front() == '0')) return false;
    rest_.remove_prefix(digits);
    return true;
  }

  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

bool parse_file(Cursor& cursor, const SlotRules& rules, InventoryFile& file) noexcept {
  if (!cursor.skip("{\"executable\":")) return false;
  file.executable = cursor.skip("true");
  if (!file.executable && !cursor.skip("false")) return false;
  if (!cursor.skip(",\"path\":\"") || !cursor.quoted(file.path)) return false;
  if (!cursor.skip(",\"sha256\":\"") || !cursor.quoted(file.sha256)) return false;
  if (!cursor.skip(",\"size\":") || !cursor.number(file.size) || !cursor.skip("}")) return false;
  return file.path.size() <= rules.path_limit && is_plain_path(file.path) &&
         file.path != rules.manifest_name && file.path != rules.signature_name &&
         file.sha256.size() == 64 &&
         std::all_of(file.sha256.begin(), file.sha256.end(), is_hexadecimal);
}

bool parse_files(Cursor& cursor, const SlotRules& rules, std::vector<InventoryFile>& files) {
  if (cursor.rest().starts_with(']')) return true;
  do {
    InventoryFile file;
    if (!parse_file(cursor, rules, file)) return false;
    if (!files.empty() && files.back().path >= file.path) return false;
    files.push_back(file);
  } while (cursor.skip(","));
  return true;
}

// Whether no file is where another one has a directory. The files are sorted.
bool is_tree(const std::vector<InventoryFile>& files) noexcept {
  const auto below = [](const InventoryFile& file, std::string_view path) {
    return file.path < path;
  };
  for (const InventoryFile& file : files) {
    for (size_t end = file.path.rfind('/'); end != std::string_view::npos;
         end = file.path.rfind('/', end - 1)) {
      const std::string_view parent = file.path.substr(0, end);
      const auto found = std::lower_bound(files.begin(), files.end(), parent, below);
      if (found != files.end() && found->path == parent) return false;
    }
  }
  return true;
}

bool has_digest(const Sha256& digest, std::string_view hexadecimal) noexcept {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < digest.size(); ++i) {
    if (hexadecimal[2 * i] != kDigits[digest[i] >> 4] ||
        hexadecimal[2 * i + 1] != kDigits[digest[i] & 15]) {
      return false;
    }
  }
  return true;
}

// Of the right kind, size and mode. Executable is checked one way: some builders make every output
// executable.
bool is_as_recorded(int fd, const InventoryFile& file) noexcept {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) == file.size &&
         (!file.executable || (status.st_mode & 0111) != 0);
}

class PayloadCheck {
 public:
  PayloadCheck(const SlotManifest& manifest, const SlotRules& rules, std::vector<KeptFile>& kept)
      : files_(manifest.files),
        rules_(rules),
        kept_(kept),
        budget_(rules.keep_total),
        batch_(ReadBatch::of_thread()) {
    batch_.clear();
  }

  bool run(int slot) {
    // Whoever is asked next reads the caller's directory from its beginning too.
    const bool found = lseek(slot, 0, SEEK_SET) == 0 && directory(slot, 0, files_.size(), 0);
    return lseek(slot, 0, SEEK_SET) == 0 && found && flush();
  }

 private:
  // The files [begin, end) lie below this directory; their paths have `prefix` bytes in common.
  bool directory(int fd, size_t begin, size_t end, size_t prefix) {
    std::vector<std::string_view> names;
    names.reserve(end - begin);
    for (size_t i = begin; i < end; i = skip_child(i, end, prefix)) {
      names.push_back(child_name(i, prefix));
    }
    std::sort(names.begin(), names.end());
    if (!has_exactly(fd, names, prefix == 0)) return false;
    for (size_t i = begin; i < end;) {
      const size_t next = skip_child(i, end, prefix);
      const std::string_view name = child_name(i, prefix);
      const bool is_file = prefix + name.size() == files_[i].path.size();
      if (!(is_file ? file(fd, name, i) : subdirectory(fd, name, i, next, prefix))) return false;
      i = next;
    }
    return true;
  }

  std::string_view child_name(size_t i, size_t prefix) const noexcept {
    const std::string_view rest = files_[i].path.substr(prefix);
    return rest.substr(0, rest.find('/'));
  }

  // The first of the files after i that is not below the same child; paths are sorted, so those
  // below a directory follow each other.
  size_t skip_child(size_t i, size_t end, size_t prefix) const noexcept {
    const size_t length = prefix + child_name(i, prefix).size();
    if (length == files_[i].path.size()) return i + 1;
    const std::string_view below = files_[i].path.substr(0, length + 1);
    do {
      ++i;
    } while (i < end && files_[i].path.starts_with(below));
    return i;
  }

  // Whether the directory holds these names and no other, but for the reserved ones at the top.
  bool has_exactly(int fd, const std::vector<std::string_view>& names, bool top) {
    struct Entry {
      uint64_t inode;
      int64_t offset;
      unsigned short length;
      unsigned char type;
      char name[];
    };
    alignas(Entry) char buffer[8192];
    size_t found = 0;
    for (;;) {
      const long got = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
      if (got < 0) return false;
      if (got == 0) return found == names.size();
      for (long at = 0; at < got;) {
        const auto* const entry = reinterpret_cast<const Entry*>(buffer + at);
        at += entry->length;
        const std::string_view name(entry->name);
        if (name == "." || name == "..") continue;
        if (std::binary_search(names.begin(), names.end(), name)) {
          ++found;
        } else if (!top || !(name == rules_.manifest_name || is_signature(fd, name))) {
          return false;
        }
      }
    }
  }

  bool is_signature(int fd, std::string_view name) const noexcept {
    struct stat status;
    return name == rules_.signature_name &&
           fstatat(fd, rules_.signature_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode);
  }

  bool subdirectory(int fd, std::string_view name, size_t begin, size_t end, size_t prefix) {
    const Descriptor child(openat(fd, Name(name).get(), kDirectoryFlags));
    return child && directory(child.get(), begin, end, prefix + name.size() + 1);
  }

  bool file(int directory, std::string_view name, size_t index) {
    const InventoryFile& record = files_[index];
    const Descriptor opened(openat(directory, Name(name).get(), kFileFlags));
    if (!opened || !is_as_recorded(opened.get(), record)) return false;
    if (!ReadBatch::could_hold(record.size)) return flush() && large_file(opened.get(), record);
    if (!batch_.has_room(record.size) && !flush()) return false;
    pending_[batch_.count()] = index;
    return batch_.add(opened.get(), record.size);
  }

  bool large_file(int fd, const InventoryFile& record) noexcept {
    Sha256Hasher hasher;
    uint64_t total = 0;
    for (;;) {
      const ssize_t got = read_some(fd, batch_.scratch(), ReadBatch::kBytes);
      if (got < 0) return false;
      if (got == 0) return total == record.size && has_digest(hasher.finish(), record.sha256);
      total += static_cast<uint64_t>(got);
      if (total > record.size) return false;
      hasher.update(batch_.scratch(), static_cast<size_t>(got));
    }
  }

  // Hashes and compares what was read, and keeps what is small.
  bool flush() {
    Sha256 digests[ReadBatch::kFiles];
    batch_.hash(digests);
    for (size_t i = 0; i < batch_.count(); ++i) {
      const InventoryFile& record = files_[pending_[i]];
      if (!has_digest(digests[i], record.sha256)) return false;
      if (record.size <= rules_.keep_file && record.size <= budget_) {
        budget_ -= record.size;
        const Message& message = batch_[i];
        kept_.push_back(
            {record.path, std::string(reinterpret_cast<const char*>(message.data), message.bytes)});
      }
    }
    batch_.clear();
    return true;
  }

  const std::vector<InventoryFile>& files_;
  const SlotRules& rules_;
  std::vector<KeptFile>& kept_;
  uint64_t budget_;
  ReadBatch& batch_;
  size_t pending_[ReadBatch::kFiles];
};

}  // namespace

bool read_slot_manifest(int slot, std::string_view head, std::string_view middle,
                        const SlotRules& rules, SlotManifest& manifest) {
  const Descriptor opened(openat(slot, rules.manifest_name.c_str(), kFileFlags));
  struct stat status;
  if (!opened || fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto bytes = static_cast<size_t>(status.st_size);
  if (bytes > rules.manifest_limit) return false;
  manifest.text.resize(bytes + 1);
  if (!read_exactly(opened.get(), reinterpret_cast<unsigned char*>(manifest.text.data()), bytes)) {
    return false;
  }
  manifest.text.resize(bytes);
  Cursor cursor(manifest.text);
  if (!cursor.skip(head) || !parse_files(cursor, rules, manifest.files)) return false;
  if (!is_tree(manifest.files) || !cursor.skip(middle) || !cursor.rest().ends_with("}\n"))
    return false;
  manifest.spec = cursor.rest().substr(0, cursor.rest().size() - 2);
  return true;
}

bool check_payload(int slot, const SlotManifest& manifest, const SlotRules& rules,
                   std::vector<KeptFile>& kept) {
  return PayloadCheck(manifest, rules, kept).run(slot);
}

std::optional<std::string> read_payload_file(int slot, const InventoryFile& file, size_t limit) {
  if (file.size > limit || file.path.find('/') != std::string_view::npos) return std::nullopt;
  const Descriptor opened(openat(slot, Name(file.path).get(), kFileFlags));
  if (!opened || !is_as_recorded(opened.get(), file)) return std::nullopt;
  std::string content(file.size + 1, '\0');
  auto* const into = reinterpret_cast<unsigned char*>(content.data());
  if (!read_exactly(opened.get(), into, file.size)) return std::nullopt;
  content.resize(file.size);
  const Message message{into, file.size};
  Sha256 digest;
  sha256_messages(&message, 1, &digest);
  if (!has_digest(digest, file.sha256)) return std::nullopt;
  return content;
}

}  // namespace pypto_native
