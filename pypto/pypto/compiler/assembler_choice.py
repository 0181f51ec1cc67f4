"""Which assembler the builds of a process run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from pypto_toolchains.environment import variables_of_tools
from pypto_toolchains.ptoas import PtoasNotFound, select_ptoas
from pypto_toolchains.ptoas_acceptance import refusal

_LOG = logging.getLogger("pypto.compiler")


class AssemblerChoice:
    """Chooses the assembler that the environment selects, as long as it does the work.

    One that does not come with the package is tried before its first use, and replaced by the
    bundled one where it fails: a build goes on, and the log says once why it went on otherwise.
    """

    def __init__(self) -> None:
        self._accepted: set[tuple[object, ...]] = set()
        self._told: set[str] = set()

    def choose(self, environ: Mapping[str, str], bundled: Path, project_root: Path) -> Path:
        """The assembler to run in `project_root`.

        Raises PtoasNotFound where the environment selects nothing, and where what it selects
        cannot be used and nothing is bundled.
        """
        selected = select_ptoas(environ, bundled, project_root)
        if selected == bundled:
            return bundled
        circumstances = (selected, *map(environ.get, variables_of_tools()))
        if circumstances in self._accepted:
            return selected
        refused = refusal(str(selected), environ, str(project_root))
        if refused is None:
            self._accepted.add(circumstances)
            return selected
        if not bundled.is_file():
            raise PtoasNotFound(f"{refused}; there is no bundled assembler to use in its place")
        if refused not in self._told:
            self._told.add(refused)
            _LOG.warning("the bundled assembler is used, because %s", refused)
        return bundled
