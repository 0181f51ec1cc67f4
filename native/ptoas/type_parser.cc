#include "type_parser.h"

#include "number.h"

namespace ptoas {
namespace {

Parsed<Element> parse_memory_element(TokenStream& tokens) {
  const Position at = tokens.position();
  PTOAS_TRY(element, parse_element(tokens));
  if (!info(element).in_memory) {
    return error_at(at, "'" + std::string(info(element).name) + "' cannot be stored in memory");
  }
  return element;
}

// Reads `16x?x` by characters, for the lexer would take 64xf32 apart elsewhere.
Parsed<Extents> parse_extents(TokenStream& tokens) {
  const std::string_view text = tokens.text();
  Extents extents;
  Position at = tokens.position();
  while (at < text.size() && (text[at] == '?' || is_digit(text[at]))) {
    const Position start = at;
    std::int64_t extent = kDynamic;
    if (text[at] == '?') {
      ++at;
    } else {
      while (at < text.size() && is_digit(text[at])) ++at;
      const auto value = parse_integer(text.substr(start, at - start));
      if (!value || *value > kMaxViewExtent) return error_at(start, "this extent is too large");
      extent = *value;
    }
    if (at >= text.size() || text[at] != 'x') {
      return error_at(at, "expected 'x' after an extent, as in 16x64xf32");
    }
    ++at;
    if (extents.rank == kMaxRank) {
      return error_at(start, "a view has at most " + std::to_string(kMaxRank) + " dimensions");
    }
    extents.values[extents.rank++] = extent;
  }
  if (extents.rank == 0) return tokens.expected("an extent (a number or '?')");
  tokens.jump(at);
  return extents;
}

template <class View>
Parsed<Type> parse_view(TokenStream& tokens) {
  PTOAS_TRY(extents, parse_extents(tokens));
  PTOAS_TRY(element, parse_memory_element(tokens));
  return Type{View{element, extents}};
}

Parsed<Type> parse_pointer(TokenStream& tokens) {
  PTOAS_TRY(element, parse_memory_element(tokens));
  return Type{PointerType{element}};
}

Parsed<std::int64_t> parse_tile_number(TokenStream& tokens, std::int64_t low, std::int64_t high) {
  const Position at = tokens.position();
  PTOAS_TRY(token, tokens.expect(TokenKind::Integer, "a number"));
  const auto value = parse_integer(token.text);
  if (!value || *value < low || *value > high) {
    return error_at(
        at, "this number must be from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *value;
}

Parsed<std::int64_t> parse_valid_extent(TokenStream& tokens) {
  if (tokens.accept('?')) return kDynamic;
  return parse_tile_number(tokens, 0, kMaxTileExtent);
}

// One of a table's names; its index.
template <class Rows>
Parsed<std::uint8_t> parse_choice(TokenStream& tokens, const Rows& rows) {
  std::string choices;
  std::uint8_t index = 0;
  for (const auto& row : rows) {
    if (tokens.now().kind == TokenKind::Name && tokens.accept(row.name)) return index;
    choices += choices.empty() ? "" : ", ";
    choices += row.name;
    ++index;
  }
  return tokens.expected("one of " + choices);
}

struct TileDraft {
  TileType type;
  bool has_valid_rows = false;
  bool has_valid_cols = false;
};

using FieldReader = Parsed<Done> (*)(TokenStream& tokens, TileDraft& draft);

struct TileField {
  std::string_view name;
  bool required;
  FieldReader read;
};

// The fields of !pto.tile_buf<...>, in any order.
constexpr TileField kTileFields[] = {
    {"loc", true,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(index, parse_choice(tokens, all_spaces()));
       draft.type.space = all_spaces()[index].space;
       return Done{};
     }},
    {"dtype", true,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(element, parse_memory_element(tokens));
       draft.type.element = element;
       return Done{};
     }},
    {"rows", true,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(rows, parse_tile_number(tokens, 1, kMaxTileExtent));
       draft.type.rows = rows;
       return Done{};
     }},
    {"cols", true,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(cols, parse_tile_number(tokens, 1, kMaxTileExtent));
       draft.type.cols = cols;
       return Done{};
     }},
    {"v_row", false,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(rows, parse_valid_extent(tokens));
       draft.type.valid_rows = rows;
       draft.has_valid_rows = true;
       return Done{};
     }},
    {"v_col", false,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(cols, parse_valid_extent(tokens));
       draft.type.valid_cols = cols;
       draft.has_valid_cols = true;
       return Done{};
     }},
    {"blayout", false,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(layout, parse_choice(tokens, block_layouts()));
       draft.type.block_layout = layout;
       return Done{};
     }},
    {"slayout", false,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       PTOAS_TRY(layout, parse_choice(tokens, inner_layouts()));
       draft.type.inner_layout = layout;
       return Done{};
     }},
    {"fractal", false,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       const Position at = tokens.position();
       PTOAS_TRY(bytes, parse_tile_number(tokens, 0, kMaxTileExtent));
       if (bytes != 512 && bytes != 1024) return error_at(at, "fractal must be 512 or 1024");
       draft.type.fractal = bytes;
       return Done{};
     }},
    {"pad", false,
     [](TokenStream& tokens, TileDraft& draft) -> Parsed<Done> {
       const auto last = static_cast<std::int64_t>(pad_values().size()) - 1;
       PTOAS_TRY(pad, parse_tile_number(tokens, 0, last));
       draft.type.pad = static_cast<std::uint8_t>(pad);
       return Done{};
     }},
};

