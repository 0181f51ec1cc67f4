// The command: ptoas IN.pto -o OUT.cpp. Exit status 0: done; 1: the text is wrong; 2: the command
// line is wrong, or a file cannot be read or written.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "assembler.h"
#include "instruction_table.h"
#include "targets.h"
#include "version.h"

namespace {

enum Status : int { kDone = 0, kBadText = 1, kBadCommand = 2 };

constexpr char kUsage[] =
    "usage: ptoas [options] IN.pto\n"
    "Translates PTO assembly to C++. IN.pto may be '-' for standard input.\n"
    "  -o FILE                write to FILE; '-' or nothing is standard output\n"
    "  --pto-arch=ARCH        a2a3 or a5; must agree with the module's pto.target_arch\n"
    "  --pto-level=LEVEL      accepted, no effect\n"
    "  --enable-insert-sync   accepted, no effect\n"
    "  --list-instructions    print every form of every instruction\n"
    "  --version              print the version\n"
    "  --help                 print this text\n";

struct Options {
  std::string input;
  std::string output = "-";
  std::string arch;
};

int complain(const std::string& message) {
  std::fprintf(stderr, "ptoas: error: %s\n", message.c_str());
  return kBadCommand;
}

std::string reason() { return std::strerror(errno); }

struct FileCloser {
  int descriptor;
  ~FileCloser() {
    if (descriptor > 2) ::close(descriptor);
  }
};

// At most one byte more than the assembler accepts, so that endless input ends.
ptoas::Expected<std::string, std::string> read_all(const std::string& path) {
  const int descriptor = path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ptoas::Unexpected{"cannot open '" + path + "': " + reason()};
  const FileCloser closer{descriptor};
  std::string text;
  char buffer[1 << 16];
  while (text.size() <= ptoas::Source::kMaxBytes) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ptoas::Unexpected{"cannot read '" + path + "': " + reason()};
    if (count == 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

bool write_fully(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Writes beside the target and renames, so that the target is never half written. Returns what
// went wrong, or "".
std::string publish(const std::string& path, const std::string& text) {
  if (path == "-") return write_fully(1, text) ? "" : "cannot write: " + reason();
  struct stat existing{};
  if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    // A pipe or /dev/null: a rename would replace it.
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return "cannot open '" + path + "': " + reason();
    const FileCloser closer{descriptor};
    return write_fully(descriptor, text) ? "" : "cannot write '" + path + "': " + reason();
  }
  const std::string staged = path + ".tmp." + std::to_string(::getpid());
  const int descriptor = ::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return "cannot create '" + staged + "': " + reason();
  const bool written = write_fully(descriptor, text);
  std::string failure = written ? "" : "cannot write '" + staged + "': " + reason();
  if (::close(descriptor) != 0 && failure.empty()) {
    failure = "cannot write '" + staged + "': " + reason();
  }
  if (failure.empty() && ::rename(staged.c_str(), path.c_str()) != 0) {
    failure = "cannot rename '" + staged + "' to '" + path + "': " + reason();
  }
  if (!failure.empty()) ::unlink(staged.c_str());
  return failure;
}

// Options that take a value, as --name=VALUE or --name VALUE.
struct ValueOption {
  std::string_view name;
  std::string Options::* target;  // null: accepted, no effect
};

constexpr ValueOption kValueOptions[] = {
    {"-o", &Options::output},
    {"--pto-arch", &Options::arch},
    {"--pto-level", nullptr},
};

// What is wrong with the command line, or "".
std::string parse_options(int argc, char** argv, Options& options) {
  bool has_input = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const ValueOption* option = nullptr;
    std::string_view value;
    bool has_value = false;
    for (const ValueOption& row : kValueOptions) {
      if (argument == row.name) option = &row;
      if (argument.size() > row.name.size() && argument.starts_with(row.name) &&
          argument[row.name.size()] == '=') {
        option = &row;
        value = argument.substr(row.name.size() + 1);
        has_value = true;
      }
    }
    if (option != nullptr) {
      if (!has_value) {
        if (i + 1 == argc) return "'" + std::string(argument) + "' needs a value";
        value = argv[++i];
      }
      if (option->target != nullptr) options.*option->target = value;
      continue;
    }
    if (argument == "--enable-insert-sync") continue;
    if (argument.size() > 1 && argument[0] == '-') {
      return "unknown option '" + std::string(argument) + "'";
    }
    if (has_input) return "more than one input: '" + std::string(argument) + "'";
    options.input = argument;
    has_input = true;
  }
  if (!has_input || options.input.empty()) return "no input file";
  if (options.output.empty()) return "-o needs a file name";
  if (!options.arch.empty() && ptoas::target_named(options.arch) == nullptr) {
    return "unknown architecture '" + options.arch + "'";
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--version") return std::printf("ptoas %s\n", ptoas::kVersion) < 0;
    if (argument == "--list-instructions") {
      for (const ptoas::InstructionSpec& spec : ptoas::instruction_table()) {
        std::printf("%s\n", ptoas::signature_text(spec).c_str());
      }
      return std::ferror(stdout);
    }
    if (argument == "--help") return std::fputs(kUsage, stdout) < 0;
  }
  Options options;
  if (const std::string wrong = parse_options(argc, argv, options); !wrong.empty()) {
    std::fputs(kUsage, stderr);
    return complain(wrong);
  }
  auto text = read_all(options.input);
  if (!text) return complain(text.error());
  const std::string shown = options.input == "-" ? "<stdin>" : options.input;
  auto source = ptoas::Source::from_text(shown, std::move(*text));
  if (!source) {
    std::fprintf(stderr, "%s:1:1: error: %s\n", shown.c_str(), source.error().message.c_str());
    return kBadText;
  }
  const auto output = ptoas::assemble(*source, options.arch);
  if (!output) {
    for (const ptoas::Diagnostic& diagnostic : output.error()) {
      std::fputs(source->render(diagnostic).c_str(), stderr);
    }
    return kBadText;
  }
  if (const std::string failure = publish(options.output, *output); !failure.empty()) {
    return complain(failure);
  }
  return kDone;
}
