"""The intermediate representation: immutable values, one class a concept.

A :class:`Program` is what the parser makes and what every pass maps to another ``Program``.
Nothing here is mutated after construction; a pass builds new nodes (``dataclasses.replace``).

Two forms share these classes. In the *frontend* form an orchestration function may hold
:class:`Scope` blocks (``pl.at``) and tensor-level operations inside them. In the *lowered* form
every scope is a function of kind :attr:`FunctionKind.INCORE` reached by a :class:`Call`, and the
bodies of those functions hold only tile and scalar operations. ``verifier.py`` says which form it
expects and checks it.

Values are in static single assignment: a :class:`Var` is bound once, by the node that names it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pypto.ir.dtypes import DataType
from pypto.ir.external import ExternalKernel


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node came from, without any absolute path.

    ``unit`` is ``"module:qualname"`` of the function whose source holds it. ``line`` counts from
    that function's ``def`` line, which is line 1, so that moving a function leaves it unchanged.
    ``column`` is 0-based. The live object maps a span to the user's file and line.
    """

    unit: str
    line: int
    column: int


class MemorySpace(enum.Enum):
    """Where a tile lives. The value is the ``loc=`` spelling of the ``.pto`` text."""

    DDR = "gm"
    Vec = "vec"
    Mat = "mat"
    Left = "left"
    Right = "right"
    Acc = "acc"
    Bias = "bias"
    LeftScale = "left_scale"
    RightScale = "right_scale"


class AtomicType(enum.Enum):
    """What a store does with what it finds."""

    None_ = "atomic_none"  # overwrites it
    Add = "atomic_add"  # adds to it, so that no addition of another core is lost


class Direction(enum.Enum):
    """How a function uses a tensor parameter."""

    In = "In"
    Out = "Out"
    InOut = "InOut"


class FunctionKind(enum.Enum):
    """What a function is allowed to hold; programs know it as ``pl.FunctionType``.

    An *opaque* function holds what an orchestration does, scopes and loops, and is called by one.
    A program without an orchestration is entered by an opaque function.
    """

    ORCHESTRATION = "orchestration"
    INCORE = "incore"
    INLINE = "inline"
    OPAQUE = "opaque"

    # The same kinds as programs write them. Which core runs a function follows from its tiles.
    Orchestration = "orchestration"
    InCore = "incore"
    AIC = "incore"
    AIV = "incore"
    Inline = "inline"
    Opaque = "opaque"


class TensorLayout(enum.Enum):
    """How a tensor's elements are ordered in memory: by rows, by fractals of 16 rows that follow
    each other down a column, or by columns, which no tensor of a program is."""

    ND = "nd"
    NZ = "nz"
    DN = "dn"


@dataclass(frozen=True, slots=True)
class DynDim:
    """A run-time extent. Equal symbols in one program are the same extent.

    ``limit`` is the extent of the tensor that a part of run-time size was taken from, where that
    is known: the part has at most as many elements.
    """

    symbol: str
    limit: int | None = None


Dim = int | DynDim


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor in global memory, of any rank from 1 to 5, or a part of one.

    ``adjacent`` is how many of the last axes are stored without gaps, so that the strides of the
    axes before them are run-time values; ``None`` where that is all of them.
    """

    shape: tuple[Dim, ...]
    dtype: DataType
    layout: TensorLayout = TensorLayout.ND
    adjacent: int | None = None

    @property
    def strided(self) -> bool:
        """Whether there may be gaps between its elements."""
        return self.adjacent is not None

    @property
    def run_time_strides(self) -> range:
        """The axes whose strides are known only when the kernel runs."""
        return range(0 if self.adjacent is None else len(self.shape) - self.adjacent)


@dataclass(frozen=True, slots=True)
class TileType:
    """A two-dimensional on-chip tile.

    ``valid`` is the static part of the valid region: a row and a column count, or ``None`` where
    it is a run-time value (then the defining operation carries it as an operand).
    """

    shape: tuple[int, int]
    dtype: DataType
    space: MemorySpace
    valid: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A run-time scalar."""

    dtype: DataType


@dataclass(frozen=True, slots=True)
class ArrayType:
    """``size`` scalars of orchestration code, each of which may be read and written by its index.

    An array is a place, as a tensor is: writing an element makes no new value.
    """

    size: int
    dtype: DataType


Type = TensorType | TileType | ScalarType | ArrayType


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A value, compared by identity. ``name`` is the user's name, for messages and text only."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Const:
    """A literal operand. ``value`` is typed: ``True``, ``1`` and ``1.0`` are three constants."""

    value: bool | int | float
    dtype: DataType


Operand = Var | Const
AttrValue = (
    bool
    | int
    | float
    | str
    | DataType
    | MemorySpace
    | AtomicType
    | tuple[int, ...]
    | tuple[int | None, ...]
    | tuple[str, ...]
)


