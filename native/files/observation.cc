#include "observation.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "read_batch.h"
#include "sha256.h"
#include "tree_digest.h"

namespace pypto_native {
namespace {

constexpr const char* kPresent = "1";
constexpr const char* kAbsent = "";
constexpr size_t kHeadBytes = 4096;
constexpr size_t kMostHeaders = 256;
constexpr uint64_t kMostNoteBytes = 64 * 1024;
constexpr uint32_t kMostIdBytes = 64;
// As pypto_toolchains.disk has them.
const std::vector<std::string_view> kNoModules = {"__pycache__", "dist-packages", "site-packages",
                                                  "test"};

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

bool is_executable(const char* path) {
  struct stat status;
  return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

std::optional<std::string> link_of(const char* path) {
  char text[PATH_MAX];
  const ssize_t bytes = readlink(path, text, sizeof text);
  if (bytes < 0) return errno == EINVAL ? std::optional<std::string>("") : std::nullopt;
  if (static_cast<size_t>(bytes) == sizeof text) return std::nullopt;
  return std::string(text, static_cast<size_t>(bytes));
}

std::optional<std::string> resolved(const char* path) {
  struct Free {
    void operator()(char* text) const noexcept { free(text); }
  };
  const std::unique_ptr<char, Free> found(realpath(path, nullptr));
  if (found == nullptr) return std::nullopt;
  return std::string(found.get());
}

std::optional<std::string> content_digest(int fd) {
  Sha256Hasher hasher;
  ReadBatch& batch = ReadBatch::of_thread();
  batch.clear();
  for (;;) {
    const ssize_t got = read_some(fd, batch.scratch(), ReadBatch::kBytes);
    if (got < 0) return std::nullopt;
    if (got == 0) {
      const Sha256 digest = hasher.finish();
      return hexadecimal(digest.data(), digest.size());
    }
    hasher.update(batch.scratch(), static_cast<size_t>(got));
  }
}

// The names in a directory as pypto_toolchains.disk lists them; empty where there is none.
std::optional<std::string> listing(const char* path) {
  struct Close {
    void operator()(DIR* directory) const noexcept { closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(opendir(path));
  if (directory == nullptr) {
    return errno == ENOENT || errno == ENOTDIR ? std::optional<std::string>("") : std::nullopt;
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return std::nullopt;
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += '\0';
    text += name;
  }
  return text;
}

// The beginning of a file, and any part of it.
class Elf {
 public:
  explicit Elf(int fd) noexcept : fd_(fd) {
    const ssize_t got = pread(fd, head_, sizeof head_, 0);
    head_bytes_ = got < 0 ? 0 : static_cast<size_t>(got);
  }

  const unsigned char* part(uint64_t offset, uint64_t bytes, std::vector<unsigned char>& room) {
    if (offset <= head_bytes_ && bytes <= head_bytes_ - offset) return head_ + offset;
    if (offset >= uint64_t{1} << 62) return nullptr;
    room.resize(bytes);
    const ssize_t got = pread(fd_, room.data(), bytes, static_cast<off_t>(offset));
    return got == static_cast<ssize_t>(bytes) ? room.data() : nullptr;
  }

 private:
  const int fd_;
  size_t head_bytes_ = 0;
  unsigned char head_[kHeadBytes];
};

uint64_t padded(uint64_t size, uint64_t unit, uint64_t start) {
  return size + (unit - (start + size) % unit) % unit;
}

// The Build-ID in a note segment, as "build-id:..."; empty if there is none, nothing if malformed.
std::optional<std::string> id_in_notes(const unsigned char* notes, uint64_t bytes, uint64_t align) {
  const uint64_t unit = align == 8 ? 8 : 4;
  uint64_t at = 0;
  while (at + 12 <= bytes) {
    uint32_t header[3];
    std::memcpy(header, notes + at, sizeof header);
    const uint64_t name_at = at + 12;
    const uint64_t content_at = name_at + padded(header[0], unit, name_at);
    const uint64_t end = content_at + header[1];
    if (end > bytes) return std::nullopt;
    if (header[2] == NT_GNU_BUILD_ID && header[0] == 4 &&
        std::memcmp(notes + name_at, "GNU", 4) == 0) {
      if (header[1] == 0 || header[1] > kMostIdBytes) return std::nullopt;
      return "build-id:" + hexadecimal(notes + content_at, header[1]);
    }
    at = content_at + padded(header[1], unit, content_at);
  }
  return "";
}

// The identity of a native file of this machine's class and byte order, which tools nearly always
// have; nothing for any other.
std::optional<std::string> native_identity(int fd) {
  Elf elf(fd);
  std::vector<unsigned char> room;
  std::vector<unsigned char> note_room;
  const unsigned char* const start = elf.part(0, sizeof(Elf64_Ehdr), room);
  constexpr unsigned char kOrder =
      std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (start == nullptr || std::memcmp(start, ELFMAG, SELFMAG) != 0 ||
      start[EI_CLASS] != ELFCLASS64 || start[EI_DATA] != kOrder) {
    return std::nullopt;
  }
  Elf64_Ehdr header;
  std::memcpy(&header, start, sizeof header);
  if (header.e_phnum == 0) return std::nullopt;
  if (header.e_phnum > kMostHeaders || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  const unsigned char* const table =
      elf.part(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), room);
  if (table == nullptr) return std::nullopt;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, table + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_filesz > kMostNoteBytes) return std::nullopt;
    const unsigned char* const notes = elf.part(segment.p_offset, segment.p_filesz, note_room);
    if (notes == nullptr) return std::nullopt;
    const std::optional<std::string> found = id_in_notes(notes, segment.p_filesz, segment.p_align);
    if (!found || !found->empty()) return found;
  }
  const std::optional<std::string> digest = content_digest(fd);
  return digest ? std::optional<std::string>("sha256:" + *digest) : std::nullopt;
}

std::optional<std::string> digest_of_tree(const std::string& path,
                                          const std::vector<std::string_view>& skipped) {
  try {
    return tree_digest(path, skipped);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

template <class Ask>
std::optional<std::string> of_file(const char* path, Ask ask) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? ask(file.get()) : std::nullopt;
}

}  // namespace

bool still_holds(std::string_view kind, const std::string& path, std::string_view answer) {
  const char* const name = path.c_str();
  if (path.find('\0') != std::string::npos) return false;
  std::optional<std::string> found;
  if (kind == "executable") found = is_executable(name) ? kPresent : kAbsent;
  if (kind == "exists") found = access(name, F_OK) == 0 ? kPresent : kAbsent;
  if (kind == "link") found = link_of(name);
  if (kind == "resolved") found = resolved(name);
  if (kind == "identity") found = of_file(name, native_identity);
  if (kind == "sha256") found = of_file(name, content_digest);
  if (kind == "listing") found = listing(name);
  if (kind == "tree") found = digest_of_tree(path, {});
  if (kind == "modules") found = digest_of_tree(path, kNoModules);
  return found && *found == answer;
}

}  // namespace pypto_native
