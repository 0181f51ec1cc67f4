#include "types.h"

#include "headers.h"

namespace ptoas {
namespace {

constexpr ElementInfo kElements[] = {
    {Element::F32, "f32", "float", Family::Float, 32, true, true},
    {Element::F16, "f16", "pto::half", Family::Float, 16, true, true, header::kDtypes},
    {Element::BF16, "bf16", "pto::bfloat16_t", Family::Float, 16, true, true, header::kDtypes},
    {Element::I8, "i8", "int8_t", Family::Integer, 8, true, true},
    {Element::I16, "i16", "int16_t", Family::Integer, 16, true, true},
    {Element::I32, "i32", "int32_t", Family::Integer, 32, true, true},
    {Element::I64, "i64", "int64_t", Family::Integer, 64, true, true},
    {Element::UI8, "ui8", "uint8_t", Family::Integer, 8, false, true},
    {Element::UI16, "ui16", "uint16_t", Family::Integer, 16, false, true},
    {Element::UI32, "ui32", "uint32_t", Family::Integer, 32, false, true},
    {Element::UI64, "ui64", "uint64_t", Family::Integer, 64, false, true},
    {Element::I1, "i1", "bool", Family::Bool, 1, false, true},
    {Element::Index, "index", "int64_t", Family::Integer, 64, true, false},
};

constexpr SpaceInfo kSpaces[] = {
    {Space::Vec, "vec", "Vec"},       {Space::Mat, "mat", "Mat"}, {Space::Left, "left", "Left"},
    {Space::Right, "right", "Right"}, {Space::Acc, "acc", "Acc"}, {Space::Bias, "bias", "Bias"},
};

constexpr NamedValue kBlockLayouts[] = {{"row_major", "RowMajor"}, {"col_major", "ColMajor"}};
constexpr NamedValue kInnerLayouts[] = {
    {"none_box", "NoneBox"}, {"row_major", "RowMajor"}, {"col_major", "ColMajor"}};
constexpr NamedValue kPads[] = {{"0", "Null"}, {"1", "Zero"}, {"2", "Max"}, {"3", "Min"}};

template <class Rows, class Set>
std::string join_names(const Rows& rows, Set set) {
  std::string out;
  for (const auto& row : rows) {
    if ((set & (1u << static_cast<unsigned>(&row - &rows[0]))) == 0) continue;
    if (!out.empty()) out += ", ";
    out += row.name;
  }
  return out;
}

std::string extent_text(std::int64_t extent) {
  return extent == kDynamic ? "?" : std::to_string(extent);
}

struct Printer {
  std::string operator()(const ScalarType& t) const { return std::string(info(t.element).name); }
  std::string operator()(const PointerType& t) const {
    return "!pto.ptr<" + std::string(info(t.element).name) + ">";
  }
  std::string operator()(const ViewType& t) const {
    return "!pto.tensor_view<" + to_text(t.extents) + "x" + std::string(info(t.element).name) + ">";
  }
  std::string operator()(const PartitionType& t) const {
    return "!pto.partition_tensor_view<" + to_text(t.extents) + "x" +
           std::string(info(t.element).name) + ">";
  }
  std::string operator()(const TileType& t) const {
    std::string out = "!pto.tile_buf<loc=";
    out += info(t.space).name;
    out += ", dtype=";
    out += info(t.element).name;
    out += ", rows=" + std::to_string(t.rows) + ", cols=" + std::to_string(t.cols);
    out += ", v_row=" + extent_text(t.valid_rows) + ", v_col=" + extent_text(t.valid_cols);
    out += ", blayout=";
    out += kBlockLayouts[t.block_layout].name;
    out += ", slayout=";
    out += kInnerLayouts[t.inner_layout].name;
    out += ", fractal=" + std::to_string(t.fractal) + ", pad=" + std::to_string(t.pad) + ">";
    return out;
  }
};

}  // namespace

std::span<const ElementInfo> all_elements() { return kElements; }
const ElementInfo& info(Element element) { return kElements[static_cast<std::size_t>(element)]; }

std::optional<Element> element_named(std::string_view name) {
  for (const ElementInfo& row : kElements) {
    if (row.name == name) return row.element;
  }
  return std::nullopt;
}

std::string names_of(Elements set) { return join_names(kElements, set); }

std::span<const SpaceInfo> all_spaces() { return kSpaces; }
const SpaceInfo& info(Space space) { return kSpaces[static_cast<std::size_t>(space)]; }
std::string names_of(Spaces set) { return join_names(kSpaces, set); }

std::span<const NamedValue> block_layouts() { return kBlockLayouts; }
std::span<const NamedValue> inner_layouts() { return kInnerLayouts; }
std::span<const NamedValue> pad_values() { return kPads; }

std::string to_text(const Extents& extents) {
  std::string out;
  for (std::int64_t extent : extents.dims()) {
    if (!out.empty()) out += "x";
    out += extent_text(extent);
  }
  return out;
}

std::string to_text(const Type& type) { return std::visit(Printer{}, type); }

std::string quoted(const Type& type) { return "'" + to_text(type) + "'"; }

}  // namespace ptoas