Parsed<Type> parse_tile(TokenStream& tokens) {
  const Position start = tokens.position();
  TileDraft draft;
  std::uint32_t seen = 0;
  do {
    const Position at = tokens.position();
    PTOAS_TRY(name, tokens.expect(TokenKind::Name, "a field of the tile type"));
    std::uint32_t index = 0;
    while (index < std::size(kTileFields) && kTileFields[index].name != name.text) ++index;
    if (index == std::size(kTileFields)) {
      return error_at(at, "a tile type has no field " + describe(name));
    }
    if ((seen & (1u << index)) != 0) return error_at(at, describe(name) + " is given twice");
    seen |= 1u << index;
    PTOAS_TRY(equals, tokens.expect('='));
    PTOAS_TRY(done, kTileFields[index].read(tokens, draft));
  } while (tokens.accept(','));
  for (std::uint32_t i = 0; i < std::size(kTileFields); ++i) {
    if (kTileFields[i].required && (seen & (1u << i)) == 0) {
      return error_at(start, "the tile type lacks " + std::string(kTileFields[i].name));
    }
  }
  TileType& type = draft.type;
  if (!draft.has_valid_rows) type.valid_rows = type.rows;
  if (!draft.has_valid_cols) type.valid_cols = type.cols;
  if (type.valid_rows > type.rows) return error_at(start, "v_row exceeds rows");
  if (type.valid_cols > type.cols) return error_at(start, "v_col exceeds cols");
  return Type{type};
}

struct TypeRow {
  std::string_view name;
  Parsed<Type> (*read)(TokenStream& tokens);
};

constexpr TypeRow kTypes[] = {
    {"pto.ptr", parse_pointer},
    {"pto.tensor_view", parse_view<ViewType>},
    {"pto.partition_tensor_view", parse_view<PartitionType>},
    {"pto.tile_buf", parse_tile},
};

}  // namespace

Parsed<Element> parse_element(TokenStream& tokens) {
  if (tokens.now().kind == TokenKind::Name) {
    if (const auto element = element_named(tokens.now().text)) {
      tokens.take();
      return *element;
    }
  }
  return tokens.expected("an element type (" + names_of(static_cast<Elements>(~0u)) + ")");
}

Parsed<Type> parse_type(TokenStream& tokens) {
  if (tokens.now().kind == TokenKind::Name) {
    PTOAS_TRY(element, parse_element(tokens));
    return Type{ScalarType{element}};
  }
  if (!tokens.accept('!')) return tokens.expected("a type");
  const Position at = tokens.position();
  PTOAS_TRY(name, tokens.expect(TokenKind::Name, "a type name after '!'"));
  for (const TypeRow& row : kTypes) {
    if (row.name != name.text) continue;
    PTOAS_TRY(open, tokens.expect('<'));
    PTOAS_TRY(type, row.read(tokens));
    PTOAS_TRY(close, tokens.expect('>'));
    return std::move(type);
  }
  return error_at(at, "unknown type " + describe(name));
}

}  // namespace ptoas
