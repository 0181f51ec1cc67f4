"""``pl.program`` and ``pl.function``: what they give, and what they say of mistakes."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pypto.language as pl
import pytest
from pypto import ir
from pypto.ir.nodes import Call, Direction, FunctionKind
from pypto.ir.verifier import Form, verify
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.language.program_style import InlineFunction

ROWS = 16
M = pl.dynamic("M")


@pl.function(type=pl.FunctionType.InCore)
def scaled(
    x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]
) -> pl.Tensor[[ROWS, 64], pl.FP32]:
    return pl.store(pl.mul(pl.load(x, [0, 0], [ROWS, 64]), 2.0), [0, 0], out)


@pl.inline
def twice(tile):
    return pl.add(tile, tile)


@pl.program
class Sample:
    """Calls kernels of its own, and one from outside."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[ROWS, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]],
    ) -> pl.Tensor[[ROWS, 64], pl.FP32]:
        out = pl.store(twice(pl.load(x, [0, 0], [ROWS, 64])), [0, 0], out)
        return out

    @pl.function
    def stage(
        self,
        x: pl.Tensor[[ROWS, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(x, 1.0)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]],
    ) -> pl.Tensor[[ROWS, 64], pl.FP32]:
        first = pl.create_tensor([ROWS, 64], dtype=pl.FP32)
        first = self.kernel(x, first)
        second = scaled(first, pl.create_tensor([ROWS, 64], dtype=pl.FP32))
        out = self.stage(second, out=out)
        return out


@pytest.mark.conforms("language.49", "language.53", "language.57")
def test_a_class_gives_a_program():
    assert isinstance(Sample, ir.Program)
    assert Sample.name == "Sample"
    assert list(Sample.functions) == ["kernel", "stage", "scaled", "main"]
    assert Sample.entry == "main" and Sample.orchestrations == ("main",)
    kinds = {name: function.func_type for name, function in Sample.functions.items()}
    assert kinds == {
        "kernel": pl.FunctionType.InCore,
        "stage": pl.FunctionType.Opaque,
        "scaled": pl.FunctionType.InCore,
        "main": pl.FunctionType.Orchestration,
    }
    main = Sample.get_function("main")
    assert [param.name_hint for param in main.params] == ["x", "out"]
    assert [param.direction for param in main.params] == [Direction.In, Direction.Out]
    assert len(main.return_types) == 1
    assert Sample.get_function("twice") is None
    verify(Sample, Form.FRONTEND)


@pytest.mark.conforms("language.53")
def test_calls_name_what_they_write():
    calls = [stmt for stmt in Sample.functions["main"].body if isinstance(stmt, Call)]
    assert [call.callee for call in calls] == ["kernel", "scaled", "stage"]
    assert [len(call.results) for call in calls] == [1, 1, 1]


@pytest.mark.conforms("language.52")
def test_a_function_alone_is_parsed_when_it_is_decorated():
    assert isinstance(scaled, ir.Function)
    assert scaled.name == "scaled" and scaled.func_type is FunctionKind.INCORE
    assert isinstance(twice, InlineFunction) and twice.name == "twice"


@pytest.mark.conforms("language.51")
def test_the_kind_is_opaque_where_none_is_given():
    @pl.function
    def plain(x: pl.Tensor[[16], pl.FP32]):
        pass

    assert plain.func_type is pl.FunctionType.Opaque


@pytest.mark.conforms("language.27")
def test_dynamic_extents_and_scalars():
    @pl.program
    class Dynamic:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[M, 64], pl.FP32],
            n: pl.Scalar[pl.INT32],
            out: pl.Out[pl.Tensor[[M, 64], pl.FP32]],
        ):
            for i in pl.range(0, M, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    tile = pl.load(x, [i, 0], [16, 64])
                    out = pl.store(pl.mul(tile, pl.cast(n, pl.FP32)), [i, 0], out)
            return out

    verify(Dynamic, Form.FRONTEND)
    assert Dynamic.functions["main"].params[0].var.type.shape[0].symbol == "M"


@pytest.mark.conforms("language.38")
def test_names_of_the_enclosing_function_and_class():
    columns = 32

    @pl.program
    class Local:
        rows = 8

        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[rows, columns], pl.FP32]):
            pl.load(x, [0, 0], [8, columns])

    assert Local.functions["kernel"].params[0].var.type.shape == (8, 32)


