#include "rules.h"

namespace ptoas::rules {
namespace {

const TileType& tile(OperandTypes types, std::uint8_t index) {
  return std::get<TileType>(*types[index]);
}

Element element_of(const Type& type) {
  return std::visit([](const auto& t) { return t.element; }, type);
}

std::string quoted(Element element) { return "'" + std::string(info(element).name) + "'"; }

std::string the(const InstructionSpec& spec, std::uint8_t index) {
  return "the " + std::string(spec.operands[index].role);
}

bool differ(std::int64_t a, std::int64_t b) { return a != kDynamic && b != kDynamic && a != b; }

std::string extents(std::int64_t rows, std::int64_t cols) {
  const auto text = [](std::int64_t n) { return n == kDynamic ? "?" : std::to_string(n); };
  return text(rows) + "x" + text(cols);
}

std::string valid_text(const TileType& t) { return extents(t.valid_rows, t.valid_cols); }

// The rows a partition gives a tile: all its leading extents, multiplied.
std::int64_t leading(const Extents& extents) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i + 1 < extents.rank; ++i) {
    if (extents.values[i] == kDynamic) return kDynamic;
    if (__builtin_mul_overflow(product, extents.values[i], &product)) return kDynamic;
  }
  return product;
}

// The element of an accumulator for a product of two elements of one type.
Element accumulator(Element element) {
  return info(element).family == Family::Integer ? Element::I32 : Element::F32;
}

struct Move {
  Space from;
  Space to;
};

constexpr Move kMoves[] = {
    {Space::Vec, Space::Vec},     {Space::Mat, Space::Mat},  {Space::Mat, Space::Left},
    {Space::Mat, Space::Right},   {Space::Mat, Space::Vec},  {Space::Left, Space::Left},
    {Space::Right, Space::Right}, {Space::Acc, Space::Acc},  {Space::Acc, Space::Mat},
    {Space::Acc, Space::Vec},     {Space::Mat, Space::Bias}, {Space::Bias, Space::Bias},
};

}  // namespace

std::string same_element(OperandTypes types, const InstructionSpec& spec, On on) {
  const Element a = element_of(*types[on[0]]);
  const Element b = element_of(*types[on[1]]);
  if (a == b) return {};
  return the(spec, on[1]) + " is " + quoted(b) + " but " + the(spec, on[0]) + " is " + quoted(a);
}

std::string same_valid(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& a = tile(types, on[0]);
  const TileType& b = tile(types, on[1]);
  if (!differ(a.valid_rows, b.valid_rows) && !differ(a.valid_cols, b.valid_cols)) return {};
  return the(spec, on[1]) + " has " + valid_text(b) + " valid elements but " + the(spec, on[0]) +
         " has " + valid_text(a);
}

std::string scalar_for(OperandTypes types, const InstructionSpec& spec, On on) {
  const Element scalar = element_of(*types[on[0]]);
  const Element element = element_of(*types[on[1]]);
  const bool narrow = element == Element::F16 || element == Element::BF16;
  if (narrow && scalar == Element::F32) return {};
  return same_element(types, spec, {on[1], on[0]});
}

std::string value_per_row(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& column = tile(types, on[0]);
  const TileType& full = tile(types, on[1]);
  if (!differ(column.valid_rows, full.valid_rows) && !differ(column.valid_cols, 1)) return {};
  return the(spec, on[0]) + " must have " + extents(full.valid_rows, 1) +
         " valid elements, one for each row of " + the(spec, on[1]) + ", not " + valid_text(column);
}

std::string value_per_column(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& row = tile(types, on[0]);
  const TileType& full = tile(types, on[1]);
  if (!differ(row.valid_cols, full.valid_cols) && !differ(row.valid_rows, 1)) return {};
  return the(spec, on[0]) + " must have " + extents(1, full.valid_cols) +
         " valid elements, one for each column of " + the(spec, on[1]) + ", not " + valid_text(row);
}

std::string transposed(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& to = tile(types, on[0]);
  const TileType& from = tile(types, on[1]);
  if (!differ(to.valid_rows, from.valid_cols) && !differ(to.valid_cols, from.valid_rows)) return {};
  return the(spec, on[0]) + " must have " + extents(from.valid_cols, from.valid_rows) +
         " valid elements, the transpose of " + the(spec, on[1]) + ", not " + valid_text(to);
}

