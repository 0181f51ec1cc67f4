"use strict";
// What differs between two programs: functions by name, then lines, then words.
const irDiff = (() => {
  const CELLS = 4e6; // the largest table that is filled; beyond it, lines that occur once guide

  // Runs of [kind, from in a, from in b, length]; kind is "same", "gone" or "new". Items are
  // compared by identity.
  function runs(a, b) {
    const found = [];
    const add = (kind, i, j, length) => {
      if (!length) return;
      const last = found.at(-1);
      if (last && last[0] === kind && last[1] + (kind === "new" ? 0 : last[3]) === i
        && last[2] + (kind === "gone" ? 0 : last[3]) === j) last[3] += length;
      else found.push([kind, i, j, length]);
    };
    const compare = (a0, a1, b0, b1) => {
      let head = 0;
      while (a0 + head < a1 && b0 + head < b1 && a[a0 + head] === b[b0 + head]) head += 1;
      add("same", a0, b0, head);
      a0 += head;
      b0 += head;
      let tail = 0;
      while (a1 - tail > a0 && b1 - tail > b0 && a[a1 - tail - 1] === b[b1 - tail - 1]) tail += 1;
      middle(a0, a1 - tail, b0, b1 - tail);
      add("same", a1 - tail, b1 - tail, tail);
    };
    const middle = (a0, a1, b0, b1) => {
      if (a0 === a1 || b0 === b1) {
        add("gone", a0, b0, a1 - a0);
        add("new", a1, b0, b1 - b0);
      } else if ((a1 - a0) * (b1 - b0) <= CELLS) table(a0, a1, b0, b1);
      else {
        const anchors = unique(a0, a1, b0, b1);
        if (!anchors.length) {
          add("gone", a0, b0, a1 - a0);
          add("new", a1, b0, b1 - b0);
          return;
        }
        let [i, j] = [a0, b0];
        for (const [x, y] of anchors) {
          compare(i, x, j, y);
          add("same", x, y, 1);
          [i, j] = [x + 1, y + 1];
        }
        compare(i, a1, j, b1);
      }
    };
    const table = (a0, a1, b0, b1) => {
      const [n, m] = [a1 - a0, b1 - b0];
      const best = new Uint16Array((n + 1) * (m + 1)); // n or m is below 65,536: CELLS says so
      for (let i = n - 1; i >= 0; i -= 1) {
        for (let j = m - 1; j >= 0; j -= 1) {
          best[i * (m + 1) + j] = a[a0 + i] === b[b0 + j]
            ? best[(i + 1) * (m + 1) + j + 1] + 1
            : Math.max(best[(i + 1) * (m + 1) + j], best[i * (m + 1) + j + 1]);
        }
      }
      let [i, j] = [0, 0];
      while (i < n && j < m) {
        if (a[a0 + i] === b[b0 + j]) add("same", a0 + i++, b0 + j++, 1);
        else if (best[(i + 1) * (m + 1) + j] >= best[i * (m + 1) + j + 1]) add("gone", a0 + i++, b0 + j, 1);
        else add("new", a0 + i, b0 + j++, 1);
      }
      add("gone", a0 + i, b0 + j, n - i);
      add("new", a0 + n, b0 + j, m - j);
    };
    // The longest row of items that occur once on each side and stand in the same order.
    const unique = (a0, a1, b0, b1) => {
      const once = (items, from, to) => {
        const at = new Map();
        for (let i = from; i < to; i += 1) at.set(items[i], at.has(items[i]) ? -1 : i);
        return at;
      };
      const [left, right] = [once(a, a0, a1), once(b, b0, b1)];
      const piles = [];
      for (const [item, i] of left) {
        const j = right.get(item);
        if (i < 0 || j === undefined || j < 0) continue;
        let [low, high] = [0, piles.length];
        while (low < high) {
          const at = (low + high) >> 1;
          if (piles[at].j < j) low = at + 1;
          else high = at;
        }
        piles[low] = { i, j, before: low ? piles[low - 1] : null };
      }
      const found = [];
      for (let pile = piles.at(-1); pile; pile = pile.before) found.push([pile.i, pile.j]);
      return found.reverse();
    };
    compare(0, a.length, 0, b.length);
    return found;
  }

  // What a line is about: the name that it binds and the operation, whatever number tells the name
  // from others; or its first words.
  function subject(line) {
    const bound = line.match(/^\s*([A-Za-z_]\w*?)(?:_\d+)?(?::.*?)? = ([\w.]+)/);
    if (bound) return `${bound[1]} = ${bound[2]}`;
    return line.trim().split(/\s*(?:[:=(#]|$)/, 1)[0] || line.trim();
  }

  // Rows [line of a or -1, line of b or -1, changed] of two stretches of lines, counted from 0.
  function rows(a, aFrom, aTo, b, bFrom, bTo, text) {
    const made = [];
    let [gone, fresh] = [[], []];
    const flush = () => {
      const keys = new Map();
      const key = (line) => {
        const words = subject(text(line));
        if (!keys.has(words)) keys.set(words, keys.size);
        return keys.get(words);
      };
      const left = gone.map((i) => key(a[i]));
      const right = fresh.map((j) => key(b[j]));
      for (const [kind, i, j, length] of runs(left, right)) {
        for (let at = 0; at < length; at += 1) {
          made.push([kind === "new" ? -1 : gone[i + at], kind === "gone" ? -1 : fresh[j + at], true]);
        }
      }
      [gone, fresh] = [[], []];
    };
    for (const [kind, i, j, length] of runs(a.slice(aFrom, aTo), b.slice(bFrom, bTo))) {
      for (let at = 0; at < length; at += 1) {
        if (kind === "gone") gone.push(aFrom + i + at);
        else if (kind === "new") fresh.push(bFrom + j + at);
        else {
          flush();
          made.push([aFrom + i + at, bFrom + j + at, false]);
        }
      }
    }
    flush();
    return made;
  }

  // The rows of two passes. Functions are told apart by name, wherever they stand.
  function passes(base, pass, text) {
    const start = (one) => (one.sections.length ? one.sections[0][1] : one.lines.length);
    const made = rows(base.lines, 0, start(base), pass.lines, 0, start(pass), text);
    const left = new Map(base.sections.map((section) => [section[0], section]));
    const kept = new Set(pass.sections.map(([name]) => name));
    const gone = (section) => {
      made.push(...rows(base.lines, section[1], section[2], pass.lines, 0, 0, text));
    };
    let at = 0;
    for (const [name, from, to] of pass.sections) {
      // What went away is told where it stood: before the next function that stayed.
      const before = left.get(name);
      if (before) {
        for (; at < base.sections.length && base.sections[at] !== before; at += 1) {
          if (!kept.has(base.sections[at][0])) gone(base.sections[at]);
          else if (base.sections.indexOf(before) < at) break;
        }
        if (base.sections[at] === before) at += 1;
      }
      const [aFrom, aTo] = before ? [before[1], before[2]] : [0, 0];
      made.push(...rows(base.lines, aFrom, aTo, pass.lines, from, to, text));
    }
    const told = new Set(made.map(([i]) => i));
    for (const section of base.sections) {
      if (!kept.has(section[0]) && !told.has(section[1])) gone(section);
    }
    return made;
  }

  // The parts of two lines that differ, as [from, to) in each.
  function words(one, other) {
    const split = (line) => line.match(/\w+|\s+|[^\w\s]/g) || [];
    const [a, b] = [split(one), split(other)];
    const starts = (parts) => {
      let at = 0;
      return [...parts.map((part) => { const from = at; at += part.length; return from; }), at];
    };
    const [left, right] = [starts(a), starts(b)];
    const [gone, fresh] = [[], []];
    for (const [kind, i, j, length] of runs(a, b)) {
      if (kind === "gone") gone.push([left[i], left[i + length]]);
      if (kind === "new") fresh.push([right[j], right[j + length]]);
    }
    return [gone, fresh];
  }

  return { runs, passes, words };
})();
