"""What every page has to hold to, as questions to a tab."""

from __future__ import annotations

import struct
import zlib

# Contrast of every text, as WCAG counts it: those below 4.5.
_CONTRAST = """
(() => {
  const channel = (value) =>
    value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255)
    + 0.0722 * channel(b / 255);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const worst = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, option")) continue;
    const pair = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) worst[`${element.tagName}.${element.className}`] = ratio;
  }
  return worst;
})()
"""


def colours(png):
    """The distinct colours of a PNG of eight bits a channel, not interlaced."""
    position, data, width, channels = 8, b"", 0, 0
    while position < len(png):
        (size,) = struct.unpack(">I", png[position : position + 4])
        kind, body = png[position + 4 : position + 8], png[position + 8 : position + 8 + size]
        if kind == b"IHDR":
            width, _, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        position += 12 + size
    rows = zlib.decompress(data)
    stride = width * channels
    above = bytearray(stride)
    found = set()
    for start in range(0, len(rows), stride + 1):
        line = unfiltered(
            rows[start], bytearray(rows[start + 1 : start + 1 + stride]), above, channels
        )
        found |= {bytes(line[at : at + 3]) for at in range(0, stride, channels)}
        above = line
    return found


def unfiltered(kind, line, above, step):
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        up = above[at]
        corner = above[at - step] if at >= step else 0
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda value: abs(guess - value))
        line[at] = (line[at] + (0, left, up, (left + up) // 2, nearest)[kind]) & 0xFF
    return line


def overflow(tab):
    """How many pixels the page is wider than what shows it."""
    return tab.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def cramped(tab):
    """The cells whose content is wider than they are, and so lies over the next."""
    return tab.value(
        "[...document.querySelectorAll('tbody th, tbody td')]"
        ".filter((cell) => cell.clientWidth && cell.scrollWidth > cell.clientWidth)"
        ".map((cell) => cell.textContent)"
    )


def unreadable(tab):
    """The texts whose contrast with what is behind them is too low, by element."""
    return tab.value(_CONTRAST)


def click(tab, selector):
    tab.value(f"document.querySelector({selector!r}).click()")


def contents(tab, selector):
    """The texts of the elements that a selector finds."""
    return tab.value(f"[...document.querySelectorAll({selector!r})].map((e) => e.textContent)")


def choose(tab, selector, value):
    """Give a control a value, as a person would."""
    tab.value(
        f"(() => {{ const c = document.querySelector({selector!r}); c.value = {value!r};"
        " c.dispatchEvent(new Event('input', {bubbles: true}));"
        " c.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def press(tab, key, code=""):
    """Press and release a key, where the focus is."""
    for kind in ("keyDown", "keyUp"):
        letter = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **letter)


def settle(tab, milliseconds=200):
    """Let timers of the page run out."""
    tab.value(f"new Promise((done) => setTimeout(done, {milliseconds}))")
