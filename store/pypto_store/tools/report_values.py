"""The values of a report: as people read them, and as JSON that a page can embed."""

from __future__ import annotations

from datetime import UTC, datetime

from pypto_store.tools.html_page import embedded_json, visible
from pypto_store.tools.survey import Survey, Surveyed
from pypto_store.tools.terminal import size_text

DATA_SCHEMA = 1

_AGES = (("year", 365 * 86400), ("month", 30 * 86400), ("day", 86400), ("h", 3600), ("min", 60))


def condition(entry: Surveyed) -> str:
    return "damaged" if entry.damage else entry.row.state.value


def kind(entry: Surveyed) -> str:
    return "" if entry.row.spec is None else entry.row.spec.build_kind


def level(entry: Surveyed) -> str:
    return "" if entry.row.spec is None else entry.row.spec.cpu_level or ""


def told(entry: Surveyed, now: float) -> dict[str, str]:
    """Numbers as people read them, the same with and without scripts."""
    known = entry.row.size is not None
    return {
        "size": size_text(entry.row.size or 0) if known else "",
        "shared": (size_text(entry.shared) if entry.shared else "none") if known else "",
        "age": age(entry.published, now),
        "published": "" if entry.published is None else moment(entry.published),
        "use": age(entry.used, now),
        "used": "" if entry.used is None else moment(entry.used),
    }


def moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "a time that no calendar has"


def age(published: float | None, now: float) -> str:
    if published is None:
        return "not known"
    seconds = now - published
    if seconds < -60:
        return "in the future"
    for unit, length in _AGES:
        if seconds >= length:
            count = int(seconds // length)
            plural = "s" if unit in ("day", "month", "year") and count > 1 else ""
            return f"{count} {unit}{plural} ago"
    return "just now"


class _Pool:
    """Texts that repeat, each once and then by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of `text`."""
        return self._numbers.setdefault(text, len(self._numbers))

    def texts(self) -> list[str]:
        """All of them by number."""
        return list(self._numbers)


def embedded(survey: Survey, now: float) -> str:
    """The survey as JSON that a script element can hold: repeated texts once, no "<" at all."""
    numbers = {content.sha256: number for number, content in enumerate(survey.contents)}
    paths, digests = _Pool(), _Pool()
    entries = []
    for number, entry in enumerate(survey.entries):
        row = entry.row
        manifest = row.manifest
        components = () if manifest is None else manifest.key.components()
        records = () if manifest is None else manifest.files
        entries.append(
            {
                "number": number,
                "kernel": visible(entry.kernel),
                "key": row.key,
                "environment": digests.number(row.environment),
                "condition": condition(entry),
                "damage": visible(entry.damage or ""),
                "slot": row.path.rpartition(f"/{row.key}/")[2],
                "kind": kind(entry),
                "level": level(entry),
                "execution": [] if row.spec is None else list(row.spec.execution),
                "spec": "" if row.spec is None else row.spec.digest.hex,
                "manifest": manifest is not None,
                "components": [digests.number(digest.hex) for _, digest in components],
                "size": row.size or 0,
                "shared": entry.shared,
                "published": entry.published or 0,
                "used": entry.used or 0,
                "told": told(entry, now),
                "files": [
                    [paths.number(record.path), numbers[record.sha256], int(record.executable)]
                    for record in records
                    if record.sha256 in numbers
                ],
            }
        )
    document = {
        "schema_version": DATA_SCHEMA,
        "root": visible(survey.root),
        "artifacts": visible(survey.artifacts),
        "now": now,
        "payload_size": survey.payload_size,
        "disk_size": survey.disk_size,
        "components": ["application", "environment", "format", "source", "specialization"],
        "entries": entries,
        "paths": [visible(path) for path in paths.texts()],
        "digests": digests.texts(),
        "contents": [
            [content.sha256, size_text(content.size), content.entries]
            for content in survey.contents
        ],
    }
    return embedded_json(document)
