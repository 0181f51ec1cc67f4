"""Scalar operations of orchestration code as C++ expressions.

Integers wrap as they do in kernels, division by zero ends the run with a message instead of the
process, and numbers of two bytes are carried as bits, which is all that orchestration does with
them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.dtypes import BF16, FP16, DataType
from pypto.ir.errors import CompileError
from pypto.ir.nodes import Op, ScalarType
from pypto.ir.ops import OPS
from pypto.ir.typing_rules import CAST_MODES, type_of


@dataclass(frozen=True, slots=True)
class Helper:
    """A function that expressions call; its text is written once a file."""

    name: str
    text: str


_FLOOR_DIV = Helper(
    "floor_div",
    """\
// Rounds towards minus infinity, as Python does.
template <class T>
T floor_div(T a, T b) {
  if (b == 0) {
    rt_report_fatal("integer division by zero");
    return 0;
  }
  if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
""",
)

_FLOOR_MOD = Helper(
    "floor_mod",
    """\
// The remainder with the sign of the divisor, as Python has it.
template <class T>
T floor_mod(T a, T b) {
  if (b == 0) {
    rt_report_fatal("integer modulo by zero");
    return 0;
  }
  if (b == -1) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
""",
)

_WRAP = Helper(
    "wrapped",
    """\
// Arithmetic modulo 2^64, then the type's own width: signed overflow has a meaning here.
template <class T>
T wrapped(uint64_t value) {
  return static_cast<T>(value);
}
""",
)

_SHIFT_LEFT = Helper(
    "shifted_left",
    """\
// By the width or more, or by less than 0, nothing is left.
template <class T>
T shifted_left(T value, T count) {
  if (count < 0 || static_cast<uint64_t>(count) >= 8 * sizeof(T)) return 0;
  return static_cast<T>(static_cast<uint64_t>(value) << count);
}
""",
)

_SHIFT_RIGHT = Helper(
    "shifted_right",
    """\
// By the width or more, or by less than 0, nothing is left but the sign.
template <class T>
T shifted_right(T value, T count) {
  if (count < 0 || static_cast<uint64_t>(count) >= 8 * sizeof(T)) return value < 0 ? -1 : 0;
  return static_cast<T>(value >> count);
}
""",
)

_POWER = Helper(
    "whole_power",
    """\
// Overflow wraps; a negative exponent has no whole number as its result.
template <class T>
T whole_power(T base, T exponent) {
  if (exponent < 0) {
    rt_report_fatal("integer power with a negative exponent");
    return 0;
  }
  return pypto_rt::integer_power<T>(base, exponent);
}
""",
)

_TO_INTEGER = Helper(
    "to_integer",
    """\
// Towards zero; NaN gives 0 and what is out of range the nearest end.
template <class T>
T to_integer(float value) {
  constexpr bool is_signed = static_cast<T>(-1) < 0;
  constexpr uint64_t ones = ~uint64_t{0} >> (64 - 8 * sizeof(T) + (is_signed ? 1 : 0));
  constexpr T high = static_cast<T>(ones);
  constexpr T low = is_signed ? static_cast<T>(-high - 1) : T{0};
  if (value != value) return 0;
  if (value <= static_cast<float>(low)) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<T>(value);
}
""",
)

_ROUNDED = Helper(
    "rounded_as",
    """\
// 0 and 1: to the nearest, ties to even; 2: ties away from zero; 3: down; 4: up; 5: towards zero;
// 6: towards zero, then to the odd neighbour.
float rounded_as(int mode, float value) {
  const float whole = __builtin_truncf(value);
  switch (mode) {
    case 2:
      return __builtin_roundf(value);
    case 3:
      return __builtin_floorf(value);
    case 4:
      return __builtin_ceilf(value);
    case 5:
      return whole;
    case 6:
      return whole == value || __builtin_fmodf(whole, 2.0f) != 0.0f
                 ? whole
                 : whole + __builtin_copysignf(1.0f, value);
    default:
      return __builtin_rintf(value);
  }
}
""",
)

_SATURATED = Helper(
    "saturated",
    """\
// The nearest number of an integer type.
template <class T, class S>
T saturated(S value) {
  constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(1);
  constexpr uint64_t ones = ~uint64_t{0} >> (64 - 8 * sizeof(T) + (is_signed ? 1 : 0));
  constexpr __int128 high = static_cast<__int128>(ones);
  constexpr __int128 low = is_signed ? -high - 1 : 0;
  const __int128 wide = value;
  return static_cast<T>(wide < low ? low : wide > high ? high : wide);
}
""",
)

_EXTENT = Helper(
    "extent",
    """\
// The size of an axis of a new tensor.
uint32_t extent(int64_t size) {
  if (size < 0 || size > INT32_MAX) {
    rt_report_fatal("an extent of a new tensor is outside 0 to 2147483647");
    return 0;
  }
  return static_cast<uint32_t>(size);
}
""",
)

_WHOLE = Helper(
    "require_extent",
    """\
// A kernel that was compiled for one extent takes no other.
void require_extent(const ChipTensor& tensor, int axis, uint32_t extent) {
  if (tensor.shapes[axis] != extent) {
    rt_report_fatal("a tensor has another extent than the kernel that it is passed to declares");
  }
}
""",
)

_STEP = Helper(
    "loop_step",
    """\
// A loop whose step is not positive would not end.
int64_t loop_step(int64_t step) {
  if (step < 1) {
    rt_report_fatal("the step of a range must be positive");
    return INT64_MAX;
  }
  return step;
}
""",
)

_ADVANCED = Helper(
    "advanced",
    """\
// The next value of a loop variable; past the last integer no loop goes on.
int64_t advanced(int64_t value, int64_t step) {
  return value > INT64_MAX - step ? INT64_MAX : value + step;
}
""",
)

_ELEMENT = Helper(
    "element",
    """\
// An element of an array; where there is none the run ends.
template <class T, int N>
T& element(T (&array)[N], int64_t index) {
  if (index >= 0 && index < N) return array[index];
  char message[96];
  __builtin_snprintf(message, sizeof message, "index %lld is outside the array of %d",
                     static_cast<long long>(index), N);
  rt_report_fatal(message);
  return array[0];
}
""",
)

HELPERS: tuple[Helper, ...] = (
    _FLOOR_DIV,
    _FLOOR_MOD,
    _WRAP,
    _SHIFT_LEFT,
    _SHIFT_RIGHT,
    _POWER,
    _TO_INTEGER,
    _ROUNDED,
    _SATURATED,
    _EXTENT,
    _WHOLE,
    _STEP,
    _ADVANCED,
    _ELEMENT,
)


def cpp_type(dtype: DataType) -> str:
    """The type in which orchestration code holds a scalar."""
    return "uint16_t" if dtype in (FP16, BF16) else dtype.cpp


def cpp_expression(op: Op, values: tuple[str, ...]) -> str:
    """A scalar operation on named values."""
    assert op.result is not None and isinstance(op.result.type, ScalarType)
    source, target = type_of(op.operands[0]).dtype, op.result.type.dtype
    for dtype in (source, target):
        if dtype in (FP16, BF16):
            raise CompileError(
                f"cannot compute with {dtype} scalars in the orchestration function; compute in "
                "pl.FP32 there, or inside the pl.at block",
                op.span,
            )
    if op.op == "scalar.cast":
        mode = op.attrs.get("mode")
        if mode is not None and target.is_int:
            if source.is_float:
                number = f"rounded_as({CAST_MODES.index(str(mode))}, {values[0]})"
                return f"to_integer<{target.cpp}>({number})"
            return f"saturated<{target.cpp}>({values[0]})"
        if source.is_float and not target.is_float:
            return f"to_integer<{target.cpp}>({values[0]})"
        return f"static_cast<{target.cpp}>({values[0]})"
    spec = OPS[op.op]
    expression = spec.float_cpp if source.is_float else spec.cpp
    assert expression, f"{op.op} on {source}"
    expression = expression.replace("$T", target.cpp)
    for index, value in enumerate(values):
        expression = expression.replace(f"${index}", value)
    return expression