@pytest.mark.conforms("language.54")
def test_several_orchestrations():
    @pl.program
    class Two:
        @pl.function(type=pl.FunctionType.Orchestration)
        def first(self, out: pl.Out[pl.Tensor[[16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.tensor.full([16], dtype=pl.FP32, value=1.0)

        @pl.function(type=pl.FunctionType.Orchestration)
        def second(self, out: pl.Out[pl.Tensor[[16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.tensor.full([16], dtype=pl.FP32, value=2.0)

    assert Two.orchestrations == ("first", "second") and Two.entry == "first"


@pytest.mark.conforms("language.112")
def test_several_results_are_unpacked_in_the_order_of_declaration():
    @pl.program
    class Pair:
        @pl.function(type=pl.FunctionType.InCore)
        def split(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            b: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ):
            tile = pl.load(x, [0, 0], [16, 16])
            b = pl.store(tile, [0, 0], b)
            a = pl.store(tile, [0, 0], a)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            b: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ):
            p, q = self.split(x, b, a)
            return q, p

    main = Pair.functions["main"]
    names = [value.name for value in main.body[-1].values]
    assert names == ["a", "b"]


@pytest.mark.conforms("language.115")
def test_a_method_with_constants_is_parsed_for_each_value():
    @pl.program
    class Sized:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            rows: pl.constexpr,
            out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ):
            return pl.store(pl.load(x, [0, 0], [rows, 16]), [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            out = self.kernel(x, 8, out)
            return self.kernel(x, 16, out)

    assert list(Sized.functions) == ["kernel", "kernel_1", "main"]
    shapes = [Sized.functions[name].body[0].attrs["shape"] for name in ("kernel", "kernel_1")]
    assert shapes == [(8, 16), (16, 16)]


@pytest.mark.conforms("language.52")
def test_attributes_are_kept():
    @pl.function(attrs={"b": 1, "a": "text"})
    def noted(x: pl.Tensor[[16], pl.FP32]):
        pass

    assert dict(noted.attrs) == {"a": "text", "b": 1} and list(noted.attrs) == ["a", "b"]


# --- mistakes ------------------------------------------------------------------------------

HEAD = "import pypto.language as pl\nT = pl.Tensor[[16, 16], pl.FP32]\n"


def failing(text: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each test says which
        pl.parse(HEAD + textwrap.dedent(text).lstrip("\n"), "user.py")
    return caught.value


ERRORS = {
    "an unknown method": (
        """
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore)
            def kernel(self, x: T):
                pass

            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: T):
                self.kernle(x)
        """,
        UndefinedVariableError, 11, "'self' has no attribute 'kernle'; did you mean 'kernel'?",
    ),
    "a bare tensor": (
        """
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore)
            def kernel(
                self,
                x: pl.Tensor,
            ):
                pass
        """,
        ParserTypeError, 8,
        "parameter 'x' of 'kernel' needs a complete annotation, such as x: pl.Tensor[[16, 64], "
        "pl.FP32]: a function of a program is compiled as it is declared",
    ),
    "an argument of another type": (
        """
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore)
            def kernel(self, x: pl.Tensor[[8, 16], pl.FP32]):
                pass

            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: T):
                self.kernel(x)
        """,
        InvalidOperationError, 11,
        "kernel: argument 'x' is a tensor fp32[16, 16], but its annotation says tensor "
        "fp32[8, 16]",
    ),
    "an orchestration that is called": (
        """
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.Orchestration)
            def other(self, x: T):
                pass

            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: T):
                self.other(x)
        """,
        UnsupportedFeatureError, 11,
        "'other' is an orchestration function, so it is entered from Python only; make it an "
        "incore, opaque or inline function to call it from a kernel",
    ),
    "an opaque function on a core": (
        """
        @pl.program
        class P:
            @pl.function
            def stage(self, x: T):
                pass

            @pl.function(type=pl.FunctionType.InCore)
            def kernel(self, x: T):
                self.stage(x)
        """,
        InvalidOperationError, 11,
        "'stage' is a function of its own, so it cannot be called on a core; call it from the "
        "orchestration outside pl.at, or make it an inline function",
    ),
    "a constant that nobody gives": (
        """
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(x: T, n: pl.constexpr):
            pass
        """,
        ParserTypeError, 4,
        "parameter 'n' of 'kernel' is pl.constexpr and has no default, so nothing can be parsed "
        "before a call says its value; make it a method of the program that calls it, or an inline "
        "function",
    ),
    "recursion": (
        """
        @pl.program
        class P:
            @pl.function
            def stage(self, x: T):
                self.stage(x)
        """,
        UnsupportedFeatureError, 7, "'stage' calls itself, which kernels cannot do",
    ),
    "only inline functions": (
        """
        @pl.program
        class P:
            @pl.inline
            def f(self, x):
                return x
        """,
        ParserSyntaxError, 6,
        "the program 'P' has inline functions only, which leave nothing behind; decorate one with "
        "@pl.function(type=pl.FunctionType.Orchestration)",
    ),
    "a name bound again": (
        """
        @pl.function(strict_ssa=True)
        def f(x: T):
            a = 1
            for i in pl.range(4):
                a = i
        """,
        SSAViolationError, 7,
        "'a' is bound again; it was bound on line 5, and with strict_ssa=True a name is bound "
        "once: use another name",
    ),
    "a parameter bound again": (
        """
        @pl.program(strict_ssa=True)
        class P:
            @pl.function(type=pl.FunctionType.InCore)
            def f(self, x: T, out: pl.Out[T]):
                out = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
        """,
        SSAViolationError, 7,
        "'out' is bound again; it was bound on line 6, and with strict_ssa=True a name is bound "
        "once: use another name",
    ),
}  # fmt: skip


@pytest.mark.conforms("language.43", "language.45")
@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_users_line(case):
    text, kind, line, message = ERRORS[case]
    error = failing(text)
    assert type(error) is kind
    assert isinstance(error, ParserError)
    assert (error.file, error.line) == ("user.py", line)
    assert error.message == message
    assert str(error).startswith(f"user.py:{line}:")


WRONG = {
    "a method without a decorator": (
        "@pl.program\nclass P:\n    def f(self): ...",
        "method 'f' of the program 'P' is not decorated: put @pl.function above it, with "
        "type=pl.FunctionType.InCore, Orchestration or Opaque",
    ),
    "no method": ("@pl.program\nclass P:\n    x = 1", "the program 'P' has no function: "),
    "a method without self": (
        "@pl.program\nclass P:\n    @pl.function\n    def f(x: T): ...",
        "method 'P.f' must take self as its first parameter: user.py:5",
    ),
    "a function as a program": ("@pl.program\ndef f(): ...", "pl.program decorates a class, not"),
    "a class as a function": ("@pl.function\nclass P: ...", "decorates functions defined with def"),
    "a lambda": ("f = pl.function(lambda x: x)", "not a lambda: user.py:3"),
    "an async function": ("@pl.function\nasync def f(x: T): ...", "not an async function: user.py"),
    "a type of its own": ('@pl.function(type="InCore")\ndef f(x: T): ...', "type must be a pl.Fun"),
    "a level": ("@pl.function(level=3)\ndef f(x: T): ...", "level must be pl.Level.CORE_GROUP or"),
    "a role": ("@pl.function(role=3)\ndef f(x: T): ...", "role must be left out, not 3"),
    "auto_scope": ("@pl.function(auto_scope=1)\ndef f(x: T): ...", "auto_scope must be True or Fa"),
    "strict_ssa": ("@pl.program(strict_ssa=1)\nclass P: ...", "strict_ssa must be True or False"),
    "attrs": ("@pl.function(attrs=[1])\ndef f(x: T): ...", "attrs must be a dict, not [1]"),
    "an attribute": ("@pl.function(attrs={'a': []})\ndef f(x: T): ...", "has 'a': []"),
    "an external source of another kind": (
        "@pl.function(external_source='k.cpp')\ndef f(x: T): ...",
        "external_source goes with type=pl.FunctionType.InCore alone",
    ),
    "an unknown argument of an external source": (
        "@pl.function(type=pl.FunctionType.InCore, external_source={'path': 'k'})\n"
        "def f(x: T): ...",
        "external_source must be a path, or a mapping with the arguments of pl.jit.extern",
    ),
}


@pytest.mark.conforms("language.53")
@pytest.mark.parametrize("case", WRONG)
def test_decorators_refuse_what_they_cannot_take(case):
    text, message = WRONG[case]
    error = failing(text)
    assert type(error) is TypeError
    assert message in str(error)


@pytest.mark.conforms("language.45")
def test_strict_functions_may_reuse_names_that_ended():
    text = """
    @pl.function(strict_ssa=True)
    def f(x: T, n: pl.Scalar[pl.INT32], out: pl.Out[T]):
        for i in pl.range(4):
            a = i + 1
        for i in pl.range(4):
            a = i + 2
        if n > 3:
            b = 1
            c = pl.yield_(n + b)
        else:
            b = 2
            c = pl.yield_(n + b)
        with pl.at(level=pl.Level.CORE_GROUP):
            done = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
        return done
    """
    function = pl.parse(HEAD + textwrap.dedent(text), "user.py")
    assert isinstance(function, ir.Function)


# --- text ----------------------------------------------------------------------------------


def test_the_text_of_a_tile_written_under_one_of_its_names_keeps_the_others():
    """What is written is another value; the text has it beside the first, which is used later."""
    text = """
    @pl.function
    def f(x: T, n: pl.Scalar[pl.INDEX], out: pl.InOut[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            first = pl.load(x, [0, 0], [16, 16])
            changed = first
            changed[2, 3] = 4.0
            for k in pl.range(n):
                again = first
                pl.write(again, [k, 5], 6.0)
                out = pl.store(again, [0, 0], out)
            if n > 1:
                first = pl.neg(first)
            out = pl.store(pl.add(first, changed), [0, 0], out)
    """
    function = pl.parse(HEAD + textwrap.dedent(text), "user.py")
    again = pl.parse(function.as_python())
    ir.assert_structural_equal(again, function)
    assert again.as_python() == function.as_python()


def test_a_strict_name_stands_for_the_tile_that_is_written_without_another_name():
    text = """
    @pl.function(strict_ssa=True)
    def f(x: T, out: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [0, 0], [16, 16])
            pl.write(tile, [2, 3], 4.0)
            done = pl.store(tile, [0, 0], out)
    """
    shown = pl.parse(HEAD + textwrap.dedent(text), "user.py").as_python()
    assert "pl.store(tile_1, [0, 0], out)" in shown


@pytest.mark.conforms("language.36")
def test_text_without_a_file_is_named_in_errors(tmp_path):
    names: dict[str, object] = {}
    code = "@pl.function\ndef hidden(x: pl.Tensor[[16], pl.FP32]): ..."
    with pytest.raises(OSError, match=re.escape("the source of kernel 'hidden' is not available")):
        exec(compile(code, "<nowhere>", "exec"), {"pl": pl}, names)


@pytest.mark.conforms("language.10")
def test_loads_reads_a_file(tmp_path: Path):
    file = tmp_path / "program.py"
    file.write_text(HEAD + "@pl.function\ndef f(x: T):\n    y = nothing\n")
    with pytest.raises(UndefinedVariableError, match="name 'nothing' is not defined") as caught:
        pl.loads(file)
    assert (caught.value.file, caught.value.line) == (str(file), 5)
    file.write_text(HEAD + "@pl.function\ndef f(x: T):\n    pass\n")
    assert pl.loads(file).name == "f"


@pytest.mark.conforms("language.10")
def test_a_text_defines_one_program():
    one = "@pl.program\nclass {}:\n    @pl.function\n    def f(self, x: T):\n        pass\n"
    with pytest.raises(ValueError, match=r"two\.py defines more than one program: A, B; parse one"):
        pl.parse(
            HEAD + one.format("A") + one.format("B"),
            "two.py",
        )
    assert pl.parse(HEAD + one.format("A") + "also = A\n", "one.py").name == "A"
    with pytest.raises(ValueError, match=r"none\.py defines no program: decorate a class with"):
        pl.parse("x = 1", "none.py")
    with pytest.raises(TypeError, match=r"pl\.parse takes the text of a program, not bytes"):
        pl.parse(b"x = 1")
    with pytest.raises(SyntaxError):
        pl.parse("def (")


@pytest.mark.conforms("language.37")
def test_annotations_may_be_strings():
    text = "from __future__ import annotations\n" + HEAD + textwrap.dedent(
        """
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore)
            def f(self, x: T, y: "pl.Tensor[[4], pl.INT32]", out: pl.Out[T]) -> T:
                return pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
        """
    )  # fmt: skip
    program = pl.parse(text)
    assert [p.var.type.shape for p in program.functions["f"].params] == [(16, 16), (4,), (16, 16)]
