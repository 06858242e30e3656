"""Records and numbers of TVM that programs make and hand on: memory pools, plans of storage, kinds of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from relaylab.ir import Expr
from relaylab.ir.types import Type, TypeKind
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError

__all__ = [
    "CallingConv", "ConstantMemoryPools", "ConstantPoolInfo", "PointerType", "PoolInfo",
    "PoolInfoProperties", "PrimType", "StaticMemoryPlan", "StorageInfo", "TypeConstraint", "TypeRelation",
    "WorkspaceMemoryPools", "WorkspacePoolInfo",
]  # fmt: skip


class CallingConv(IntEnum):
    """How a function is called."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


# ---- memory pools: options of `relay.build` for devices with several memories; one CPU has one


@checked
@dataclass(frozen=True)
class PoolInfoProperties:
    """What is known of a memory: its size, its clock, how fast it is; -1 where nothing is."""

    size_hint_bytes: int = -1
    clock_frequency_hz: int = -1
    read_bandwidth_bytes_per_cycle: int = -1
    write_bandwidth_bytes_per_cycle: int = -1
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    target_burst_bytes: Mapping[object, int] = field(default_factory=dict)


@checked
@dataclass(frozen=True)
class PoolInfo:
    """The base of memories that values may live in: a name, who reaches it, its properties."""

    pool_name: str
    targets: Sequence[object] = ()


@checked
@dataclass(frozen=True)
class WorkspacePoolInfo(PoolInfo):
    """A memory for intermediate values."""

    pool_info_properties: PoolInfoProperties = field(default_factory=PoolInfoProperties)


@checked
@dataclass(frozen=True)
class ConstantPoolInfo(PoolInfo):
    """A memory for constants."""

    constant_info_arr: Sequence[object] = ()
    pool_info_properties: PoolInfoProperties = field(default_factory=PoolInfoProperties)


@checked
@dataclass(frozen=True)
class WorkspaceMemoryPools:
    """The memories for intermediate values, best first."""

    pools: Sequence[PoolInfo] = ()


class ConstantMemoryPools(WorkspaceMemoryPools):
    """The memories for constants, best first."""


# ---- plans of storage


@checked
class StorageInfo:
    """Where the fields of a value are kept: for each the number of its storage, its device and its bytes."""

    def __init__(self, sids: Iterable[int], dev_types: Iterable[int], sizes: Iterable[int]):
        self.storage_ids, self.device_types, self.storage_sizes = list(sids), list(dev_types), list(sizes)
        if not len(self.storage_ids) == len(self.device_types) == len(self.storage_sizes):
            raise RelayValueError("a storage has one number, one device and one size", code="compat.storage")


@checked
@dataclass(frozen=True)
class StaticMemoryPlan:
    """The storage of every expression of a function."""

    expr_to_storage_info: Mapping[Expr, StorageInfo]


# ---- kinds of types that programs name; those of tensors are in `relay`


class TypeConstraint(Type):
    """The base of constraints between types."""

    __slots__ = ()
    kind = TypeKind.Constraint


@checked
class PrimType(Type):
    """The type of a number at the level of loops."""

    __slots__ = _fields = ("dtype",)

    def __init__(self, dtype: str):
        object.__setattr__(self, "dtype", str(dtype))

    def __repr__(self) -> str:
        return self.dtype


@checked
class PointerType(Type):
    """The type of an address at the level of loops."""

    __slots__ = _fields = ("element_type", "storage_scope")

    def __init__(self, element_type: Type, storage_scope: str = ""):
        object.__setattr__(self, "element_type", element_type)
        object.__setattr__(self, "storage_scope", storage_scope)

    def __repr__(self) -> str:
        return f"Pointer({self.element_type})"


@checked
class TypeRelation(TypeConstraint):
    """A relation between types: a function, the types it is about (inputs before outputs), the attributes of a call."""

    __slots__ = _fields = ("func", "args", "num_inputs", "attrs")

    def __init__(self, func: object, args: Iterable[Type], num_inputs: int, attrs: object = None):
        for name, value in zip(self._fields, (func, tuple(args), int(num_inputs), attrs)):
            object.__setattr__(self, name, value)
