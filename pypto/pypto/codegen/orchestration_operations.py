"""The operations of an orchestration function as C++."""

from __future__ import annotations

from pypto.codegen.cpp_scalars import cpp_expression, cpp_type
from pypto.codegen.literals import cpp_literal
from pypto.codegen.orchestration_text import OrchestrationText
from pypto.codegen.scheduling import created_array, element, may_miss
from pypto.ir.errors import CompileError
from pypto.ir.nodes import Const, Op, ScalarType, TensorType, Var
from pypto.ir.ops import OPS


def write_op(text: OrchestrationText, op: Op, *, per_core: bool) -> None:
    """Write one operation; CompileError for one that stands on a core alone.

    Of a tensor that it creates, each core has a copy where ``per_core`` holds.
    """
    if op.op == "array.write":
        _write_array(text, op)
        return
    assert op.result is not None
    if op.op.startswith("scalar."):
        _scalar(text, op, op.result)
        return
    match op.op:
        case "tensor.dim":
            tensor, axis = text.value(op.operands[0]), op.attrs["axis"]
            name = text.new("s", op.result)
            text.line(f"const int64_t {name} = static_cast<int64_t>({tensor}.shapes[{axis}]);")
        case "task.none":
            text.line(f"const TaskId {text.new('task', op.result)}{{}};")
        case "array.create":
            text.line(created_array(op, text.new("a", op.result)))
        case "array.read":
            _read_array(text, op)
        case "tensor.read" | "tensor.write":
            _element(text, op)
        case "tensor.create":
            _create(text, op, per_core=per_core)
        case "tensor.reshape":
            _reshape(text, op)
        case "tensor.view":
            _view(text, op)
        case _:
            raise CompileError(
                f"Misplaced tensor op '{op.op}' in Orchestration function (should be inside "
                "InCore block): put it inside `with pl.at(level=pl.Level.CORE_GROUP):` or into "
                "a @pl.jit.incore function",
                op.span,
            )


def _scalar(text: OrchestrationText, op: Op, result: Var) -> None:
    assert isinstance(result.type, ScalarType)
    expression = cpp_expression(op, tuple(text.value(o) for o in op.operands))
    if OPS[op.op].faults:
        text.at(op.span)
    type_ = cpp_type(result.type.dtype)
    text.line(f"const {type_} {text.new('s', result)} = {expression};")


def _element(text: OrchestrationText, op: Op) -> None:
    """Read or write one element; the run waits for the tasks that use it."""
    container, *rest = op.operands
    assert op.result is not None and isinstance(container, Var)
    assert isinstance(container.type, TensorType)
    text.at(op.span)
    values = [text.value(o) for o in rest]
    rank, type_ = len(container.type.shape), cpp_type(container.type.dtype)
    place = f"{text.value(container)}, {{{', '.join(values[:rank])}}}"
    if op.op == "tensor.read":
        name = text.new("s", op.result)
        text.line(f"const {type_} {name} = get_tensor_data<{type_}>({place});")
        return
    text.line(f"set_tensor_data<{type_}>({place}, {values[-1]});")
    text.alias(op.result, text.value(container))


def _read_array(text: OrchestrationText, op: Op) -> None:
    assert op.result is not None and isinstance(op.result.type, ScalarType)
    if may_miss(op):
        text.at(op.span)
    place = element(op.operands[0], op.operands[1], text.value)
    type_ = cpp_type(op.result.type.dtype)
    text.line(f"const {type_} {text.new('s', op.result)} = {place};")


def _write_array(text: OrchestrationText, op: Op) -> None:
    array, index, value = op.operands
    if may_miss(op):
        text.at(op.span)
    text.line(f"{element(array, index, text.value)} = {text.value(value)};")


def _create(text: OrchestrationText, op: Op, *, per_core: bool) -> None:
    assert op.result is not None and isinstance(op.result.type, TensorType)
    text.at(op.span)
    name, type_ = text.new("t", op.result), op.result.type
    values = iter(op.operands)
    extents = [
        str(extent) if isinstance(extent, int) else f"extent({text.value(next(values))})"
        for extent in type_.shape
    ]
    text.line(f"const uint32_t {name}_shape[] = {{{', '.join(extents)}}};")
    dtype = type_.dtype.constant_name
    info = [f"{name}_shape", str(len(extents)), f"DType::{dtype}"]
    manual = bool(op.attrs.get("manual_dep"))
    if per_core:
        info += ["true" if manual else "false", "true"]
    elif manual:
        info.append("true")
    text.line(f"const auto {name}_memory = alloc_tensors(TensorCreateInfo({', '.join(info)}));")
    text.line(f"const ChipTensor& {name} = {name}_memory.get_ref(0);")
    if (init := op.attrs.get("init_value")) is not None:
        assert isinstance(init, bool | int | float)
        value = cpp_literal(Const(init, type_.dtype))
        text.line(f"rt_fill<{cpp_type(type_.dtype)}>({name}, {value});")


def _reshape(text: OrchestrationText, op: Op) -> None:
    assert op.result is not None and isinstance(op.result.type, TensorType)
    source, name = text.value(op.operands[0]), text.new("t", op.result)
    extents = ", ".join(str(extent) for extent in op.result.type.shape)
    rank = len(op.result.type.shape)
    text.line(f"const uint32_t {name}_shape[] = {{{extents}}};")
    text.line(f"const ChipTensor {name} = {source}.reshape({name}_shape, {rank});")


def _view(text: OrchestrationText, op: Op) -> None:
    assert op.result is not None and isinstance(op.operands[0], Var)
    source, *values = [text.value(o) for o in op.operands]
    shape, drop = op.attrs["shape"], op.attrs["drop"]
    assert isinstance(shape, tuple) and isinstance(drop, tuple)
    text.at(op.span)
    name, sizes = text.new("t", op.result), iter(values[len(shape) :])
    extents = [str(e) if isinstance(e, int) else next(sizes) for e in shape]
    text.line(f"const int64_t {name}_shape[] = {{{', '.join(extents)}}};")
    text.line(f"const int64_t {name}_offset[] = {{{', '.join(values[: len(shape)])}}};")
    # From the last to the first, so that the numbers of the others stay right.
    dropped = "".join(f".without_axis({axis})" for axis in reversed(drop))
    text.line(f"const ChipTensor {name} = {source}.view({name}_shape, {name}_offset){dropped};")