std::string columns_joined(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& to = tile(types, on[0]);
  const TileType& a = tile(types, on[1]);
  const TileType& b = tile(types, on[2]);
  if (differ(a.valid_rows, b.valid_rows)) {
    return the(spec, on[2]) + " has " + std::to_string(b.valid_rows) + " valid rows but " +
           the(spec, on[1]) + " has " + std::to_string(a.valid_rows);
  }
  const std::int64_t rows = a.valid_rows == kDynamic ? b.valid_rows : a.valid_rows;
  const bool known = a.valid_cols != kDynamic && b.valid_cols != kDynamic;
  const std::int64_t cols = known ? a.valid_cols + b.valid_cols : kDynamic;
  if (!differ(to.valid_rows, rows) && !differ(to.valid_cols, cols)) return {};
  return the(spec, on[0]) + " must have " + extents(rows, cols) + " valid elements, not " +
         valid_text(to);
}

std::string same_count(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& a = tile(types, on[0]);
  const TileType& b = tile(types, on[1]);
  const bool known = a.valid_rows != kDynamic && a.valid_cols != kDynamic &&
                     b.valid_rows != kDynamic && b.valid_cols != kDynamic;
  if (!known || a.valid_rows * a.valid_cols == b.valid_rows * b.valid_cols) return {};
  return the(spec, on[1]) + " has " + valid_text(b) + " valid elements but " + the(spec, on[0]) +
         " has " + valid_text(a) + ": the counts differ";
}

std::string fits_into(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& to = tile(types, on[0]);
  const TileType& from = tile(types, on[1]);
  if (from.valid_rows <= to.rows && from.valid_cols <= to.cols) return {};
  return the(spec, on[1]) + " has " + valid_text(from) + " valid elements; " + the(spec, on[0]) +
         " has room for " + extents(to.rows, to.cols);
}

std::string tile_matches_partition(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& t = tile(types, on[0]);
  const Extents& part = std::get<PartitionType>(*types[on[1]]).extents;
  const std::int64_t rows = leading(part);
  const std::int64_t cols = part.values[part.rank - 1];
  if (!differ(t.valid_rows, rows) && !differ(t.valid_cols, cols)) return {};
  return the(spec, on[0]) + " has " + valid_text(t) + " valid elements but " + the(spec, on[1]) +
         " is " + extents(rows, cols);
}

std::string matrix_product(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& c = tile(types, on[0]);
  const TileType& a = tile(types, on[1]);
  const TileType& b = tile(types, on[2]);
  if (a.element != b.element) {
    return the(spec, on[2]) + " is " + quoted(b.element) + " but " + the(spec, on[1]) + " is " +
           quoted(a.element);
  }
  if (c.element != accumulator(a.element)) {
    return the(spec, on[0]) + " must be " + quoted(accumulator(a.element)) + " for " +
           quoted(a.element) + " operands, not " + quoted(c.element);
  }
  if (differ(a.valid_cols, b.valid_rows)) {
    return the(spec, on[1]) + " has " + std::to_string(a.valid_cols) + " valid columns but " +
           the(spec, on[2]) + " has " + std::to_string(b.valid_rows) + " valid rows";
  }
  if (!differ(c.valid_rows, a.valid_rows) && !differ(c.valid_cols, b.valid_cols)) return {};
  return the(spec, on[0]) + " must have " + extents(a.valid_rows, b.valid_cols) +
         " valid elements, not " + valid_text(c);
}

std::string scratch_for(OperandTypes types, const InstructionSpec& spec, On on) {
  if (std::string wrong = same_element(types, spec, {on[1], on[0]}); !wrong.empty()) return wrong;
  const TileType& scratch = tile(types, on[0]);
  const TileType& source = tile(types, on[1]);
  if (scratch.rows * scratch.cols >= source.valid_rows * source.valid_cols) return {};
  return the(spec, on[0]) + " has only " + extents(scratch.rows, scratch.cols) + " elements; " +
         the(spec, on[1]) + " has " + valid_text(source);
}

std::string same_or_narrowed(OperandTypes types, const InstructionSpec& spec, On on) {
  const Element to = element_of(*types[on[0]]);
  const TileType& from = tile(types, on[1]);
  const bool narrowed = from.space == Space::Acc && from.element == Element::F32 &&
                        (to == Element::F16 || to == Element::BF16);
  if (narrowed) return {};
  return same_element(types, spec, on);
}

std::string movable(OperandTypes types, const InstructionSpec& spec, On on) {
  const TileType& to = tile(types, on[0]);
  const TileType& from = tile(types, on[1]);
  std::string reachable;
  for (const Move& move : kMoves) {
    if (move.from != from.space) continue;
    if (move.to == to.space) return same_or_narrowed(types, spec, on);
    reachable += reachable.empty() ? "" : ", ";
    reachable += info(move.to).name;
  }
  return "a tile in '" + std::string(info(from.space).name) + "' cannot be moved to '" +
         std::string(info(to.space).name) + "'" +
         (reachable.empty() ? "" : " (only to " + reachable + ")");
}

}  // namespace ptoas::rules
