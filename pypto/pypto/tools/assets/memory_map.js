"use strict";
// The page reads without this. With it, every memory space of the chosen kernel is drawn.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data.functions.length) {
    document.getElementById("map").remove();
    return;
  }
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 220;
  const NARROWEST = 5; // pixels of a statement, below which the map scrolls
  const TOP = 16; // room for the names of loops
  const LETTER = 6.7; // the width of one, in the drawings
  const COLOURS = 8;

  const chooser = document.getElementById("kernel");
  const scale = document.getElementById("scale");
  const spaces = document.getElementById("spaces");
  const told = document.getElementById("statement");
  const details = document.getElementById("tile");
  const table = document.getElementById("tiles");
  const body = document.createElement("tbody");
  const tip = document.createElement("div");

  const element = (name, properties = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key.includes("-")) made.setAttribute(key, value);
      else made[key] = value;
    }
    made.append(...children);
    return made;
  };
  const shape = (name, attributes = {}, ...children) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const bytes = (count) => {
    if (count < 1024) return `${count} B`;
    const [value, unit] = count < 1 << 20 ? [count / 1024, "KiB"] : [count / (1 << 20), "MiB"];
    return `${Number.isInteger(value) ? value : value.toFixed(1)} ${unit}`;
  };
  const shortened = (text, letters) =>
    text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
  const number = (value) => value.toLocaleString("en-US");

  let kernel = data.functions[0];
  let chosen = null;
  let plots = [];

  // Tiles of one name have one colour: they hold one variable of the kernel.
  function colours() {
    const names = [...new Set(kernel.tiles.map((tile) => tile.name))];
    return new Map(names.map((name, at) => [name, at % COLOURS]));
  }

  function extent(tile) {
    return `${number(tile.offset)} to ${number(tile.offset + tile.bytes)}`;
  }

  function statement(position) {
    let found = null;
    for (const entry of kernel.statements) {
      if (entry[0] > position) break;
      found = entry;
    }
    if (!found) return { text: "", place: "" };
    return found[0] === position
      ? { text: found[2], place: found[3] }
      : { text: `end of a block, after ${found[2]}`, place: found[3] };
  }

  function alive(space, position) {
    return kernel.tiles
      .filter((tile) => tile.space === space && tile.first <= position && position <= tile.last);
  }

  // Bytes that hold a value at a position: tiles at one place hand it on, and count once.
  function taken(space, position) {
    let sum = 0;
    let end = 0;
    for (const tile of alive(space, position).sort((a, b) => a.offset - b.offset)) {
      sum += Math.max(0, tile.offset + tile.bytes - Math.max(end, tile.offset));
      end = Math.max(end, tile.offset + tile.bytes);
    }
    return sum;
  }

  function peak(space) {
    return Math.max(0, ...kernel.tiles
      .filter((tile) => tile.space === space).map((tile) => tile.offset + tile.bytes));
  }

  // -- what is drawn

  function blocks(height, step) {
    const found = [];
    kernel.statements.forEach(([position, depth, text], at) => {
      if (!/^(for|while|if)\b/.test(text)) return;
      const after = kernel.statements.slice(at + 1).find((entry) => entry[1] <= depth);
      const end = after ? after[0] - 1 : kernel.positions;
      found.push({ from: position, to: end, text });
    });
    let free = 0; // where the last name ends: those of inner blocks must not lie over it
    return found.flatMap(({ from, to, text }) => {
      const left = (from - 1) * step;
      const wide = (to - from + 1) * step;
      const parts = [shape("rect", { class: "loop", x: left, y: 0, width: wide, height })];
      const letters = Math.floor((wide - 6) / LETTER);
      if (letters >= 3 && left >= free) {
        const name = shortened(text, letters);
        free = left + (name.length + 2) * LETTER;
        parts.push(shape("text", { class: "loop-name", x: left + 4, y: 12 }, name));
      }
      return parts;
    });
  }

  function ticks(top) {
    const step = 2 ** Math.max(0, Math.ceil(Math.log2(top / 4)));
    const found = [];
    for (let at = 0; at <= top; at += step) found.push(at);
    return found;
  }

  function plot(space, palette) {
    const highest = peak(space);
    const capacity = data.capacity[space] || 0;
    const whole = scale.value === "capacity" && capacity;
    const top = whole ? Math.max(capacity, highest) : highest;
    const share = capacity ? `, ${(100 * highest / capacity).toFixed(1)} %` : "";
    const heading = element("h3", {}, space, element("span", {},
      `peak ${bytes(highest)}${capacity ? ` of ${bytes(capacity)}` : ""}${share}`));
    if (capacity && !whole && highest < capacity) {
      heading.append(element("span", {}, "the capacity lies above this view"));
    }
    const axis = shape("svg", { class: "axis", width: "100%", height: HEIGHT + TOP + 4, "aria-hidden": "true" });
    const scroll = element("div", { className: "scroll" });
    const block = element("div", { className: "space-map" }, heading,
      element("div", { className: "plot" }, axis, scroll));
    spaces.append(block);

    const width = Math.max(scroll.clientWidth, kernel.positions * NARROWEST);
    const step = width / kernel.positions;
    const up = (offset) => TOP + HEIGHT - (HEIGHT - 3) * offset / top;
    const across = (position) => position * step - step / 2;
    const drawing = shape("svg", {
      width, height: HEIGHT + TOP + 4, role: "group", "aria-label": `${space} memory over time`,
    });
    drawing.append(...blocks(HEIGHT + TOP + 4, step));
    for (const at of ticks(top)) {
      drawing.append(shape("line", { class: "grid", x1: 0, x2: width, y1: up(at), y2: up(at) }));
      axis.append(shape("text", { x: axis.clientWidth - 8, y: Math.max(10, up(at) + 4) }, bytes(at)));
    }
    const rectangles = [];
    for (const tile of kernel.tiles.filter((one) => one.space === space)) {
      // From the middle of the statement that writes it to the middle of the last that reads it:
      // a result that takes the place of an operand begins where that ends.
      const left = across(tile.first);
      const wide = Math.max(step * (tile.last - tile.first), step / 2);
      const high = Math.max(1.5, up(tile.offset) - up(tile.offset + tile.bytes));
      const group = shape("g", {
        class: `tile c${palette.get(tile.name)}`, tabindex: -1, role: "button", "aria-pressed": "false",
        "aria-label": `${tile.name}, ${tile.dtype} [${tile.shape}], ${bytes(tile.bytes)} of ${space} `
          + `at ${tile.offset}, statements ${tile.first} to ${tile.last}, ${tile.place}`,
      }, shape("rect", { x: left, y: up(tile.offset + tile.bytes), width: wide, height: high, rx: 2 }));
      const letters = Math.floor((wide - 6) / LETTER);
      if (high >= 14 && letters >= 2) {
        group.append(shape("text", {
          x: left + 4, y: up(tile.offset + tile.bytes) + Math.min(high / 2 + 4, 16),
        }, shortened(tile.name, letters)));
      }
      drawing.append(group);
      rectangles.push({ tile, group });
    }
    drawing.append(shape("line", { class: "peak", x1: 0, x2: width, y1: up(highest), y2: up(highest) }));
    if (whole) {
      drawing.append(shape("line", { class: "limit", x1: 0, x2: width, y1: up(capacity), y2: up(capacity) }));
    }
    const cursor = shape("line", { class: "cursor", y1: 0, y2: HEIGHT + TOP + 4 });
    drawing.append(cursor);
    scroll.append(drawing);

    const made = { space, rectangles, cursor, across, scroll };
    drawing.addEventListener("pointermove", (event) => {
      const x = event.clientX - drawing.getBoundingClientRect().left;
      point(Math.min(kernel.positions, Math.max(1, Math.ceil(x / step))));
      const group = event.target.closest(".tile");
      hover(group && rectangles.find((one) => one.group === group).tile, event);
    });
    drawing.addEventListener("pointerleave", () => {
      point(null);
      hover(null);
    });
    drawing.addEventListener("click", (event) => {
      const group = event.target.closest(".tile");
      if (group) choose(rectangles.find((one) => one.group === group).tile, true);
    });
    drawing.addEventListener("focusin", (event) => {
      const found = rectangles.find((one) => one.group === event.target);
      if (found && found.tile !== chosen) choose(found.tile);
    });
    drawing.addEventListener("keydown", (event) => key(made, event));
    return made;
  }

  function point(position) {
    for (const { cursor, across } of plots) {
      cursor.style.visibility = position ? "visible" : "hidden";
      if (!position) continue;
      cursor.setAttribute("x1", across(position));
      cursor.setAttribute("x2", across(position));
    }
    if (!position) return;
    const { text, place } = statement(position);
    const held = kernel.spaces
      .map((space) => [space, taken(space, position)]).filter(([, sum]) => sum)
      .map(([space, sum]) => `${space} ${bytes(sum)}`).join(", ");
    told.replaceChildren(`Statement ${position} of ${kernel.positions}: `, element("code", {}, text),
      ` (${place})${held ? `; alive: ${held}` : ""}`);
  }

  function hover(tile, event) {
    if (!tile) {
      tip.remove();
      return;
    }
    tip.replaceChildren(element("b", {}, tile.name), ` ${tile.dtype} [${tile.shape.join(", ")}], ${bytes(tile.bytes)}`,
      element("div", {}, `${tile.space} ${extent(tile)}, statements ${tile.first} to ${tile.last}`),
      element("div", {}, tile.place));
    document.body.append(tip);
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight
      ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  }

  // -- choosing a tile

  function choose(tile, focus = false) {
    chosen = tile;
    for (const { rectangles } of plots) {
      for (const one of rectangles) {
        one.group.setAttribute("aria-pressed", String(one.tile === tile));
        one.group.setAttribute("tabindex", one.tile === tile ? 0 : -1);
        if (one.tile === tile && focus) one.group.focus({ preventScroll: true });
      }
    }
    for (const row of body.rows) row.setAttribute("aria-selected", String(row.tile === tile));
    if (!tile) {
      entrance();
      details.replaceChildren();
      return;
    }
    point(tile.first);
    const made = statement(tile.first);
    const last = statement(tile.last);
    const list = element("dl", { className: "facts" });
    for (const [name, value] of [
      ["type", `${tile.dtype} [${tile.shape.join(", ")}]`],
      ["memory", `${tile.space}, ${number(tile.bytes)} bytes, ${extent(tile)}`],
      ["written by", `statement ${tile.first}: ${made.text}`],
      ["read last by", `statement ${tile.last}: ${last.text}`],
      ["source", tile.place],
    ]) list.append(element("dt", {}, name), element("dd", {}, element("bdi", {}, value)));
    details.replaceChildren(element("code", {}, element("b", {}, tile.name)), list);
  }

  // One tile of each space can be reached with the tabulator, and the others from it.
  function entrance() {
    for (const { rectangles } of plots) {
      if (rectangles.length) rectangles[0].group.setAttribute("tabindex", 0);
    }
  }

  function key(of, event) {
    const at = of.rectangles.findIndex((one) => one.group === event.target);
    if (at < 0) return;
    const { tile } = of.rectangles[at];
    const together = of.rectangles.filter((one) =>
      one.tile.first <= tile.last && tile.first <= one.tile.last);
    const above = together.filter((one) => one.tile.offset > tile.offset)
      .sort((a, b) => a.tile.offset - b.tile.offset)[0];
    const below = together.filter((one) => one.tile.offset < tile.offset)
      .sort((a, b) => b.tile.offset - a.tile.offset)[0];
    const next = {
      ArrowRight: of.rectangles[at + 1], ArrowLeft: of.rectangles[at - 1],
      ArrowUp: above, ArrowDown: below,
      Home: of.rectangles[0], End: of.rectangles.at(-1),
      Enter: of.rectangles[at], " ": of.rectangles[at],
    };
    if (event.key === "Escape") choose(null);
    else if (!(event.key in next)) return;
    else if (next[event.key]) {
      choose(next[event.key].tile, true);
      reveal(of, next[event.key].tile);
    }
    event.preventDefault();
  }

  function reveal(of, tile) {
    const [left, right] = [of.across(tile.first), of.across(tile.last)];
    if (left < of.scroll.scrollLeft || right > of.scroll.scrollLeft + of.scroll.clientWidth) {
      of.scroll.scrollLeft = left - 40;
    }
  }

  // -- the table

  function rows() {
    body.replaceChildren(...kernel.tiles.map((tile) => {
      const opener = element("button", { type: "button", className: "opener" }, tile.name);
      const cell = (label, content, className = "") =>
        element("td", { "data-label": label, className }, content);
      const row = element("tr", {},
        element("th", { scope: "row", className: "title" }, opener),
        cell("Space", tile.space), cell("Shape", `[${tile.shape.join(", ")}]`), cell("Type", tile.dtype),
        cell("Bytes", number(tile.bytes), "number"), cell("Offset", number(tile.offset), "number"),
        cell("First", String(tile.first), "number"), cell("Last", String(tile.last), "number"),
        cell("Source", element("bdi", {}, tile.place)));
      row.tile = tile;
      opener.addEventListener("click", () => {
        choose(tile);
        document.getElementById("map").scrollIntoView({ block: "start" });
        const of = plots.find((one) => one.space === tile.space);
        reveal(of, tile);
        of.rectangles.find((one) => one.tile === tile).group.focus({ preventScroll: true });
      });
      return row;
    }));
  }

  function draw() {
    const palette = colours();
    spaces.replaceChildren();
    plots = kernel.spaces.map((space) => plot(space, palette));
    choose(chosen);
    if (chosen) entrance();
  }

  function show(at) {
    kernel = data.functions[at];
    chosen = null;
    chooser.value = String(at);
    document.getElementById("map-head").textContent = `Memory of ${kernel.name} over time`;
    told.replaceChildren();
    for (const row of document.querySelectorAll("#kernels tbody tr")) {
      if (row.dataset.number === String(at)) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    rows();
    draw();
  }

  data.functions.forEach((one, at) => chooser.append(element("option", { value: String(at) }, one.name)));
  chooser.addEventListener("change", () => show(Number(chooser.value)));
  scale.addEventListener("change", draw);
  for (const row of document.querySelectorAll("#kernels tbody tr")) {
    const head = row.cells[0];
    const opener = element("button", { type: "button", className: "opener" }, ...head.childNodes);
    head.append(opener);
    opener.addEventListener("click", () => {
      show(Number(row.dataset.number));
      document.getElementById("map").scrollIntoView({ block: "start" });
    });
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) draw();
    width = innerWidth;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.remove();
  });

  table.querySelector("tbody.still").remove();
  table.append(body);
  tip.className = "tip";
  show(0);
})();
