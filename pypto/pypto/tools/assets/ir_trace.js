// The page reads without this. With it, each pass is shown beside what it was made from.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const CHUNK = 100; // rows that are drawn together, when they come near the window
  const ROW = 20; // pixels that a row is thought to take until it is drawn
  const AROUND = 3; // unchanged rows beside changed ones, where the others are folded
  const LONG = 400; // rows of a program that is folded at first

  const code = $("code");
  const passes = data.passes;
  const items = [...document.querySelectorAll("#passes li")];
  const text = (line) => data.lines[line];

  const element = (name, properties = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key.includes("-")) made.setAttribute(key, value);
      else made[key] = value;
    }
    made.append(...children);
    return made;
  };
  const plural = (count, word) => `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : "s"}`;

  const state = { at: passes.length - 1, base: passes.length - 2, query: "", folded: false };
  const compared = new Map(); // rows by "base pass"
  let rows = [];
  let chunks = [];
  let hits = []; // numbers of rows that hold what is searched
  let current = -1;

  function compare(base, at) {
    const key = `${base} ${at}`;
    if (!compared.has(key)) {
      const made = base < 0
        ? passes[at].lines.map((_, line) => [line, line, false])
        : irDiff.passes(passes[base], passes[at], text);
      compared.set(key, made);
    }
    return compared.get(key);
  }

  // -- one line: its syntax, what of it changed, what of it was searched

  const SYNTAX = new RegExp([
    /(?<comment>#.*$)/, /(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/,
    /(?<keyword>\b(?:def|for|in|if|else|elif|while|with|as|return|pass|class|import|from|not|and|or|True|False|None|yield)\b)/,
    /(?<dotted>\bpl(?:\.\w+)+)/, /(?<decorator>@[\w.]+)/, /(?<number>\b\d[\w.]*)/,
  ].map((part) => part.source).join("|"), "g");

  function syntax(line) {
    const kinds = new Array(line.length).fill("");
    for (const found of line.matchAll(SYNTAX)) {
      let [[kind]] = Object.entries(found.groups).filter(([, value]) => value !== undefined);
      // Types and their parts are capitalized, operations are not.
      if (kind === "dotted") kind = /\.[A-Z]\w*$/.test(found[0]) ? "type" : "operation";
      if (kind === "decorator") kind = "keyword";
      kinds.fill(kind, found.index, found.index + found[0].length);
    }
    return kinds;
  }

  function painted(line, changed = []) {
    const kinds = syntax(line);
    const marks = new Array(line.length).fill("");
    for (const [from, to] of changed) marks.fill("changed", from, to);
    if (state.query) {
      const low = line.toLowerCase();
      for (let at = low.indexOf(state.query); at >= 0; at = low.indexOf(state.query, at + 1)) {
        marks.fill("found", at, at + state.query.length);
      }
    }
    const parts = [];
    for (let from = 0; from < line.length;) {
      let to = from + 1;
      while (to < line.length && kinds[to] === kinds[from] && marks[to] === marks[from]) to += 1;
      const part = line.slice(from, to);
      const name = marks[from] === "found" ? "mark" : "span";
      const classes = [kinds[from], marks[from] === "changed" ? "changed" : ""].filter(Boolean).join(" ");
      parts.push(classes || name === "mark" ? element(name, { className: classes }, part) : part);
      from = to;
    }
    return parts;
  }

  // -- rows

  function side(at, pass, look, changed) {
    const { lines, places } = pass;
    const number = element("span", {}, at < 0 ? "" : String(at + 1));
    const content = element("code", {}, ...(at < 0 ? [] : painted(text(lines[at]), changed)));
    // A line that is too long goes on below itself, further in than it begins.
    const inwards = at < 0 ? 0 : text(lines[at]).search(/\S|$/) + 4;
    content.style.paddingLeft = `calc(0.4rem + ${inwards}ch)`;
    content.style.textIndent = `-${inwards}ch`;
    if (at >= 0 && places[at]) {
      content.append(element("span", { className: "place" }, data.places[places[at]]));
    }
    return [
      Object.assign(number, { className: `line ${look}` }),
      Object.assign(content, { className: look }),
    ];
  }

  function drawn(number) {
    const [i, j, changed] = rows[number];
    const before = passes[Math.max(state.base, 0)];
    const after = passes[state.at];
    const row = element("div", { className: "row" });
    row.dataset.row = number;
    if (number === current) row.classList.add("current");
    if (!changed) {
      if ($("view").value === "sides" && state.base >= 0) {
        row.append(...side(i, before, "", []), ...side(j, after, "", []));
      } else row.append(...side(j, after, "", []));
      return [row];
    }
    const [gone, fresh] = i >= 0 && j >= 0
      ? irDiff.words(text(before.lines[i]), text(after.lines[j])) : [[], []];
    if ($("view").value === "sides") {
      row.append(
        ...side(i, before, i < 0 ? "none" : "gone", gone),
        ...side(j, after, j < 0 ? "none" : "new", fresh));
      return [row];
    }
    const made = [];
    if (i >= 0) {
      const old = j >= 0 ? element("div", { className: "row" }) : row;
      old.append(...side(i, before, "gone", gone));
      made.push(old);
    }
    if (j >= 0) {
      row.append(...side(j, after, "new", fresh));
      made.push(row);
    }
    return made;
  }

  // -- chunks: what is far from the window is not drawn

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chunk = chunks.find((one) => one.box === entry.target);
      if (!chunk) continue;
      if (entry.isIntersecting) fill(chunk);
      else empty(chunk);
    }
  }, { rootMargin: "1200px 0px" });

  function fill(chunk) {
    if (chunk.filled) return;
    chunk.filled = true;
    chunk.box.style.height = "";
    chunk.box.replaceChildren(...chunk.parts.flatMap((part) =>
      Array.isArray(part) ? [folder(part)] : drawn(part)));
  }

  function empty(chunk) {
    if (!chunk.filled || chunk.box.contains(document.activeElement)) return;
    chunk.box.style.height = `${chunk.box.offsetHeight}px`;
    chunk.box.replaceChildren();
    chunk.filled = false;
  }

  function folder([from, to]) {
    const opener = element("button", { type: "button", className: "fold" },
      `${plural(to - from, "unchanged line")}`);
    opener.addEventListener("click", () => {
      opened.add(from);
      draw(false);
    });
    return opener;
  }

  let opened = new Set();

  // Numbers of rows, and [from, to) where rows are folded.
  function parts() {
    if (!state.folded || state.base < 0) return rows.map((_, number) => number);
    const near = new Uint8Array(rows.length);
    rows.forEach(([, , changed], number) => {
      if (changed) near.fill(1, Math.max(0, number - AROUND), number + AROUND + 1);
    });
    for (const hit of hits) near[hit] = 1;
    const found = [];
    for (let from = 0; from < rows.length;) {
      if (near[from]) {
        found.push(from);
        from += 1;
        continue;
      }
      let to = from;
      while (to < rows.length && !near[to]) to += 1;
      if (to - from > 2 && !opened.has(from)) found.push([from, to]);
      else for (let at = from; at < to; at += 1) found.push(at);
      from = to;
    }
    return found;
  }

  function draw(afresh = true) {
    if (afresh) opened = new Set();
    observer.disconnect();
    const all = parts();
    code.className = $("view").value === "sides" && state.base >= 0 ? "sides" : "one";
    chunks = [];
    for (let from = 0; from < all.length; from += CHUNK) {
      const box = element("div", { className: "chunk" });
      const some = all.slice(from, from + CHUNK);
      box.style.height = `${some.length * ROW}px`;
      chunks.push({ box, parts: some, filled: false });
    }
    code.replaceChildren(...chunks.map((chunk) => chunk.box));
    for (const chunk of chunks.slice(0, 2)) fill(chunk);
    for (const chunk of chunks) observer.observe(chunk.box);
    if (!rows.some(([, , changed]) => changed) && state.base >= 0 && state.folded) {
      code.prepend(element("p", { className: "empty" }, "This pass changed nothing."));
    }
  }

  // -- going to a row

  function reveal(number) {
    const holds = (part) => (Array.isArray(part) ? part[0] <= number && number < part[1] : part === number);
    const folded = chunks.flatMap((chunk) => chunk.parts).find((part) => Array.isArray(part) && holds(part));
    if (folded) {
      opened.add(folded[0]);
      draw(false);
    }
    const chunk = chunks.find((one) => one.parts.some(holds));
    if (!chunk) return;
    fill(chunk);
    for (const old of code.querySelectorAll(".current")) old.classList.remove("current");
    current = number;
    const row = chunk.box.querySelector(`[data-row="${number}"]`);
    row.classList.add("current");
    row.scrollIntoView({ block: "center" });
  }

  // The row after or before the current one that a list of rows has; round at the end.
  function step(list, forward) {
    if (!list.length) return;
    const next = forward
      ? list.find((number) => number > current) ?? list[0]
      : list.findLast((number) => number < current) ?? list.at(-1);
    reveal(next);
  }

  // The first row of each stretch of changed ones.
  function changes() {
    return rows.flatMap(([, , changed], number) =>
      changed && !(number && rows[number - 1][2]) ? [number] : []);
  }

  // -- the parts around the program

  function counts(base, at) {
    let [gone, fresh] = [0, 0];
    for (const [i, j, changed] of compare(base, at)) {
      if (changed) {
        gone += i >= 0;
        fresh += j >= 0;
      }
    }
    return [gone, fresh];
  }

  function amounts(gone, fresh) {
    return [
      element("span", { className: "plus", title: "new or changed lines" }, `+${fresh}`), " ",
      element("span", { className: "minus", title: "lines that went or changed" }, `-${gone}`),
    ];
  }

  // Lists of passes say what each changed; that is found out while nothing else is to be done.
  function tell(at = 1) {
    if (at >= passes.length) return;
    items[at].querySelector(".changed").replaceChildren(...amounts(...counts(at - 1, at)));
    setTimeout(() => tell(at + 1));
  }

  function functions() {
    const chooser = $("function");
    const touched = new Set();
    const owner = (sections, line) => sections.find(([, from, to]) => from <= line && line < to);
    if (state.base >= 0) {
      for (const [i, j, changed] of rows) {
        if (!changed) continue;
        const section = j >= 0 ? owner(passes[state.at].sections, j) : owner(passes[state.base].sections, i);
        if (section) touched.add(section[0]);
      }
    }
    chooser.replaceChildren(element("option", { value: "" }, "all"));
    for (const [name, from] of passes[state.at].sections) {
      const changed = touched.has(name) ? " (changed)" : "";
      chooser.append(element("option", { value: String(from) }, name + changed));
    }
    chooser.disabled = passes[state.at].sections.length === 0;
  }

  function show(at, base = at - 1) {
    state.at = at;
    state.base = base;
    current = -1;
    rows = compare(base, at);
    state.folded = $("folded").checked;
    items.forEach((item, number) => {
      if (number === at) item.querySelector("button").setAttribute("aria-current", "true");
      else item.querySelector("button").removeAttribute("aria-current");
    });
    items[at].scrollIntoView({ block: "nearest" });
    $("pass").value = String(at);
    $("base").value = String(base);
    $("pass-head").textContent = `${passes[at].number} ${passes[at].name}`;
    const [gone, fresh] = base < 0 ? [0, 0] : counts(base, at);
    $("summary").replaceChildren(`${plural(passes[at].lines.length, "line")}, ${plural(passes[at].sections.length, "function")}`);
    if (base >= 0) $("summary").append("; against ", `${passes[base].number} ${passes[base].name}: `, ...amounts(gone, fresh));
    $("view").disabled = base < 0;
    look();
    functions();
    draw();
    history.replaceState(null, "", `#${passes[at].number}`);
  }

  // -- searching

  function look() {
    hits = [];
    if (!state.query) return;
    const before = state.base < 0 ? [] : passes[state.base].lines;
    const after = passes[state.at].lines;
    const fits = (line) => text(line).toLowerCase().includes(state.query);
    rows.forEach(([i, j], number) => {
      if ((j >= 0 && fits(after[j])) || (j < 0 && i >= 0 && fits(before[i]))) hits.push(number);
    });
  }

  function search() {
    state.query = $("search").value.toLowerCase();
    const box = $("found");
    box.hidden = !state.query;
    look();
    draw();
    if (!state.query) return;
    const fits = data.lines.map((line) => line.toLowerCase().includes(state.query));
    const places = passes.map((pass, at) => [at, pass.lines.filter((line) => fits[line]).length])
      .filter(([, count]) => count);
    box.replaceChildren(element("span", { className: "quiet", role: "status" }, places.length
      ? `In ${plural(places.length, "dump")}; Enter goes on, Shift+Enter back: ` : "No pass has it."));
    for (const [at, count] of places) {
      const opener = element("button", { type: "button" }, `${passes[at].number} ${passes[at].name}: ${count}`);
      opener.addEventListener("click", () => {
        show(at);
        step(hits, true);
      });
      box.append(opener);
    }
  }

  // -- hands

  items.forEach((item, at) => {
    const opener = element("button", { type: "button" }, ...item.childNodes);
    item.append(opener);
    opener.addEventListener("click", () => show(at));
  });
  passes.forEach((pass, at) => {
    $("pass").append(element("option", { value: String(at) }, `${pass.number} ${pass.name}`));
    $("base").append(element("option", { value: String(at) }, `${pass.number} ${pass.name}`));
  });
  $("base").prepend(element("option", { value: "-1" }, "nothing"));
  $("pass").addEventListener("change", () => show(Number($("pass").value)));
  $("base").addEventListener("change", () => show(state.at, Number($("base").value)));
  $("view").addEventListener("change", () => draw());
  $("folded").addEventListener("change", () => {
    state.folded = $("folded").checked;
    draw();
  });
  $("function").addEventListener("change", () => {
    if (!$("function").value) return;
    const line = Number($("function").value);
    reveal(rows.findIndex(([, j]) => j === line));
  });
  let waiting = 0;
  $("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 120);
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(hits, !event.shiftKey);
    if (event.key === "Escape") $("search").blur();
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select")) return;
    const keys = {
      "[": () => state.at > 0 && show(state.at - 1),
      "]": () => state.at + 1 < passes.length && show(state.at + 1),
      n: () => step(changes(), true),
      p: () => step(changes(), false),
      "/": () => $("search").focus(),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  // Paper gets every line.
  addEventListener("beforeprint", () => chunks.forEach(fill));

  if (innerWidth < 1000) $("view").value = "one";
  $("folded").checked = Math.max(...passes.map((pass) => pass.lines.length)) > LONG;
  const asked = passes.findIndex((pass) => `#${pass.number}` === location.hash);
  const telling = passes.findIndex((_, at) => at > 0 && counts(at - 1, at).some(Boolean));
  show(asked >= 0 ? asked : Math.max(telling, 0));
  tell();
})();
