"""From arguments to what a kernel is specialised for.

A specialization holds extents (None where dynamic), element types, layouts and compile-time
constants, and never the value of a scalar: a scalar is a run-time value.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from pypto.ir.dtypes import DTYPES, INDEX, DataType
from pypto.ir.nodes import Direction, DynDim, ScalarType, TensorLayout, TensorType
from pypto.jit.captures import Captures, Guards, at_one_moment
from pypto.jit.declaration import Declared
from pypto.jit.values import Unidentifiable, encode, with_members
from pypto.language.markers import RUNTIME
from pypto.language.source import ConstValue, ParamAnnotation, ParamCategory
from pypto.runtime.device_tensor import DeviceTensor
from pypto_store.records import Value

_UNSET = object()
_BY_TORCH_NAME = {dtype.torch_name: dtype for dtype in DTYPES if dtype is not INDEX}

Argument = TensorType | ScalarType | ConstValue


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The arguments of one request.

    `arguments` are what the parser is given; `parameters` is the same without symbols, typed and
    ordered, for a digest; `values` are the run-time values in declaration order, empty when there
    are none (signature mode).
    """

    arguments: Mapping[str, Argument]
    parameters: tuple[Value, ...]
    values: tuple[object, ...]


class Signature:
    """The parameters of one kernel, and how arguments meet them.

    `name` is for messages; `defaults` are the function's own, by parameter; `dynamic` has the
    symbol of each axis that the body declares dynamic, by parameter; `attributes` are those that
    the kernel and its helpers may read of a constant.
    """

    __slots__ = ("_attributes", "_by_name", "_defaults", "_dynamic", "_name", "params")

    def __init__(
        self,
        name: str,
        params: Sequence[ParamAnnotation],
        defaults: Mapping[str, object],
        dynamic: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
        attributes: tuple[str, ...] = (),
    ) -> None:
        self._attributes = attributes
        self._name = name
        self._defaults = defaults
        self._dynamic = dynamic
        self.params = tuple(params)
        self._by_name = {param.name: index for index, param in enumerate(self.params)}

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters in declaration order."""
        return tuple(param.name for param in self.params)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Parameters that are purely written, in declaration order."""
        return tuple(p.name for p in self.params if p.direction is Direction.Out)

    def is_signature_request(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
        """Whether a request names no tensor, so that the annotations have to be complete."""
        if args:
            return False
        return not any(
            name in self._by_name
            and self.params[self._by_name[name]].category
            in (ParamCategory.TENSOR, ParamCategory.UNANNOTATED)
            for name in kwargs
        )

    def positional(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[object, ...]:
        """One value a parameter, in order; TypeError naming a missing or unexpected one."""
        if len(args) == len(self.params) and not kwargs:
            return tuple(args)
        if len(args) > len(self.params):
            raise TypeError(
                f"{self._name}() takes {len(self.params)} arguments "
                f"({', '.join(self.names)}), {len(args)} were given"
            )
        values = list(args) + [_UNSET] * (len(self.params) - len(args))
        for name, value in kwargs.items():
            index = self._by_name.get(name)
            if index is None:
                raise TypeError(
                    f"{self._name}() got an unexpected argument {name!r}; "
                    f"its parameters are {', '.join(self.names)}"
                )
            if values[index] is not _UNSET:
                raise TypeError(f"{self._name}() got two values for argument {name!r}")
            values[index] = value
        for index, param in enumerate(self.params):
            if values[index] is _UNSET:
                values[index] = self._default(param)
        return tuple(values)

    def _default(self, param: ParamAnnotation) -> object:
        if param.name in self._defaults:
            return self._defaults[param.name]
        raise TypeError(
            f"@pl.jit function {self._name!r}: missing a required argument: {param.name!r}"
        )

    def run_time(self, values: Sequence[object]) -> tuple[object, ...]:
        """The values a dispatch takes: all but compile-time constants."""
        return tuple(
            value
            for param, value in zip(self.params, values, strict=True)
            if param.category is not ParamCategory.CONSTEXPR
        )

    def bind_samples(self, values: Sequence[object]) -> Bound:
        """Sample mode: `values` holds one argument a parameter, in declaration order.

        Tensors may be meta tensors: only shape and element type are looked at. Raises TypeError
        naming the parameter whose argument is of the wrong kind.
        """
        arguments: dict[str, Argument] = {}
        for param, value in zip(self.params, values, strict=True):
            arguments[param.name] = self._sample(param, value)
        return self._bound(arguments, tuple(values))

    def bind_signature(self, kwargs: Mapping[str, object]) -> Bound:
        """Signature mode: tensors come from annotations, constants from `kwargs` or defaults.

        Raises TypeError naming a tensor whose annotation is incomplete.
        """
        for name in kwargs:
            if name not in self._by_name:
                raise TypeError(
                    f"{self._name}() got an unexpected argument {name!r}; "
                    f"its parameters are {', '.join(self.names)}"
                )
        arguments: dict[str, Argument] = {}
        for param in self.params:
            given = kwargs.get(param.name, _UNSET)
            arguments[param.name] = self._annotated(param, given)
        return self._bound(arguments, ())

    def _sample(self, param: ParamAnnotation, value: object) -> Argument:
        category = param.category
        if category is ParamCategory.CONSTEXPR:
            return self._constant(param, value)
        tensor = _is_tensor(value)
        if category is ParamCategory.SCALAR or (
            category is ParamCategory.UNANNOTATED and not tensor
        ):
            if tensor:
                raise TypeError(
                    f"{self._name}(): parameter {param.name!r} is a scalar, got a tensor"
                )
            return self._scalar(param, value)
        if not tensor:
            hint = "; use torch.from_numpy" if type(value).__name__ == "ndarray" else ""
            raise TypeError(
                f"{self._name}(): parameter {param.name!r} is a tensor, got "
                f"{type(value).__name__}{hint}"
            )
        return self._tensor(param, value)

    def _scalar(self, param: ParamAnnotation, value: object) -> ScalarType:
        # What the value may be is checked where it is dispatched; here it has no influence.
        if isinstance(param.type, ScalarType):
            return param.type
        raise TypeError(
            f"{self._name}(): cannot infer parameter {param.name!r} from {value!r}; "
            f"annotate it, for example as pl.Scalar[pl.FP32] or pl.Tensor"
        )

    def _tensor(self, param: ParamAnnotation, value: object) -> TensorType:
        shape: tuple[int | DynDim, ...] = tuple(value.shape)  # type: ignore[attr-defined]
        dtype = _data_type(self._name, param.name, value.dtype)  # type: ignore[attr-defined]
        annotated = param.type
        if isinstance(annotated, TensorType) and len(annotated.shape) == len(shape):
            shape = tuple(
                declared if isinstance(declared, DynDim) else extent
                for declared, extent in zip(annotated.shape, shape, strict=True)
            )
        layout = annotated.layout if isinstance(annotated, TensorType) else TensorLayout.ND
        return TensorType(self._with_bound(param.name, shape), dtype, layout)

    def _with_bound(self, name: str, shape: tuple[int | DynDim, ...]) -> tuple[int | DynDim, ...]:
        symbols = self._dynamic.get(name)
        if not symbols:
            return shape
        return tuple(
            DynDim(symbols[axis]) if axis in symbols else extent
            for axis, extent in enumerate(shape)
        )

    def _constant(self, param: ParamAnnotation, value: object) -> ConstValue:
        """The value as it is now: its owner may change it while the kernel is compiled."""

        def take() -> tuple[ConstValue, Guards]:
            captures = Captures(represent=_no_kernel, own=_no_special, mentioned=self._attributes)
            frozen = captures.freeze(value)
            return ConstValue(frozen, captures.attributes), captures.guards(_no_special)

        try:
            return at_one_moment(take)[0]
        except Unidentifiable as error:
            raise self._unfit(param.name, value, error) from error

    def _unfit(self, name: str, value: object, error: Unidentifiable) -> TypeError:
        return TypeError(f"{self._name}(): constexpr {name!r} cannot be {value!r} ({error})")

    def _annotated(self, param: ParamAnnotation, given: object) -> Argument:
        if param.category is ParamCategory.CONSTEXPR:
            value = self._default(param) if given is _UNSET else given
            return self._constant(param, value)
        if param.category is ParamCategory.UNANNOTATED:
            raise TypeError(
                f"{self._name}(): cannot infer parameter {param.name!r}: it has no annotation; "
                f"annotate it, or pass sample tensors: compile(*sample_tensors)"
            )
        if isinstance(param.type, ScalarType):
            if given is not _UNSET and given is not RUNTIME:
                warnings.warn(
                    f"{self._name}(): the value of scalar {param.name!r} selects nothing, it is "
                    "a run-time value; leave it out",
                    DeprecationWarning,
                    stacklevel=2,
                )
            return param.type
        if param.type is None:
            raise TypeError(
                f"{self._name}(): parameter {param.name!r} has a bare 'pl.Tensor' annotation with "
                "no shape; pass samples: lower(*sample_tensors) or compile(*sample_tensors)"
            )
        return replace(param.type, shape=self._with_bound(param.name, param.type.shape))

    def _bound(self, arguments: dict[str, Argument], values: tuple[object, ...]) -> Bound:
        return Bound(
            MappingProxyType(arguments),
            tuple(self._described(name, item) for name, item in arguments.items()),
            values,
        )

    def _described(self, name: str, argument: Argument) -> Value:
        match argument:
            case TensorType(shape, dtype, layout):
                extents = tuple(None if isinstance(e, DynDim) else int(e) for e in shape)
                return (name, "tensor", extents, dtype.name, layout.value)
            case ScalarType(dtype):
                return (name, "scalar", dtype.name)
            case ConstValue(value, attributes):
                read = attributes.read
                special = partial(with_members, self._attributes, _no_special, read=read)
                try:
                    return (name, "constexpr", encode(value, special, read=read))
                except Unidentifiable as error:
                    raise self._unfit(name, value, error) from error


def _no_special(_: object) -> None:
    return None


def _no_kernel(declared: Declared) -> object:
    raise Unidentifiable("a kernel function is no constant; call it by its name")


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    return isinstance(value, DeviceTensor)


def _data_type(function: str, parameter: str, dtype: object) -> DataType:
    if isinstance(dtype, DataType):  # a device tensor's
        return dtype
    found = _BY_TORCH_NAME.get(str(dtype).rpartition(".")[2])
    if found is None or not str(dtype).startswith("torch."):
        raise TypeError(f"{function}(): parameter {parameter!r}: Unsupported torch dtype {dtype}")
    return found
