#include "source.h"

#include <algorithm>

namespace ptoas {
namespace {

// What of a long line is shown: enough to recognise it on a terminal.
constexpr std::size_t kContextBefore = 100;
constexpr std::size_t kContextAfter = 60;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 200;
  const bool whole = text.size() <= kShown;
  return "'" + std::string(text.substr(0, kShown)) + (whole ? "'" : "...'");
}

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::make_unique<const std::string>(std::move(text))) {
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text_->size(); ++i) {
    if ((*text_)[i] == '\n') line_starts_.push_back(static_cast<Position>(i + 1));
  }
}

Expected<Source, Diagnostic> Source::from_text(std::string name, std::string text) {
  if (text.size() > kMaxBytes) {
    return Unexpected{Diagnostic{0, "the input has " + std::to_string(text.size()) +
                                        " bytes; the limit is " + std::to_string(kMaxBytes)}};
  }
  return Source(std::move(name), std::move(text));
}

LineColumn Source::locate(Position position) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), position);
  const auto index = static_cast<std::uint32_t>(after - line_starts_.begin()) - 1;
  return {index + 1, position - line_starts_[index] + 1};
}

std::string Source::render(const Diagnostic& diagnostic) const {
  const LineColumn where = locate(diagnostic.position);
  std::string out = name_ + ":" + std::to_string(where.line) + ":" + std::to_string(where.column) +
                    ": error: " + diagnostic.message + "\n";
  const std::size_t start = line_starts_[where.line - 1];
  std::size_t end = text_->find('\n', start);
  if (end == std::string::npos) end = text_->size();
  const std::size_t caret = std::min<std::size_t>(diagnostic.position, end);
  const std::size_t from = caret - start > kContextBefore ? caret - kContextBefore : start;
  const std::size_t to = std::min(end, caret + kContextAfter);
  std::string line, marker;
  for (std::size_t i = from; i < to; ++i) {
    const char c = (*text_)[i];
    line += is_control(c) && c != '\t' ? ' ' : c;
    if (i < caret) marker += c == '\t' ? '\t' : ' ';
  }
  return out + "  " + line + "\n  " + marker + "^\n";
}

}  // namespace ptoas
