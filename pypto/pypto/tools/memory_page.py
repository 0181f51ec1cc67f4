"""The page of :mod:`pypto.tools.memory_map`: a map of each memory space, and a table beneath."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pypto.compiler.memory_record import FunctionMemory, MemoryRecord, Place, RecordedTile
from pypto_store.tools.html_page import Page, asset, embedded_json, house_style, text, visible
from pypto_store.tools.terminal import size_text

_PACKAGE = "pypto.tools"
# The order in which data passes through the spaces.
_SPACES = ("Vec", "Mat", "Left", "Right", "Bias", "Acc")


def render(record: MemoryRecord, build: Path) -> str:
    """The page about the program that was compiled to the directory `build`."""
    page = Page(
        title=f"{record.program} - on-chip memory",
        style=house_style() + asset(_PACKAGE, "assets/memory_map.css"),
        script=asset(_PACKAGE, "assets/memory_map.js"),
        body=_body(record, build),
        data=embedded_json(_data(record)),
    )
    return page.render()


def spaces_of(function: FunctionMemory) -> list[str]:
    """The memory spaces that a function uses, in the order in which data passes through them."""
    return _in_order(tile.space for tile in function.tiles)


def _in_order(spaces: Iterable[str]) -> list[str]:
    return sorted(set(spaces), key=lambda space: (*_SPACES, space).index(space))


def shown_place(record: MemoryRecord, place: Place) -> str:
    """A place as people look for it: a line of a file, or else of a function."""
    if place.unit in record.sources:
        file, first = record.sources[place.unit]
        return f"{file}:{first + place.line - 1}"
    return f"{place.unit}, line {place.line}"


def _data(record: MemoryRecord) -> dict[str, object]:
    return {
        "capacity": dict(record.capacity),
        "functions": [
            {
                "name": visible(function.name),
                "positions": function.positions,
                "spaces": spaces_of(function),
                "statements": [
                    [s.position, s.depth, visible(s.text), visible(shown_place(record, s.place))]
                    for s in function.statements
                ],
                "tiles": [
                    {
                        "name": visible(tile.name),
                        "space": tile.space,
                        "shape": list(tile.shape),
                        "dtype": tile.dtype,
                        "offset": tile.offset,
                        "bytes": tile.bytes,
                        "first": tile.first,
                        "last": tile.last,
                        "place": visible(shown_place(record, tile.place)),
                    }
                    for tile in function.tiles
                ],
            }
            for function in record.functions
        ],
    }


def _body(record: MemoryRecord, build: Path) -> Iterator[str]:
    yield "<header>"
    yield '<a class="skip" href="#map">Skip to the map</a>'
    yield f"<h1>On-chip memory of {text(record.program)}</h1>"
    yield (
        f'<p class="where"><code><bdi>{text(str(build))}</bdi></code>, '
        f"compiled for {text(record.arch)}</p>"
    )
    yield "</header><main>"
    yield from _kernels(record)
    yield from _map()
    yield from _tiles(record)
    yield "</main>"


def _kernels(record: MemoryRecord) -> Iterator[str]:
    yield '<section aria-labelledby="kernels-head"><div class="head">'
    yield '<h2 id="kernels-head">Kernels</h2>'
    yield (
        "<p>How full each memory space of a core gets: the end of the tile that lies highest. "
        '<span class="live-only">Choose a kernel to see its map.</span></p></div>'
    )
    if not record.functions:
        yield '<p class="empty">The program has no kernel that holds tiles.</p></section>'
        return
    spaces = _in_order(space for f in record.functions for space in spaces_of(f))
    yield '<div class="some"><table id="kernels" class="cards">'
    yield '<caption class="unseen">Kernels</caption><thead><tr>'
    yield '<th scope="col">Kernel</th><th scope="col" class="number">Tiles</th>'
    for space in spaces:
        capacity = record.capacity.get(space, 0)
        of = f' <span class="of">of {size_text(capacity)}</span>' if capacity else ""
        yield f'<th scope="col">{space}{of}</th>'
    yield "</tr></thead><tbody>"
    for number, function in enumerate(record.functions):
        yield f'<tr data-number="{number}"><th scope="row" class="title">{text(function.name)}</th>'
        yield f'<td data-label="Tiles" class="number">{len(function.tiles)}</td>'
        for space in spaces:
            tiles = [tile for tile in function.tiles if tile.space == space]
            yield _gauge(space, tiles, record.capacity.get(space, 0))
        yield "</tr>"
    yield "</tbody></table></div></section>"


def _gauge(space: str, tiles: list[RecordedTile], capacity: int) -> str:
    peak = max((tile.offset + tile.bytes for tile in tiles), default=0)
    if not peak:
        return f'<td data-label="{space}" class="quiet">-</td>'
    width = min(100.0, 100 * peak / capacity) if capacity else 0
    bar = (
        '<svg class="gauge" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="all" width="100" height="4"/>'
        f'<rect class="part" width="{width:.1f}" height="4"/></svg>'
    )
    share = f", {peak / capacity:.0%}" if capacity else ""
    return f'<td data-label="{space}">{size_text(peak)}{share}{bar}</td>'


def _map() -> Iterator[str]:
    yield '<section id="map" class="live-only" aria-labelledby="map-head">'
    yield '<div class="head"><h2 id="map-head"></h2>'
    yield (
        "<p>Statements from left to right, bytes from bottom to top; a tile lives from the "
        "statement that writes it to the last one that reads it. Arrow keys go from tile to "
        "tile.</p></div>"
    )
    yield '<div class="controls">'
    yield '<div class="wide"><label for="kernel">Kernel</label><select id="kernel"></select></div>'
    yield '<div><label for="scale">Heights</label><select id="scale">'
    yield '<option value="peak">fit what is used</option>'
    yield '<option value="capacity">of the whole memory</option></select></div></div>'
    yield '<div id="spaces"></div>'
    yield '<p id="statement" class="told"></p>'
    yield '<div id="tile" class="told" role="status"></div></section>'


def _tiles(record: MemoryRecord) -> Iterator[str]:
    yield '<section aria-labelledby="tiles-head"><div class="head">'
    yield '<h2 id="tiles-head">Tiles</h2>'
    yield (
        '<p><span class="live-only">Of the kernel above; a name shows its tile in the map.</span>'
        '<span class="still-only">With scripts there is a map of each kernel too.</span></p></div>'
    )
    yield '<table id="tiles" class="cards"><caption class="unseen">Tiles</caption><thead><tr>'
    for name, look in (
        ("Tile", ""), ("Space", ""), ("Shape", ""), ("Type", ""), ("Bytes", "number"),
        ("Offset", "number"), ("First", "number"), ("Last", "number"), ("Source", ""),
    ):  # fmt: skip
        yield f'<th scope="col"{f" class={look!r}" if look else ""}>{name}</th>'
    yield '</tr></thead><tbody class="still">'
    for function in record.functions:
        for tile in function.tiles:
            yield _tile_row(record, function, tile)
    yield "</tbody></table></section>"


def _tile_row(record: MemoryRecord, function: FunctionMemory, tile: RecordedTile) -> str:
    shape = str(list(tile.shape))
    cells = (
        ("Space", tile.space, ""),
        ("Shape", shape, ""),
        ("Type", text(tile.dtype), ""),
        ("Bytes", f"{tile.bytes:,}", "number"),
        ("Offset", f"{tile.offset:,}", "number"),
        ("First", str(tile.first), "number"),
        ("Last", str(tile.last), "number"),
        ("Source", f"<bdi>{text(shown_place(record, tile.place))}</bdi>", ""),
    )
    markup = "".join(
        f'<td data-label="{label}"{f" class={look!r}" if look else ""}>{shown}</td>'
        for label, shown, look in cells
    )
    name = f'{text(tile.name)} <span class="quiet">in {text(function.name)}</span>'
    return f'<tr><th scope="row" class="title">{name}</th>{markup}</tr>'
