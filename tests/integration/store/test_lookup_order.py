"""Which entry answers a request, whatever of the key's entries is missing or damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Notes whether the key's directory is searched.
NOTED = """
from pypto_store import ArtifactStore
searched = []
discover = ArtifactStore.discover_ready
ArtifactStore.discover_ready = lambda *given: searched.append(given) or discover(*given)
kernels.kernel(x, out)
report["searched"] = len(searched)
"""


def flip(path: Path) -> None:
    """Change one byte, in a file of its own."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(data)
    path.chmod(mode)


def numbers(report: dict[str, Any], *names: str) -> tuple[int, ...]:
    return tuple(report["stats"][name] for name in names)


BUILDS = ("generation_builds", "binary_builds")


@pytest.mark.conforms("cache.40")
def test_ready_alone_is_found_by_searching(filled: Any) -> None:
    shutil.rmtree(filled.slot("generated"))
    report = filled.run(NOTED)
    assert report["correct"]
    assert report["searched"] == 1
    assert numbers(report, "ready_hits", "misses", *BUILDS) == (1, 0, 0, 0)
    assert report["programs"] == []


def scribble(slot: Path) -> None:
    manifest = slot / "artifact_manifest.json"
    data = manifest.read_bytes()
    manifest.unlink()
    manifest.write_bytes(b"[" + data[1:])


def truncate(slot: Path) -> None:
    os.truncate(slot / "artifact_manifest.json", 100)


def remove_hint(slot: Path) -> None:
    (slot / "kernel_config.json").unlink()


def replace_slot(slot: Path) -> None:
    shutil.rmtree(slot)
    slot.write_text("a file")


@pytest.mark.conforms("cache.41")
@pytest.mark.parametrize(
    "damage",
    [
        lambda slot: flip(slot / "kernel_config.json"),
        scribble,
        truncate,
        remove_hint,
        replace_slot,
    ],
    ids=["hint", "manifest", "short manifest", "no hint", "no directory"],
)
def test_ready_is_found_by_searching_when_the_hint_cannot_be_used(
    filled: Any, damage: Callable[[Path], None]
) -> None:
    damage(filled.slot("generated"))
    report = filled.run(NOTED)
    assert report["correct"]
    assert report["searched"] == 1
    assert numbers(report, "ready_hits", "invalid_entries", "misses") == (1, 1, 0)
    assert numbers(report, *BUILDS) == (0, 0)


@pytest.mark.conforms("cache.41")
def test_damage_beside_the_hint_leaves_ready_to_answer(filled: Any) -> None:
    slot = filled.slot("generated")
    for path in slot.rglob("*.cpp"):
        flip(path)
    report = filled.run(NOTED)
    assert report["correct"]
    # READY is named by the hint and vouches for itself: nobody looks at the rest of GENERATED.
    assert numbers(report, "ready_hits", "misses", *BUILDS) == (1, 0, 0, 0)
    assert numbers(report, "invalid_entries") == (0,)
    assert report["searched"] == 0


@pytest.mark.conforms("cache.42")
def test_a_usable_hint_without_its_ready_entry_restores_generated(
    filled: Any, snapshot_of: Any
) -> None:
    ready = filled.slot("ready")
    # Something to find, if anyone searched.
    ready.rename(ready.with_name("0" * 64))
    before = snapshot_of(filled.slot("generated"))
    report = filled.run(NOTED)
    assert report["correct"]
    assert report["searched"] == 0
    assert numbers(report, "generated_hits", "ready_hits", *BUILDS) == (1, 0, 0, 1)
    assert numbers(report, "invalid_entries") == (0,)
    assert snapshot_of(filled.root / "artifacts") != before
    assert ready.is_dir()


@pytest.mark.conforms("cache.42")
def test_generated_is_validated_whole_before_it_is_restored(filled: Any) -> None:
    shutil.rmtree(filled.slot("ready"))
    (victim, *_) = filled.slot("generated").glob("kernels/*/*.cpp")
    flip(victim)
    report = filled.run(NOTED)
    assert report["correct"]
    assert report["searched"] == 1
    assert numbers(report, "generated_hits", "misses", "invalid_entries") == (0, 1, 1)
    assert numbers(report, *BUILDS) == (1, 1)


@pytest.mark.conforms("cache.43")
@pytest.mark.parametrize("name", ["kernel_0.bin", "kernel_config.json", "artifact_manifest.json"])
def test_generated_answers_for_a_damaged_ready_entry(
    filled: Any, snapshot_of: Any, name: str
) -> None:
    ready = filled.slot("ready")
    (victim,) = ready.rglob(name)
    flip(victim)
    before = snapshot_of(ready)
    report = filled.run(NOTED)
    assert report["correct"]
    assert numbers(report, "generated_hits", "ready_hits", "invalid_entries") == (1, 0, 1)
    assert numbers(report, *BUILDS) == (0, 1)
    assert snapshot_of(ready) == before


@pytest.mark.conforms("cache.44")
def test_with_both_damaged_the_build_is_private(filled: Any, snapshot_of: Any) -> None:
    for state in ("generated", "ready"):
        flip(filled.slot(state) / "compiled_meta.json")
    before = snapshot_of(filled.root / "artifacts")
    blobs = snapshot_of(filled.root / "cas")
    report = filled.run(NOTED)
    assert report["correct"]
    assert numbers(report, "misses", "invalid_entries", *BUILDS) == (1, 2, 1, 1)
    assert snapshot_of(filled.root / "artifacts") == before
    assert snapshot_of(filled.root / "cas") == blobs


