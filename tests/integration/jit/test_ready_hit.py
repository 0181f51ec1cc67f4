"""What one process made, another one finds: complete, checked, without building anything."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

BUILDS = ("generation_builds", "binary_builds")


def builds(report: dict[str, object]) -> tuple[int, ...]:
    stats = report["stats"]
    assert isinstance(stats, dict)
    return tuple(stats[name] for name in BUILDS)


@pytest.mark.conforms("cache.33")
def test_a_fresh_process_starts_no_program_and_runs_the_kernel(filled: Any) -> None:
    report = filled.run(filled.WARM + filled.RUN)
    stats = report["stats"]
    assert report["correct"]
    assert not report["started"]
    assert not report["has_program"]
    assert builds(report) == (0, 0)
    assert stats["ready_hits"] == 1
    assert stats["object_hits"] == 1
    assert stats["requests"] == 2
    assert stats["misses"] == stats["bypasses"] == stats["generated_hits"] == 0
    assert stats["invalid_entries"] == stats["storage_errors"] == 0


def test_a_hit_writes_nothing(filled: Any) -> None:
    assert filled.root is not None
    # Another home is another place where tools may be found: what is found there is kept once.
    filled.run(filled.WARM)
    before = filled.tree(filled.root)
    filled.run(filled.WARM + filled.RUN)
    assert filled.tree(filled.root) == before


@pytest.mark.conforms("cache.37")
def test_warming_starts_no_thread(filled: Any) -> None:
    assert filled.run(filled.WARM)["threads"]


@pytest.mark.conforms("cache.34", "cache.35", "cache.36", "cache.105")
def test_compiling_publishes_sources_alone_and_running_the_binaries(house: Any) -> None:
    report = house.run(house.COMPILE)
    assert report["has_program"]
    assert builds(report) == (1, 0)
    assert len(house.slots("generated")) == 1
    assert not house.slots("ready")
    report = house.run(house.RUN)
    assert report["correct"]
    assert builds(report) == (0, 1)
    assert report["stats"]["generated_hits"] == 1
    assert len(house.slots("ready")) == 1
    report = house.run(house.RUN)
    assert report["correct"]
    assert builds(report) == (0, 0)
    assert report["stats"]["ready_hits"] == 1


@pytest.mark.conforms("cache.58")
def test_entries_hold_what_they_promise(filled: Any) -> None:
    (generated,), (ready,) = filled.slots("generated"), filled.slots("ready")
    assert (generated / "kernel_config.json").is_file()
    names = {path.name for path in ready.rglob("*") if path.is_file()}
    assert {"kernel_config.json", "compiled_meta.json", "binary_manifest.json"} <= names
    assert not [name for name in names if name.endswith((".cpp", ".pto", ".py"))]


def test_no_path_of_this_machine_is_in_an_entry(filled: Any) -> None:
    for slot in (*filled.slots("generated"), *filled.slots("ready")):
        for path in slot.rglob("*"):
            if path.is_file():
                assert str(filled.top.parent).encode() not in path.read_bytes(), path


@pytest.mark.conforms("cache.39")
def test_a_poisoned_configuration_module_is_never_executed(filled: Any) -> None:
    (generated,) = filled.slots("generated")
    (generated / "kernel_config.py").write_text("raise SystemExit('executed')\n")
    report = filled.run(filled.WARM)
    assert report["stats"]["ready_hits"] == 1


@pytest.mark.conforms("cache.40")
def test_without_sources_the_binaries_are_discovered(filled: Any) -> None:
    (generated,) = filled.slots("generated")
    shutil.rmtree(generated)
    report = filled.run(filled.WARM + filled.RUN)
    assert report["correct"]
    assert builds(report) == (0, 0)
    assert report["stats"]["ready_hits"] == 1


@pytest.mark.conforms("cache.41")
def test_a_damaged_hint_leads_to_discovery(filled: Any) -> None:
    (generated,) = filled.slots("generated")
    (generated / "kernel_config.json").write_text("{}")
    report = filled.run(filled.WARM)
    assert report["stats"]["ready_hits"] == 1
    assert report["stats"]["invalid_entries"] == 1


def _payload(slot: Path) -> list[Path]:
    return sorted(path for path in slot.rglob("*") if path.is_file())


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.unlink()
    path.write_bytes(content)


@pytest.mark.conforms("cache.43", "cache.50")
@pytest.mark.conforms("cache.104")
@pytest.mark.parametrize(
    "name", ["kernel_0.bin", "orchestration.bin", "compiled_meta.json", "artifact_manifest.json"]
)
def test_a_flipped_byte_in_the_binaries_is_never_served(filled: Any, name: str) -> None:
    (ready,) = filled.slots("ready")
    (victim,) = [path for path in _payload(ready) if path.name == name]
    flip(victim)
    before = filled.tree(ready)
    report = filled.run(filled.WARM + filled.RUN)
    stats = report["stats"]
    assert report["correct"]
    assert stats["ready_hits"] == 0
    assert stats["generated_hits"] == 1
    assert stats["invalid_entries"] == 1
    assert stats["binary_builds"] == 1
    assert filled.tree(ready) == before


def test_a_description_that_changed_since_its_validation_is_not_used(filled: Any) -> None:
    change = """
