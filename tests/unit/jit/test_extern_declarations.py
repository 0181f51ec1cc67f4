"""What ``pl.jit.extern`` accepts, and how a declared kernel looks in a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pypto.language as pl
import pytest
import torch
from pypto.codegen import generate
from pypto.codegen.dispatch import Dispatch
from pypto.ir.external import ExternalPart
from pypto.ir.nodes import Direction
from pypto.ir.structure import assert_structural_equal
from pypto.jit import JITFunction


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with two sources and a directory of headers."""
    for name in ("a.cpp", "b.cpp"):
        (tmp_path / name).write_text('extern "C" void kernel_entry(long*) {}\n')
    (tmp_path / "inc").mkdir()
    return tmp_path


def declare(**arguments: Any) -> JITFunction:
    @pl.jit.extern(**arguments)
    def stub(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INT32]): ...

    return stub


@pytest.mark.conforms("language.155")
def test_a_declaration_keeps_where_everything_is(files: Path) -> None:
    stub = declare(core_type="aiv", source=files / "a.cpp", include_dirs=[str(files / "inc")])
    external = stub.declaration.external
    assert external is not None
    assert external.parts == (ExternalPart("aiv", str(files / "a.cpp")),)
    assert external.include_dirs == (str(files / "inc"),)
    assert external.home == str(Path(__file__).absolute().parent)
    assert not external.dual_aiv_dispatch
    assert stub.__name__ == "stub"


@pytest.mark.conforms("language.155")
def test_a_mixed_kernel_has_a_part_for_each_core_type(files: Path) -> None:
    external = declare(
        core_type="mixed",
        aic_source=files / "a.cpp",
        aiv_source=files / "b.cpp",
        dual_aiv_dispatch=True,
    ).declaration.external
    assert external is not None
    assert external.parts == (
        ExternalPart("aic", str(files / "a.cpp")),
        ExternalPart("aiv", str(files / "b.cpp")),
    )
    assert external.dual_aiv_dispatch


@pytest.mark.conforms("language.155")
def test_relative_paths_count_from_the_declaring_file(files: Path) -> None:
    relative = os.path.relpath(files / "a.cpp", Path(__file__).absolute().parent)
    external = declare(core_type="aic", source=relative).declaration.external
    assert external is not None
    assert external.parts == (ExternalPart("aic", str(files / "a.cpp")),)


def test_a_kernel_outside_a_file_takes_absolute_paths_only(files: Path) -> None:
    text = (
        "import pypto.language as pl\n"
        "@pl.jit.extern(core_type='aiv', source={path!r})\n"
        "def stub(x: pl.Tensor): ...\n"
    )
    space: dict[str, Any] = {}
    exec(text.format(path=str(files / "a.cpp")), space)
    assert space["stub"].declaration.external.home is None
    with pytest.raises(ValueError, match="not declared in a file"):
        exec(text.format(path="a.cpp"), space)