NO_ATTRS: Mapping[str, AttrValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Op:
    """``results = op(*operands)`` where ``op`` names a row of :data:`pypto.ir.ops.OPS`.

    An operation has at most one result. Attributes are compile-time values.
    """

    op: str
    operands: tuple[Operand, ...]
    result: Var | None
    span: Span
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: NO_ATTRS)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the task that a scope or a call becomes is run, beyond what its tensors say.

    ``blocks`` is how many times the same code runs, each with an index of its own, in any order
    and at the same time; ``None`` is a task of one block. ``deps`` are task ids and arrays of
    them: tasks that complete first. The memory of a tensor in ``no_deps`` orders this task
    against no other; a tensor in ``dumps`` is shown where arguments are dumped. ``task`` is bound
    to the task's id.
    """

    blocks: Operand | None = None
    deps: tuple[Operand, ...] = ()
    no_deps: tuple[Var, ...] = ()
    dumps: tuple[Var, ...] = ()
    task: Var | None = None


PLAIN = Schedule()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of another function of the program. ``results[i]`` aliases the i-th Out or InOut."""

    callee: str
    operands: tuple[Operand, ...]
    results: tuple[Var, ...]
    span: Span
    schedule: Schedule = PLAIN


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that a loop carries: it enters as ``init``, is ``arg`` inside, ``result`` after."""

    init: Operand
    arg: Var
    result: Var


class LoopKind(enum.Enum):
    """What a counted loop says of its iterations. The value is the name of its function."""

    SEQUENTIAL = "range"
    PARALLEL = "parallel"  # independent: any order gives the same result
    PIPELINE = "pipeline"  # in order, and ``For.stage`` of them may overlap


@dataclass(frozen=True, slots=True)
class For:
    """A counted loop. ``yields[i]`` is the next value of ``carried[i]``.

    ``stage`` is at least 1 where ``kind`` is :attr:`LoopKind.PIPELINE`, and 0 elsewhere.
    """

    var: Var
    start: Operand
    stop: Operand
    step: Operand
    carried: tuple[Carried, ...]
    body: tuple[Stmt, ...]
    yields: tuple[Operand, ...]
    span: Span
    kind: LoopKind = LoopKind.SEQUENTIAL
    stage: int = 0


@dataclass(frozen=True, slots=True)
class While:
    """A loop that goes on while a truth value holds.

    Before each iteration ``condition_body`` runs, with every ``carried[i].arg`` bound; where its
    ``condition`` is false, ``carried[i].result`` is that argument and the loop ends. Otherwise
    ``body`` runs, which sees the arguments but nothing that ``condition_body`` binds, and
    ``yields[i]`` is the next value of ``carried[i]``.
    """

    carried: tuple[Carried, ...]
    condition_body: tuple[Stmt, ...]
    condition: Operand
    body: tuple[Stmt, ...]
    yields: tuple[Operand, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    """A branch on a run-time scalar. ``results[i]`` is the i-th yield of the branch taken."""

    condition: Operand
    then_body: tuple[Stmt, ...]
    then_yields: tuple[Operand, ...]
    else_body: tuple[Stmt, ...]
    else_yields: tuple[Operand, ...]
    results: tuple[Var, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Scope:
    """A ``pl.at(level=CORE_GROUP)`` or ``pl.spmd`` block; frontend form only.

    ``body`` binds its variables in the enclosing function. A tensor result that is read after the
    scope escapes it; the outlining pass turns it into an output of the new function.
    """

    name_hint: str
    body: tuple[Stmt, ...]
    span: Span
    schedule: Schedule = PLAIN


@dataclass(frozen=True, slots=True)
class ManualScope:
    """Orchestration code whose tasks are not ordered among each other by their tensors.

    Only ``Schedule.deps`` orders two of its tasks; tasks outside are ordered against those inside
    as always. ``body`` binds its variables in the body that holds the scope.
    """

    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Return:
    """Ends a function. Only tensors that the function writes may be returned."""

    values: tuple[Operand, ...]
    span: Span


Stmt = Op | Call | For | While | If | Scope | ManualScope | Return


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter. Scalars are always ``In``."""

    var: Var
    direction: Direction

    @property
    def name_hint(self) -> str:
        """The user's name of the parameter."""
        return self.var.name


@dataclass(frozen=True, slots=True)
class Function:
    """One function. ``return_types`` lists the returned values' types in order.

    An InCore function that is ``external`` has no statements: what it does is C++, and its
    parameters' directions are what its declaration says. ``attrs`` are notes of the user's.
    """

    name: str
    func_type: FunctionKind
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    return_types: tuple[Type, ...]
    span: Span
    external: ExternalKernel | None = None
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: NO_ATTRS)

    def as_python(self) -> str:
        """The function as text of the language; those that it calls are not part of it."""
        from pypto.ir.printer import print_function

        return print_function(self)


@dataclass(frozen=True, slots=True)
class Program:
    """Functions by name, callees first; ``entry`` names the first function that can be run.

    ``sources`` maps the units of spans to the user's file and the line of the ``def``, for
    messages; it is no part of what the program means.
    """

    name: str
    functions: Mapping[str, Function]
    entry: str
    sources: Mapping[str, tuple[str, int]] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )

    @property
    def orchestrations(self) -> tuple[str, ...]:
        """The functions that can be run, in order; :attr:`entry` is the first."""
        kind = FunctionKind.ORCHESTRATION
        found = tuple(name for name, f in self.functions.items() if f.func_type is kind)
        return found or (self.entry,)

    def get_function(self, name: str) -> Function | None:
        """The function called ``name``, or ``None``."""
        return self.functions.get(name)

    def as_python(self) -> str:
        """The program as text of the language, from which ``pl.parse`` makes an equal one."""
        from pypto.ir.printer import print_program

        return print_program(self)