import pypto_store.entry as entry
def changed(self, path):
    raise entry.EntryChanged(f"{self.directory}/{path} has changed")
entry.Entry.read = changed
"""
    report = filled.run(change + filled.WARM + filled.RUN)
    assert report["correct"]
    assert report["key"] is None
    assert report["stats"]["invalid_entries"] == 1
    assert builds(report) == (1, 1)


LOST = {
    "flipped": "content[len(content) // 2] ^= 1",
    "shortened": "del content[-1]",
    "gone": "content = None",
}


@pytest.mark.conforms("cache.50")
@pytest.mark.parametrize("name", ["kernel_0.bin", "orchestration.bin"])
@pytest.mark.parametrize("damage", LOST)
def test_what_was_damaged_between_the_lookup_and_the_first_run_is_built_anew_and_left(
    filled: Any, name: str, damage: str
) -> None:
    lose = f"""
(victim,) = Path(job["root"]).glob("artifacts/v1/*/*/ready/*/**/{name}")
content = bytearray(victim.read_bytes())
{LOST[damage]}
victim.unlink()
if content is not None:
    victim.write_bytes(content)
def files():
    return sorted(
        (str(p), p.read_bytes()) for p in victim.parents[1].rglob("*") if p.is_file()
    )
before = files()
"""
    after = "report['as found'] = files() == before\n"
    report = filled.run(filled.WARM + lose + filled.RUN + filled.RUN + after)
    stats = report["stats"]
    assert report["correct"]
    assert report["as found"]
    assert stats["ready_hits"] == 1
    assert stats["object_hits"] == 2
    assert stats["invalid_entries"] == 1
    assert builds(report) == (1, 1)


@pytest.mark.conforms("cache.44")
@pytest.mark.conforms("cache.104")
def test_damage_in_both_states_builds_privately_and_overwrites_nothing(filled: Any) -> None:
    assert filled.root is not None
    for state in ("generated", "ready"):
        (slot,) = filled.slots(state)
        flip(slot / "compiled_meta.json")
    before = filled.tree(filled.root / "artifacts")
    report = filled.run(filled.WARM + filled.RUN)
    assert report["correct"]
    assert report["key"] is None
    assert builds(report) == (1, 1)
    assert report["stats"]["misses"] == 1
    assert report["stats"]["invalid_entries"] == 2
    assert filled.tree(filled.root / "artifacts") == before


@pytest.mark.parametrize(
    "edit",
    [
        "source.write_text(source.read_text().replace('0x1p+1f', '0x3p+1f'))",
        "source.write_text('this does not compile')",
        "source.unlink()",
    ],
)
def test_sources_that_change_before_they_are_compiled_become_no_binaries(
    house: Any, edit: str
) -> None:
    damage = f"""
for source in Path(job["root"]).glob("artifacts/v1/*/*/generated/kernels/*/*.cpp"):
    {edit}
    report["damaged"] = True
compiled.complete()
report["private"] = compiled.artifact_key is None
"""
    report = house.run(house.COMPILE + damage + house.RUN)
    assert report["damaged"]
    assert report["private"]
    assert report["correct"]
    assert report["stats"]["invalid_entries"] == 1
    assert not house.slots("ready")
    after = house.run(house.RUN)
    assert after["correct"]
    assert after["stats"]["invalid_entries"] == 1


@pytest.mark.conforms("cache.50")
@pytest.mark.parametrize("damage", ["extra", "missing", "truncated", "link"])
def test_any_other_file_set_is_invalid(filled: Any, damage: str) -> None:
    (ready,) = filled.slots("ready")
    victim = ready / "prebuilt" / "kernel_0.bin"
    match damage:
        case "extra":
            (ready / "prebuilt" / "more.bin").write_bytes(b"")
        case "missing":
            victim.unlink()
        case "truncated":
            content = victim.read_bytes()
            victim.unlink()
            victim.write_bytes(content[:-1])
        case "link":
            victim.rename(filled.top / "kernel")
            victim.symlink_to(filled.top / "kernel")
    report = filled.run(filled.WARM)
    assert report["stats"]["ready_hits"] == 0
    assert report["stats"]["invalid_entries"] == 1