@pytest.mark.conforms("language.155")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"core_type": "aiv"}, ValueError, "takes source="),
        ({"core_type": "vec", "source": "a"}, ValueError, "'aiv', 'aic' or 'mixed', not 'vec'"),
        ({"core_type": None, "source": "a"}, ValueError, "not None"),
        ({"core_type": "aiv", "source": "none.cpp"}, ValueError, "'none.cpp' is not a file"),
        ({"core_type": "aiv", "source": "inc"}, ValueError, "'inc' is not a file"),
        ({"core_type": "aiv", "source": "a", "aiv_source": "b"}, ValueError, "source= alone"),
        ({"core_type": "aic", "aic_source": "a"}, ValueError, "takes source="),
        ({"core_type": "aiv", "source": "a", "dual_aiv_dispatch": True}, ValueError, "'mixed'"),
        ({"core_type": "mixed", "source": "a"}, ValueError, "aic_source= and aiv_source="),
        ({"core_type": "mixed", "aic_source": "a"}, ValueError, "aic_source= and aiv_source="),
        (
            {"core_type": "mixed", "source": "a", "aic_source": "a", "aiv_source": "b"},
            ValueError,
            "no source=",
        ),
        (
            {"core_type": "mixed", "aic_source": "a", "aiv_source": "b", "dual_aiv_dispatch": 1},
            TypeError,
            "dual_aiv_dispatch",
        ),
        ({"core_type": "aiv", "source": "a", "include_dirs": "inc"}, TypeError, "a list"),
        (
            {"core_type": "aiv", "source": "a", "include_dirs": ["no"]},
            ValueError,
            "not a directory",
        ),
        ({"core_type": "aiv", "source": "a", "include_dirs": [3]}, TypeError, "must be a path"),
        ({"core_type": "aiv", "source": 3}, TypeError, "must be a path"),
        ({"core_type": "aiv", "source": b"a.cpp"}, TypeError, "must be a path"),
        ({"core_type": "aiv", "source": 'a".cpp'}, ValueError, "cannot be named in C"),
        ({"core_type": "aiv", "source": "a\n.cpp"}, ValueError, "cannot be named in C"),
        ({"core_type": "aiv", "source": ""}, ValueError, "cannot be named in C"),
        ({"core_type": "aiv", "source": "\udcff.cpp"}, ValueError, "cannot be named in C"),
    ],
)
def test_what_is_refused_names_the_declaration(
    files: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    known = {"a": files / "a.cpp", "b": files / "b.cpp"}
    given = {
        name: known.get(value, value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    with pytest.raises(error, match=message) as caught:
        declare(**given)
    assert str(caught.value).startswith(f"{__file__}:")


def test_only_functions_are_decorated(files: Path) -> None:
    with pytest.raises(TypeError, match="def"):
        pl.jit.extern(core_type="aiv", source=files / "a.cpp")(3)  # type: ignore[arg-type]


@pytest.mark.conforms("language.156")
def test_an_extern_kernel_cannot_be_an_entry(files: Path) -> None:
    stub = declare(core_type="aiv", source=files / "a.cpp")
    with pytest.raises(TypeError, match=r"@pl\.jit function"):
        stub(torch.zeros(4, 4), torch.zeros(4, 4), 1)


# -- in a program ------------------------------------------------------------------------------


def entry(stub: JITFunction) -> JITFunction:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor]):
        out = stub(x, out, 1)
        other = stub(y, other, 2)
        return out, other

    return kernel


def sample(second: tuple[int, int] = (16, 64)) -> tuple[torch.Tensor, ...]:
    shapes = ((16, 64), second, (16, 64), second)
    return tuple(torch.empty(*shape, device="meta") for shape in shapes)


def test_declared_directions_stay_what_they_are(files: Path) -> None:
    program = entry(declare(core_type="aiv", source=files / "a.cpp")).lower(*sample())
    function = program.functions["stub"]
    assert [param.direction for param in function.params] == [
        Direction.In,
        Direction.Out,
        Direction.In,
    ]
    assert function.body == ()
    shown = program.as_python()
    given = {"core_type": "aiv", "source": str(files / "a.cpp")}
    assert f"external_source={given!r}" in shown
    assert_structural_equal(pl.parse(shown), program)


def test_one_kernel_serves_calls_with_several_shapes(files: Path) -> None:
    stub = declare(core_type="aiv", source=files / "a.cpp")
    generated = generate(entry(stub).lower(*sample((8, 32))), "a2a3")
    (kernel,) = generated.externs
    assert (kernel.func_id, kernel.name, kernel.core_type) == (0, "stub", "aiv")
    assert kernel.signature == (Direction.In, Direction.Out)
    assert generated.orchestration.count("rt_submit_aiv_task(0, ") == 2


def test_two_kernels_may_share_a_source(files: Path) -> None:
    one = declare(core_type="aiv", source=files / "a.cpp")

    @pl.jit.extern(core_type="aiv", source=files / "a.cpp")
    def two(out: pl.Out[pl.Tensor], x: pl.Tensor): ...

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor]):
        out = one(x, out, 1)
        other = two(other, x)
        return out, other

    x = torch.empty(16, 64, device="meta")
    generated = generate(kernel.lower(x, x, x), "a2a3")
    assert [(k.func_id, k.name, k.signature) for k in generated.externs] == [
        (0, "stub", (Direction.In, Direction.Out)),
        (1, "two", (Direction.Out, Direction.In)),
    ]


@pytest.mark.parametrize(
    ("dual", "submission"),
    [
        (False, "rt_submit_task(MixedKernels{.aic = 0, .aiv0 = 1}, "),
        (True, "rt_submit_task(MixedKernels{.aic = 0, .aiv0 = 1, .aiv1 = 1}, "),
    ],
)
def test_a_mixed_kernel_is_one_task_of_two_kernels(
    files: Path, dual: bool, submission: str
) -> None:
    stub = declare(
        core_type="mixed",
        aic_source=files / "a.cpp",
        aiv_source=files / "a.cpp",
        dual_aiv_dispatch=dual,
    )
    generated = generate(entry(stub).lower(*sample()), "a5")
    assert [(k.func_id, k.name, k.core_type) for k in generated.externs] == [
        (0, "stub_aic", "aic"),
        (1, "stub_aiv", "aiv"),
    ]
    assert generated.orchestration.count(submission) == 2


def test_numbers_are_shared_with_kernels_of_the_program(files: Path) -> None:
    stub = declare(core_type="aic", source=files / "a.cpp")

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        between = pl.create_tensor([16, 64])
        between = stub(x, between, 1)
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(between, [0, 0], [16, 64]), [0, 0], out)
        return out

    x = torch.empty(16, 64, device="meta")
    generated = generate(kernel.lower(x, x), "a2a3")
    assert sorted(k.func_id for k in (*generated.kernels, *generated.externs)) == [0, 1]
    for kernel_source in (*generated.kernels, *generated.externs):
        number, core = kernel_source.func_id, kernel_source.core_type
        assert f"rt_submit_{core}_task({number}, " in generated.orchestration


def test_a_dispatch_says_what_is_submitted() -> None:
    assert Dispatch.single("aiv", 3).submission("a") == "rt_submit_aiv_task(3, a);"
    assert Dispatch.single("aic", 0).submission("a") == "rt_submit_aic_task(0, a);"
    both = Dispatch.of({"aic": 0, "aiv": 4}, dual_aiv=True)
    assert (both.aic, both.aiv0, both.aiv1) == (0, 4, 4)