# A second READY entry under the same key, as valid as the first.
TWIN = """
import json as _json
from pypto.jit.artifacts import ready_spec
from pypto.runtime.kernel_config import KernelConfig
from pypto_store import ArtifactStore, Published
from pypto_store.listing import iterate_entries
(row,) = [row for row in iterate_entries(job["root"]) if row.state.value == "ready"]
table = _json.loads((Path(row.path) / "kernel_config.json").read_bytes())
table["platform"] = "a5sim"
def copy(directory):
    import shutil
    shutil.copytree(row.path, directory, dirs_exist_ok=True)
    (directory / "artifact_manifest.json").unlink()
    (directory / "kernel_config.json").write_text(_json.dumps(table))
spec = ready_spec(KernelConfig.parse(_json.dumps(table).encode()))
made = ArtifactStore(Path(job["root"])).get_or_build(
    row.manifest.key, spec, copy, private_parent=Path("private"))
report["twin"] = isinstance(made, Published)
"""


@pytest.mark.conforms("cache.48")
def test_two_valid_ready_entries_are_a_miss(filled: Any) -> None:
    generated = filled.slot("generated")
    shutil.rmtree(generated)
    report = filled.run(TWIN + NOTED)
    assert report["twin"]
    assert report["correct"]
    assert numbers(report, "ready_hits", "misses", "invalid_entries") == (0, 1, 1)
    assert numbers(report, "generation_builds") == (1,)
    # Now there is a hint, and it decides between the two.
    assert generated.is_dir()
    report = filled.run(NOTED)
    assert report["correct"]
    assert numbers(report, "ready_hits", "misses") == (1, 0)


EVERY_ROOT = """
report["roots"] = {}
for root in sorted(Path(job["root"]).parent.glob("damaged-*")):
    pypto.configure_cache(pypto.CacheConfig(enabled=True, root=root))
    before = pypto.cache_stats()
    out.zero_()
    kernels.kernel(x, out)
    after = pypto.cache_stats()
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines()
              if str(root) in line]
    report["roots"][root.name] = {
        "correct": torch.equal(out, x * kernels.SCALE),
        "ready": after.ready_hits - before.ready_hits,
        "invalid": after.invalid_entries - before.invalid_entries,
        "mapped": mapped,
    }
"""


def damages(slot: Path) -> dict[str, Callable[[Path], None]]:
    """Every kind of damage to every file of a slot, by name; each takes the slot to damage."""

    def shorten(path: Path) -> None:
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[:-1])

    def link(path: Path) -> None:
        aside = path.with_name(f"{path.name}-aside")
        shutil.move(path, slot.parents[6] / aside.name)
        path.symlink_to(slot.parents[6] / aside.name)

    def fifo(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    library = "prebuilt/kernel_0.bin"
    files = sorted(str(p.relative_to(slot)) for p in slot.rglob("*") if p.is_file())
    kinds: dict[str, Callable[[Path], None]] = {
        f"flip-{path.replace('/', '-')}": lambda root, path=path: flip(root / path)  # type: ignore[misc]
        for path in files
    }
    kinds["shorten"] = lambda root: shorten(root / library)
    kinds["extra"] = lambda root: (root / "prebuilt/more.bin").write_bytes(b"")  # type: ignore[assignment, return-value]
    kinds["extra-directory"] = lambda root: (root / "more").mkdir()
    kinds["missing"] = lambda root: (root / library).unlink()
    kinds["link"] = lambda root: link(root / library)
    kinds["fifo"] = lambda root: fifo(root / library)
    return kinds


@pytest.mark.conforms("cache.50")
def test_no_library_of_a_damaged_entry_is_ever_mapped(filled: Any) -> None:
    ready = filled.slot("ready")
    inside = ready.relative_to(filled.root)
    kinds = damages(ready)
    assert len(kinds) > 9
    for name, damage in kinds.items():
        copy = filled.top / f"damaged-{name}"
        shutil.copytree(filled.root, copy, symlinks=True)
        damage(copy / inside)
    shutil.copytree(filled.root, filled.top / "damaged-not-at-all", symlinks=True)
    report = filled.run(EVERY_ROOT)
    whole = report["roots"].pop("damaged-not-at-all")
    assert whole["ready"] == 1
    assert whole["mapped"], "a library of a whole entry is mapped where it lies"
    assert set(report["roots"]) == {f"damaged-{name}" for name in kinds}
    for name, seen in report["roots"].items():
        assert seen == {"correct": True, "ready": 0, "invalid": 1, "mapped": []}, name


PLANT = """
import pypto.jit.building as building
generate = building.Recipe.generate
def plant(self, directory):
    program = generate(self, directory)
    for name in ("cache", "prebuilt"):
        (directory / name).mkdir()
        (directory / name / "kernel_0.bin").write_bytes(b"planted")
        (directory / name / "orchestration.bin").write_bytes(b"planted")
    (directory / "binary_manifest.json").write_bytes(b"{}")
    return program
building.Recipe.generate = plant
compiled = kernels.kernel.warmup()
kernels.kernel(x, out)
"""


@pytest.mark.conforms("cache.79")
def test_binaries_that_came_with_the_sources_are_never_promoted(site: Any) -> None:
    report = site.run(PLANT)
    assert report["correct"]
    assert numbers(report, "generation_builds", "binary_builds") == (1, 1)
    generated, ready = site.slot("generated"), site.slot("ready")
    assert (generated / "prebuilt/kernel_0.bin").read_bytes() == b"planted"
    for path in ready.rglob("*"):
        assert not path.is_file() or b"planted" not in path.read_bytes()
    report = site.run("kernels.kernel(x, out)")
    assert report["correct"]
    assert numbers(report, "ready_hits") == (1,)
