// The types of the dialect, as values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace ptoas {

enum class Element : std::uint8_t {
  F32,
  F16,
  BF16,
  I8,
  I16,
  I32,
  I64,
  UI8,
  UI16,
  UI32,
  UI64,
  I1,
  Index
};

enum class Family : std::uint8_t { Float, Integer, Bool };

struct ElementInfo {
  Element element;
  std::string_view name;  // in .pto text
  std::string_view cpp;   // in emitted text
  Family family;
  int bits;
  bool is_signed;
  bool in_memory;                // may be the element of a pointer, view or tile
  std::string_view header = {};  // that declares the C++ type; none for the language's own
};

std::span<const ElementInfo> all_elements();
const ElementInfo& info(Element element);
std::optional<Element> element_named(std::string_view name);

// A set of elements, one bit each.
using Elements = std::uint16_t;
constexpr Elements bit(Element element) {
  return static_cast<Elements>(1u << static_cast<unsigned>(element));
}
constexpr bool contains(Elements set, Element element) { return (set & bit(element)) != 0; }
std::string names_of(Elements set);

enum class Space : std::uint8_t { Vec, Mat, Left, Right, Acc, Bias };

struct SpaceInfo {
  Space space;
  std::string_view name;
  std::string_view cpp;
};

std::span<const SpaceInfo> all_spaces();
const SpaceInfo& info(Space space);

using Spaces = std::uint8_t;
constexpr Spaces bit(Space space) {
  return static_cast<Spaces>(1u << static_cast<unsigned>(space));
}
constexpr bool contains(Spaces set, Space space) { return (set & bit(space)) != 0; }
std::string names_of(Spaces set);

// An extent that is known only when the kernel runs, written '?'.
constexpr std::int64_t kDynamic = -1;
constexpr std::size_t kMaxRank = 5;

// The extents of a view, outermost first.
struct Extents {
  std::array<std::int64_t, kMaxRank> values{};
  std::size_t rank = 0;

  std::span<const std::int64_t> dims() const { return {values.data(), rank}; }
  bool operator==(const Extents&) const = default;
};

struct ScalarType {
  Element element;
  bool operator==(const ScalarType&) const = default;
};

struct PointerType {
  Element element;
  bool operator==(const PointerType&) const = default;
};

struct ViewType {
  Element element;
  Extents extents;
  bool operator==(const ViewType&) const = default;
};

struct PartitionType {
  Element element;
  Extents extents;
  bool operator==(const PartitionType&) const = default;
};

struct NamedValue {
  std::string_view name;  // in .pto text
  std::string_view cpp;   // in emitted text
};

// The closed vocabularies of a tile's layout fields; an enumerator indexes its table.
std::span<const NamedValue> block_layouts();
std::span<const NamedValue> inner_layouts();
std::span<const NamedValue> pad_values();

struct TileType {
  Space space = Space::Vec;
  Element element = Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t valid_rows = kDynamic;
  std::int64_t valid_cols = kDynamic;
  std::uint8_t block_layout = 0;  // index into block_layouts()
  std::uint8_t inner_layout = 0;  // index into inner_layouts()
  std::int64_t fractal = 512;     // bytes of an inner box
  std::uint8_t pad = 0;           // index into pad_values()

  std::int64_t bytes() const { return rows * cols * ((info(element).bits + 7) / 8); }
  bool operator==(const TileType&) const = default;
};

using Type = std::variant<ScalarType, PointerType, ViewType, PartitionType, TileType>;

// The spelling of .pto text; messages quote it.
std::string to_text(const Type& type);
std::string to_text(const Extents& extents);
std::string quoted(const Type& type);

}  // namespace ptoas
