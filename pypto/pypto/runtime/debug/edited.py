"""Making edits of a build directory count: assembler texts, and binaries that are there already.

A directory with several programs is treated with all of them. What lies in a cache is refused:
others share it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pypto.codegen.kernel_wrapper import BODY_BEGINS, ENTRY_BEGINS, embedded_body
from pypto.runtime import kernel_config
from pypto.runtime.binary_directory import invalidate_binaries
from pypto.runtime.directory_kind import CHILDREN, where_to_look
from pypto.runtime.errors import ArtifactError
from pypto.runtime.host import environment, selected_sdk
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.whole_file import replace_file
from pypto_store.layout import MARKER_NAME
from pypto_toolchains.declared_environment import environment_of_tools
from pypto_toolchains.process import ToolFailed, compiler_timeout
from pypto_toolchains.ptoas import PtoasNotFound, select_ptoas
from pypto_toolchains.ptoas_acceptance import translate

# The function's parameters, as the assembler writes them.
_PARAMETERS = re.compile(r"\bAICORE\s+void\s+\w+\s*(\([^)]*\))")


def invalidate_binary_cache(directory: str | os.PathLike[str]) -> None:
    """Make the next use of a build directory compile every binary from its sources.

    Raises FileNotFoundError where there is no build, ValueError for a directory in a cache.
    """
    for build in _builds(Path(directory)):
        invalidate_binaries(build)


def rebuild_kernel_cpp_from_pto(directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Assemble every ``ptoas/*.pto`` that is newer than its C++, and put the result into kernels.

    What stands between the two marks of ``kernels/<core>/<name>.cpp`` is replaced, the rest stays.
    Gives the kernels that were changed. Without an assembler nothing happens. After an error the
    C++ of the text that failed is as it was.

    Raises ArtifactError naming the file: the assembler rejected it, the marks are gone, or the
    function has other parameters than the kernel around it, which only a new compile can mend.
    """
    environ = environment_of_tools(environment())
    changed: list[Path] = []
    for build in _builds(Path(directory)):
        texts = sorted(path for path in (build / "ptoas").glob("*.pto") if _is_newer(path))
        for text in texts:
            changed += _spliced(build, text, environ)
    return tuple(changed)


def refuse_cache(directory: Path) -> None:
    """ValueError for a directory inside a cache root, which nobody may change."""
    real = directory.resolve()
    for parent in (real, *real.parents):
        if (parent / MARKER_NAME).is_file() and (parent / "artifacts").is_dir():
            raise ValueError(
                f"{directory} lies in the cache root {parent}, which others share; export it "
                "first: python -m pypto_store export"
            )


def _builds(directory: Path) -> Iterator[Path]:
    refuse_cache(directory)
    found = [directory, *sorted((directory / CHILDREN).glob("*"))]
    builds = [path for path in found if (path / kernel_config.FILE_NAME).is_file()]
    if not builds:
        raise FileNotFoundError(f"{directory}: holds no build; {where_to_look(directory)}")
    yield from builds


def _is_newer(text: Path) -> bool:
    made = text.with_suffix(".cpp")
    return not made.exists() or text.stat().st_mtime_ns > made.stat().st_mtime_ns


def _spliced(build: Path, text: Path, environ: Mapping[str, str]) -> list[Path]:
    sdk = selected_sdk(environ)
    try:
        assembler = select_ptoas(environ, sdk.ptoas, sdk.root)
    except PtoasNotFound:
        return []
    path = build / kernel_config.FILE_NAME
    config = KernelConfig.parse(path.read_bytes(), str(path))
    arch = sdk.target(config.platform).arch
    output = text.with_name(f".{text.stem}.{os.getpid()}.cpp")
    try:
        try:
            translate(
                Path(assembler),
                text.name,
                output.name,
                arch,
                directory=text.parent,
                environ=environ,
                timeout=compiler_timeout(environ),
            )
        except ToolFailed as error:
            raise ArtifactError(f"{text} was rejected: {error}") from error
        body = embedded_body(output.read_text(encoding="utf-8"))
        kernels = sorted((build / "kernels").glob(f"*/{text.stem}.cpp"))
        for kernel, new in [(kernel, _with_body(kernel, text, body)) for kernel in kernels]:
            replace_file(kernel, new.encode())
        # Last, because its time says that all of the above is done.
        output.replace(text.with_suffix(".cpp"))
        _make_no_older(text.with_suffix(".cpp"), text)
    finally:
        output.unlink(missing_ok=True)
    return kernels


def _make_no_older(made: Path, text: Path) -> None:
    # The text's time may be ahead of this machine's clock.
    written, edited = made.stat().st_mtime_ns, text.stat().st_mtime_ns
    if written < edited:
        os.utime(made, ns=(edited, edited))


def _with_body(kernel: Path, text: Path, body: str) -> str:
    source = kernel.read_text(encoding="utf-8")
    before, begins, rest = source.partition(BODY_BEGINS)
    old, ends, after = rest.partition(ENTRY_BEGINS)
    if not begins or not ends:
        raise ArtifactError(
            f"{kernel}: has lost the line {(BODY_BEGINS if not begins else ENTRY_BEGINS)!r}, "
            f"between which {text.name} belongs; put it back or compile the program again"
        )
    if _parameters(old) != _parameters(body):
        raise ArtifactError(
            f"{text}: its function takes other parameters than {kernel} passes; a changed "
            "signature needs a new compile"
        )
    return f"{before}{begins}\n{body}\n\n{ends}{after}"


def _parameters(body: str) -> str | None:
    found = _PARAMETERS.search(body)
    return None if found is None else re.sub(r"\bv\d+\b|\s+", "", found.group(1))
