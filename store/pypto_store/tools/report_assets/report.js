"use strict";
// The page reads without this. With it, rows are drawn a page at a time from the embedded JSON.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const table = document.getElementById("entries");
  const body = document.createElement("tbody");
  const status = document.getElementById("status");
  const pages = document.getElementById("pages");
  const search = document.getElementById("search");
  const choices = ["state", "environment", "level"].map((name) => document.getElementById(name));
  const PAGE = 100;

  const sorted = { column: "kernel", up: true };
  let first = 0;
  let found = [];
  const open = new Set();

  const element = (name, properties = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key.includes("-")) made.setAttribute(key, value);
      else made[key] = value;
    }
    made.append(...children);
    return made;
  };
  // Names are long words: they break behind what joins their parts.
  const breakable = (text) => element("bdi", {}, ...text.split(/(?<=[:._/])(?=.)/)
    .flatMap((part) => [part, element("wbr")]).slice(0, -1));
  const isolated = (text) => element("bdi", {}, text);

  const collate = new Intl.Collator("en", { numeric: true }).compare;
  const orders = {
    // What has no name comes last.
    kernel: (a, b) => !a.kernel - !b.kernel || collate(a.kernel, b.kernel),
    key: (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0),
    state: (a, b) => collate(a.condition, b.condition),
    level: (a, b) => collate(a.level, b.level),
    files: (a, b) => a.files.length - b.files.length,
    size: (a, b) => a.size - b.size,
    shared: (a, b) => a.shared - b.shared,
    published: (a, b) => b.published - a.published,
    used: (a, b) => b.used - a.used,
  };

  // Columns that begin with the largest; the newest is the largest time.
  const downwards = new Set(["files", "size", "shared"]);

  // What repeats is in the data once. And what a search looks through, once for each entry.
  for (const entry of data.entries) {
    entry.environment = data.digests[entry.environment];
    entry.path = `${data.artifacts}/${entry.environment}/${entry.key}/${entry.slot}`;
    entry.components = entry.components.map((digest, at) => [data.components[at], data.digests[digest]]);
    entry.text = [
      entry.kernel, entry.key, entry.condition, entry.kind, entry.level, entry.path, entry.damage,
      ...entry.components.map(([, digest]) => digest),
      ...entry.files.map(([path]) => data.paths[path]),
    ].join("\n").toLowerCase();
  }

  function choose() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [state, environment, level] = choices.map((choice) => choice.value);
    found = data.entries.filter((entry) =>
      (!state || entry.condition === state)
      && (!environment || entry.environment === environment)
      && (!level || entry.level === level)
      && words.every((word) => entry.text.includes(word)));
    const order = orders[sorted.column];
    const sign = sorted.up ? 1 : -1;
    found.sort((a, b) => sign * order(a, b) || a.number - b.number);
  }

  function damage(entry) {
    return entry.damage ? [element("span", { className: "damage" }, isolated(entry.damage))] : [];
  }

  function row(entry) {
    const opener = element("button", {
      type: "button", className: "opener", title: entry.key,
      "aria-expanded": String(open.has(entry.number)),
    }, entry.key.slice(0, 12));
    const cell = (label, content, className = "", title = "") =>
      element("td", { "data-label": label, className, title }, content);
    const state = element("span", { className: `state ${entry.condition}` }, entry.condition);
    const line = element("tr", {},
      element("th", { scope: "row", className: "title" },
        entry.kernel ? breakable(entry.kernel) : element("span", { className: "quiet" }, "unknown"),
        ...damage(entry)),
      cell("Key", opener),
      cell("State", state),
      cell("CPU level", entry.level),
      cell("Files", entry.manifest ? String(entry.files.length) : "", "number"),
      cell("Size", entry.told.size, "number"),
      cell("Shared", entry.told.shared, "number"),
      cell("Published", entry.told.age, "number", entry.told.published),
      cell("Last used", entry.told.use, "number", entry.told.used));
    opener.addEventListener("click", () => {
      if (open.has(entry.number)) open.delete(entry.number);
      else open.add(entry.number);
      draw();
      const again = body.querySelector(`[data-number="${entry.number}"] .opener`);
      if (again) again.focus();
    });
    line.dataset.number = entry.number;
    return line;
  }

  function facts(pairs) {
    const list = element("dl", { className: "facts" });
    for (const [name, value, isDigest] of pairs) {
      if (value === "" || value === null) continue;
      list.append(
        element("dt", {}, name),
        element("dd", isDigest ? { className: "digest" } : {}, isolated(value)));
    }
    return list;
  }

  function files(entry) {
    const list = element("table", { className: "files" },
      element("thead", {}, element("tr", {},
        element("th", { scope: "col" }, "File"),
        element("th", { scope: "col", className: "number" }, "Size"),
        element("th", { scope: "col" }, "SHA-256"),
        element("th", { scope: "col" }, "In"))));
    const rows = element("tbody");
    for (const [path, content, executable] of entry.files) {
      const [sha256, told, entries] = data.contents[content];
      rows.append(element("tr", {},
        element("td", {}, isolated(data.paths[path] + (executable ? " (executable)" : ""))),
        element("td", { className: "number" }, told),
        element("td", { className: "digest", title: sha256 }, sha256.slice(0, 12)),
        element("td", {}, entries === 1 ? "this entry" : `${entries} entries`)));
    }
    list.append(rows);
    return list;
  }

  function details(entry) {
    const left = element("div", {}, element("h3", {}, "Identity"), facts([
      ["key", entry.key, true],
      ...entry.components.map(([name, digest]) => [name, digest, true]),
      ["specification", entry.spec, true],
      ["kind", entry.kind, false],
      ["runs on", entry.execution.join(", "), false],
      ["published", entry.told.published, false],
      ["last used", entry.told.used, false],
      ["directory", entry.path, true],
    ]));
    const right = element("div", {}, element("h3", {}, "Files"));
    if (entry.files.length) right.append(files(entry));
    return element("tr", { className: "details" },
      element("td", { colSpan: 9 }, element("div", { className: "parts" }, left, right)));
  }

  function draw(all = false) {
    const shown = all ? found : found.slice(first, first + PAGE);
    const rows = [];
    for (const entry of shown) {
      rows.push(row(entry));
      if (open.has(entry.number)) rows.push(details(entry));
    }
    if (!rows.length) {
      rows.push(element("tr", {},
        element("td", { colSpan: 9, className: "empty title" }, "No entry fits.")));
    }
    body.replaceChildren(...rows);
    const last = Math.min(first + PAGE, found.length);
    const number = (value) => value.toLocaleString("en-US");
    const of = found.length === data.entries.length
      ? `${number(found.length)} entries`
      : `${number(found.length)} of ${number(data.entries.length)} entries`;
    status.textContent = found.length > PAGE ? `${number(first + 1)}–${number(last)} of ${of}` : of;
    pages.hidden = found.length <= PAGE;
    pages.children[0].disabled = first === 0;
    pages.children[1].disabled = last >= found.length;
    for (const head of table.tHead.querySelectorAll("th")) {
      if (head.dataset.column === sorted.column) {
        head.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      } else head.removeAttribute("aria-sort");
    }
  }

  function renew() {
    first = 0;
    choose();
    draw();
  }

  for (const head of table.tHead.querySelectorAll("th")) {
    const button = element("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const column = head.dataset.column;
      sorted.up = sorted.column === column ? !sorted.up : !downwards.has(column);
      sorted.column = sorting.value = column;
      renew();
    });
  }
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(renew, data.entries.length > 2000 ? 120 : 0);
  });
  const sorting = document.getElementById("sort");
  sorting.addEventListener("change", () => {
    [sorted.column, sorted.up] = [sorting.value, !downwards.has(sorting.value)];
    renew();
  });
  for (const choice of choices) choice.addEventListener("change", renew);
  const turn = (amount) => () => {
    first += amount;
    draw();
    table.scrollIntoView();
  };
  pages.children[0].addEventListener("click", turn(-PAGE));
  pages.children[1].addEventListener("click", turn(PAGE));
  // Paper gets every row that the filters leave.
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw());

  table.querySelector("tbody.still").remove();
  table.append(body);
  renew();
})();
