"""Where the arguments of a program come from that runs without its caller."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from pypto.ir.dtypes import BF16, BOOL, FP32, INT32, UINT8
from pypto.ir.nodes import Direction
from pypto.ir.param_info import DYNAMIC, ParamInfo
from pypto.runtime import ScalarSpec, TensorSpec, TraceInvocation, TraceSpan
from pypto.runtime.debug.run_script import run_script
from pypto.runtime.errors import ArtifactError
from pypto.runtime.golden_file import GoldenFile
from pypto.runtime.specs import SAMPLE_EXTENT, arguments_of, specs_of

PARAMS = (
    ParamInfo("x", Direction.In, (DYNAMIC, 4), FP32, ("N", None)),
    ParamInfo("n", Direction.In, None, INT32),
    ParamInfo("f", Direction.In, None, FP32),
    ParamInfo("flag", Direction.In, None, BOOL),
    ParamInfo("mask", Direction.In, (DYNAMIC,), BOOL),
    ParamInfo("byte", Direction.InOut, (3,), UINT8),
    ParamInfo("out", Direction.Out, (DYNAMIC, 2), BF16, ("N", None)),
)
PLAIN = (
    ParamInfo("x", Direction.In, (2,), FP32),
    ParamInfo("acc", Direction.InOut, (2,), FP32),
    ParamInfo("out", Direction.Out, (2,), FP32),
)


def test_specifications_follow_the_parameters() -> None:
    specs = specs_of(PARAMS, {"N": 5})
    assert [spec.name for spec in specs] == [param.name for param in PARAMS]
    assert specs[0] == TensorSpec("x", (5, 4), FP32)
    assert specs[1:4] == (
        ScalarSpec("n", INT32, 1),
        ScalarSpec("f", FP32, 1.0),
        ScalarSpec("flag", BOOL, True),
    )
    assert specs[4].shape == (SAMPLE_EXTENT,)  # type: ignore[union-attr]
    assert specs[6] == TensorSpec("out", (5, 2), BF16, is_output=True)
    assert specs_of(PARAMS)[0].shape == (SAMPLE_EXTENT, 4)  # type: ignore[union-attr]


def test_arguments_are_made_from_specifications() -> None:
    torch.manual_seed(1)
    values = arguments_of(specs_of(PARAMS, {"N": 50}))
    assert values[1:4] == [1, 1.0, True]
    assert [values[i].dtype for i in (0, 4, 5, 6)] == [
        torch.float32,
        torch.bool,
        torch.uint8,
        torch.bfloat16,
    ]
    assert values[0].unique().numel() > 100 and values[4].any() and not values[4].all()
    assert not values[6].any()
    torch.manual_seed(1)
    assert torch.equal(arguments_of(specs_of(PARAMS, {"N": 50}))[0], values[0])


def test_random_arguments_come_from_the_generator_that_is_given() -> None:
    state = torch.get_rng_state()
    specs = specs_of(PARAMS, {"N": 50})
    made = [arguments_of(specs, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(made[0][0], made[1][0]) and not torch.equal(made[0][0], made[2][0])
    for index in (4, 5):
        assert torch.equal(made[0][index], made[1][index])
    assert torch.equal(torch.get_rng_state(), state)


def test_a_specification_says_what_its_tensor_starts_with() -> None:
    given = torch.tensor([1.0, 2.0])
    made = TensorSpec("x", (2,), FP32, given).create_tensor()
    assert torch.equal(made, given) and made.data_ptr() != given.data_ptr()
    assert TensorSpec("x", (2,), INT32, 7).create_tensor().tolist() == [7, 7]
    assert TensorSpec("x", (2,), FP32, lambda: given).create_tensor().tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"x: init_value must have shape \[3\], got \[2\]"):
        TensorSpec("x", (3,), FP32, given).create_tensor()


def test_the_script_is_python_with_a_line_for_each_parameter() -> None:
    text = run_script(PARAMS)
    tree = ast.parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert [a.arg for a in functions["_user_compare"].args.args] == [p.name for p in PARAMS]
    names: dict[str, object] = {"torch": torch}
    source = ast.unparse(functions["_inline_inputs"])
    exec(source, names)
    state = torch.get_rng_state()
    values = names["_inline_inputs"]()  # type: ignore[operator]
    again = names["_inline_inputs"]()  # type: ignore[operator]
    assert torch.equal(torch.get_rng_state(), state), "it has a generator of its own"
    assert torch.equal(values[0], again[0]) and torch.equal(values[5], again[5])
    assert [getattr(v, "dtype", v) for v in values] == [
        torch.float32,
        1,
        1.0,
        True,
        torch.bool,
        torch.uint8,
        torch.bfloat16,
    ]
    assert values[0].shape == (SAMPLE_EXTENT, 4) and values[6].shape == (SAMPLE_EXTENT, 2)
    assert run_script(PARAMS) == text
    assert "extent_N = 128" in run_script(PARAMS)


def test_a_program_without_parameters_has_a_script() -> None:
    ast.parse(run_script(()))


GOLDENS = {
    "list": ("return [torch.ones(2), torch.zeros(2), torch.zeros(2)]", "()"),
    "inputs": ("return [torch.ones(2), torch.zeros(2)]", "()"),
    "pairs": ('return [("x", torch.ones(2)), ("acc", torch.zeros(2))]', "()"),
    "mapping": ('return {"acc": torch.zeros(2), "x": torch.ones(2)}', "(params)"),
}
ANSWERS = {
    "fills": 'tensors["out"].fill_(3); tensors["acc"].fill_(4)',
    "mapping": 'return {"out": torch.full((2,), 3.0), "acc": torch.full((2,), 4.0)}',
    "sequence": "return [torch.full((2,), 4.0), torch.full((2,), 3.0)]",
}


@pytest.mark.parametrize("made", sorted(GOLDENS))
@pytest.mark.parametrize("answered", sorted(ANSWERS))
def test_a_golden_file_may_say_it_in_several_ways(tmp_path: Path, made: str, answered: str) -> None:
    body, arguments = GOLDENS[made]
    (tmp_path / "golden.py").write_text(
        f"import torch\nATOL = 0.25\ndef generate_inputs{arguments}:\n    {body}\n"
        f"def compute_golden(tensors):\n    {ANSWERS[answered]}\n"
    )
    golden = GoldenFile.find(tmp_path, PLAIN)
    assert golden is not None
    assert (golden.rtol, golden.atol) == (1e-5, 0.25)
    values = golden.inputs()
    assert [value.tolist() for value in values] == [[1, 1], [0, 0], [0, 0]]
    expected = golden.expected(values)
    assert {name: value.tolist() for name, value in expected.items()} == {
        "acc": [4, 4],
        "out": [3, 3],
    }
    assert values[2].tolist() == [0, 0]
    values[1].fill_(4.1)
    values[2].fill_(3)
    golden.check(expected, values)
    values[1].fill_(5)
    with pytest.raises(AssertionError, match="output 'acc' is not what"):
        golden.check(expected, values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"defines no function generate_inputs\(\)"),
        ("def generate_inputs(): return [1]", "gave 1 values for the parameters x, acc, out"),
        ("def generate_inputs(): return {'x': 1}", "no value for 'acc'"),
    ],
)
def test_a_golden_file_that_gives_no_arguments_is_named(
    tmp_path: Path, text: str, said: str
) -> None:
    assert GoldenFile.find(tmp_path, PLAIN) is None
    (tmp_path / "golden.py").write_text(text)
    golden = GoldenFile.find(tmp_path, PLAIN)
    assert golden is not None
    with pytest.raises(ArtifactError, match=rf"golden\.py: .*{said}"):
        golden.inputs()


def test_a_trace_lasts_to_its_last_end() -> None:
    spans = (TraceSpan("a", "aiv0", 0, 5, 9), TraceSpan("b", "aic0", 1, 6, 8, (0,)))
    assert TraceInvocation("a2a3sim", spans).duration_ns == 9
    assert TraceInvocation("a2a3sim", ()).duration_ns == 0
    assert [span.duration_ns for span in spans] == [4, 2]
