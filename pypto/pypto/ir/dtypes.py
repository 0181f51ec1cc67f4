"""Element types, and their names in every text that the project writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataType:
    """An element type.

    ``name`` is its public spelling, ``pto`` the one of the ``.pto`` text and ``cpp`` that of
    generated C++. ``abi_code`` is the number by which the tensor ABI knows it.
    """

    name: str
    bits: int
    pto: str
    cpp: str
    abi_code: int

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"pl.{self.constant_name}"

    def code(self) -> int:
        """The number by which the tensor ABI knows it."""
        return self.abi_code

    def get_byte(self) -> int:
        """Bytes that one element takes in memory."""
        return (self.bits + 7) // 8

    @property
    def constant_name(self) -> str:
        """The name under which ``pypto.language`` exports it, such as ``"BF16"``."""
        return "BF16" if self.name == "bfloat16" else self.name.upper()

    @property
    def torch_name(self) -> str:
        """The attribute of ``torch`` that names the same element type."""
        return _TORCH_NAMES[self.name]

    @property
    def is_float(self) -> bool:
        """Whether it is a floating point type."""
        return self.name in ("fp32", "fp16", "bfloat16")

    @property
    def is_int(self) -> bool:
        """Whether it is an integer type, counting ``INDEX`` and not ``BOOL``."""
        return not self.is_float and self.name not in ("bool", "task_id")

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an integer type without negative numbers."""
        return self.name.startswith("uint")


FP32 = DataType("fp32", 32, "f32", "float", 0)
FP16 = DataType("fp16", 16, "f16", "half", 1)
INT32 = DataType("int32", 32, "i32", "int32_t", 2)
INT16 = DataType("int16", 16, "i16", "int16_t", 3)
INT8 = DataType("int8", 8, "i8", "int8_t", 4)
UINT8 = DataType("uint8", 8, "ui8", "uint8_t", 5)
BF16 = DataType("bfloat16", 16, "bf16", "bfloat16_t", 6)
INT64 = DataType("int64", 64, "i64", "int64_t", 7)
UINT16 = DataType("uint16", 16, "ui16", "uint16_t", 9)
UINT32 = DataType("uint32", 32, "ui32", "uint32_t", 10)
UINT64 = DataType("uint64", 64, "ui64", "uint64_t", 11)
BOOL = DataType("bool", 1, "i1", "bool", 8)
# A size or an offset: 64 bits everywhere, so the tensor ABI has no code of its own for it.
INDEX = DataType("index", 64, "index", "int64_t", 7)
# Names a task of the run that submitted it. Orchestration code alone holds it, and no tensor does.
TASK_ID = DataType("task_id", 64, "", "TaskId", -1)

DTYPES: tuple[DataType, ...] = (
    FP32,
    FP16,
    BF16,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    BOOL,
    INDEX,
)

BY_NAME: dict[str, DataType] = {dtype.name: dtype for dtype in DTYPES}

_TORCH_NAMES: dict[str, str] = {
    "fp32": "float32",
    "fp16": "float16",
    "bfloat16": "bfloat16",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool": "bool",
    "index": "int64",
}

# The range of each integer type that a literal must fit.
INT_RANGES: dict[str, tuple[int, int]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "index": (-(2**63), 2**63 - 1),
}
