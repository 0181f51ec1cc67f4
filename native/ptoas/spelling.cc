#include "spelling.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "instruction_table.h"
#include "scalar_table.h"

namespace ptoas {
namespace {

constexpr std::size_t kLongest = 32;
constexpr std::size_t kMaxEdits = 2;

std::size_t edits(std::string_view a, std::string_view b) {
  std::array<std::size_t, kLongest + 1> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_mnemonic(std::string_view text) {
  std::string_view best;
  std::size_t best_edits = kMaxEdits + 1;
  const auto consider = [&](std::string_view known) {
    if (text.size() > kLongest || known.size() > kLongest) return;
    const std::size_t distance = edits(text, known);
    if (distance < best_edits) {
      best = known;
      best_edits = distance;
    }
  };
  for (const auto& row : instruction_table()) consider(row.mnemonic);
  for (const auto& row : scalar_table()) consider(row.mnemonic);
  return best;
}

}  // namespace ptoas
