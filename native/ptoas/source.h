// The input text, positions in it, and how a complaint about it is shown.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "expected.h"

namespace ptoas {

// A byte offset into Source::text(). Lines and columns are derived only when a message needs them.
using Position = std::uint32_t;

struct Diagnostic {
  Position position = 0;
  std::string message;
};

using Diagnostics = std::vector<Diagnostic>;

template <class T>
using Parsed = Expected<T, Diagnostic>;

inline Unexpected<Diagnostic> error_at(Position position, std::string message) {
  return {Diagnostic{position, std::move(message)}};
}

// The text between quotes, cut where it gets long: a name can be as long as the input.
std::string quoted(std::string_view text);

struct LineColumn {
  std::uint32_t line = 1;    // from 1
  std::uint32_t column = 1;  // from 1, in bytes
};

// Owns the text. Tokens and the syntax tree hold views into it, so it must outlive them.
class Source {
 public:
  // Larger inputs are refused: a kernel has a few hundred lines, and a bound on the text bounds
  // everything that is made from it.
  static constexpr std::size_t kMaxBytes = 4u << 20;

  static Expected<Source, Diagnostic> from_text(std::string name, std::string text);

  Source(Source&&) = default;
  Source& operator=(Source&&) = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::string_view text() const { return *text_; }
  const std::string& name() const { return name_; }
  LineColumn locate(Position position) const;

  // "name:line:col: error: message", the source line, and a caret under the column.
  std::string render(const Diagnostic& diagnostic) const;

 private:
  Source(std::string name, std::string text);

  std::string name_;
  // On the heap so that views survive a move (a short std::string moves its bytes).
  std::unique_ptr<const std::string> text_;
  std::vector<Position> line_starts_;
};

}  // namespace ptoas
