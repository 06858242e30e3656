"""`NDArray`: the array that compiled code reads and writes, dense and aligned to 64 bytes, on `cpu(0)`.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from relaylab.runtime.device import Device, cpu, require_present
from relaylab.runtime.memory import address, aligned_copy, aligned_like, is_aligned
from relaylab.support.checked import checked
from relaylab.support.dtypes import BFLOAT16
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a
from relaylab.support.memory import may_change
from relaylab.support.table import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["NDArray", "array", "cpu", "empty", "from_dlpack"]

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    BFLOAT16.name,
)  # fmt: skip
_NATIVE = frozenset(np.dtype(name) for name in DTYPES[:-1])


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of any library that shares its memory by the DLPack protocol (dmlc.github.io/dlpack)."""

    def __dlpack__(self, *, stream: None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _Kept:
    """Memory that nobody writes to any more, as numpy takes it: no array that can be written to is behind its views."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: np.ndarray):
        self.memory = memory
        told = memory.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], True)}


class NDArray:
    """An n-dimensional array. Made by `array`, `empty` and `from_dlpack`; equal to itself only."""

    __slots__ = ("_data", "_alone", "_lent", "__weakref__")

    def __init__(self, data: np.ndarray, alone: bool = False, lent: bool = False):
        """`alone`: nobody else can write to the memory of `data`; `lent`: nor can this array before it has its own."""
        self._data, self._alone, self._lent = data, alone, lent

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._data.shape

    @property
    def dtype(self) -> str:
        """The name of the element type, such as "float32"."""
        return self._data.dtype.name

    @property
    def device(self) -> Device:
        """Where it lives."""
        return cpu(0)

    ctx = device

    @property
    def address(self) -> int:
        """Where its first element lies; valid as long as the array is."""
        return address(self.view())

    def view(self) -> np.ndarray:
        """The elements without a copy; writing to it writes to the array."""
        if self._lent:
            self._data, self._lent = _own(self._data), False
        self._alone = False
        return self._data

    def values(self) -> np.ndarray:
        """The elements without a copy, to read now."""
        return _frozen(self._data.view())

    def read(self) -> np.ndarray:
        """As `values`, for compiled code, which does not write to what it is given: not frozen, and at no cost."""
        return self._data

    def lend(self) -> np.ndarray:
        """The elements as they are now, to keep: without a copy if nobody else can write to them.

        The array then takes other memory before it is written to, or shows its own to anyone.
        """
        if not self._alone:
            return _frozen(self._data.copy())
        if not self._data.flags.writeable:
            return self._data
        self._lent = True
        return np.asarray(_Kept(self._data)).view(self._data.dtype)  # the interface has no bfloat16

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array."""
        return self._data.copy()

    @checked
    def asnumpy(self) -> np.ndarray:
        """The former name of `numpy`."""
        warnings.warn("NDArray.asnumpy is now NDArray.numpy", DeprecationWarning, stacklevel=2)
        return self.numpy()

    @checked
    def copyfrom(self, source: object) -> NDArray:
        """Fill it with `source` (NDArray, numpy array, number or nested list) of the same shape; returns self.

        Values are converted within their kind (float64 to float32, integers to floats); RelayTypeError for
        others, RelayValueError for another shape.
        """
        values = converted(source, self.shape, self._data.dtype)
        if self._lent:
            self._data, self._lent = aligned_like(self.shape, self._data.dtype), False
        np.copyto(self._data, values, casting="unsafe")
        return self

    @checked
    def copyto(self, target: Device | NDArray) -> NDArray:
        """Copy to a device (giving a new array) or into an array of the same shape and dtype (giving that)."""
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        require_present(target)
        return array(self)

    def same_as(self, other: object) -> bool:
        """Is it the very same array?"""
        return self is other

    def __setitem__(self, index: object, value: object) -> None:
        if not _is_whole(index):
            raise RelayValueError(
                "only the whole array can be assigned: x[:] = value",
                code="runtime.array-slice",
                help="use x.numpy(), change that, and x.copyfrom(it)",
            )
        if isinstance(value, (int, float, bool, np.number, np.bool_)):
            value = np.full(self.shape, value)
        self.copyfrom(value)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and dtype is not None and np.dtype(dtype) != self._data.dtype:
            raise ValueError("a conversion needs a copy")
        return self.view() if copy is False else np.array(self._data, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        if self._data.dtype == BFLOAT16:
            raise RelayTypeError(
                "numpy does not share bfloat16 through DLPack",
                code="runtime.dlpack",
                help='share the bits: array(x.numpy().view("uint16"))',
            )
        return self.view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory."""
        return self.__dlpack__()

    def __str__(self) -> str:
        return str(self._data)

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device}>\n{self._data!r}"


def array(
    source: object, device: Device | None = None, dtype: str | None = None, *, ctx: Device | None = None
) -> NDArray:
    """A new array with a copy of `source`: an NDArray, a numpy array, a number or a nested list.

    It keeps the dtype that numpy gives the source (float64 for Python floats) unless `dtype` is given.
    `ctx` is the former name of `device`.
    """
    _placed(device, ctx)
    if type(source) is np.ndarray and dtype is None and source.dtype in _NATIVE:
        return NDArray(aligned_copy(source, source.dtype), True)
    values = as_numpy(source)
    target = np.dtype(_checked_dtype(dtype)) if dtype is not None else values.dtype.newbyteorder("=")
    return NDArray(_own(values, target), alone=True)


def kept(values: np.ndarray) -> NDArray:
    """An array over memory that nobody writes to any more; of a copy of what someone can write to.

    It takes aligned memory of its own before it is written to, or shown to anyone.
    """
    if values.flags.c_contiguous and values.dtype.name in DTYPES and not may_change(values):
        return NDArray(np.asarray(values), alone=True, lent=True)
    return array(values)


def empty(
    shape: int | tuple[int, ...], dtype: str = "float32", device: Device | None = None, *, ctx: Device | None = None
) -> NDArray:
    """A new array of zeros of `shape`; `ctx` is the former name of `device`."""
    _placed(device, ctx)
    return NDArray(aligned_like(_checked_shape(shape), np.dtype(_checked_dtype(dtype))), alone=True)


def _own(values: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """A dense, aligned copy."""
    return aligned_copy(values, values.dtype if dtype is None else dtype)


def _frozen(data: np.ndarray) -> np.ndarray:
    data.setflags(write=False)
    return data


def _placed(device: Device | None, ctx: Device | None) -> None:
    """Refuse devices that are not here."""
    if ctx is not None:
        warnings.warn("`ctx` is the former name of `device`", DeprecationWarning, stacklevel=4)
    require_present(device or ctx or cpu(0))


class _FromCapsule:
    """A DLPack capsule of memory of the CPU, such as `to_dlpack` gives, in the protocol that took its place."""

    def __init__(self, capsule: object):
        self.capsule = capsule

    def __dlpack__(self, **options: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Writable:
    """Memory that numpy takes for read-only, since bare capsules do not say that it may be written; it may."""

    def __init__(self, data: np.ndarray):
        self.data = data
        self.__array_interface__ = {**data.__array_interface__, "data": (data.ctypes.data, False)}


def from_dlpack(source: object) -> NDArray:
    """An array that shares the memory of a DLPack object if it is dense, aligned and writable; else a copy.

    A bare capsule is taken too, once: what `to_dlpack` of NDArrays and of torch gives.
    """
    bare = type(source).__name__ == "PyCapsule"  # the class itself has no public name before Python 3.13
    source = _FromCapsule(source) if bare else source
    if not isinstance(source, SupportsDLPack):
        raise RelayTypeError(
            f"{type(source).__name__} does not speak DLPack",
            code="runtime.dlpack",
            help="give an object with __dlpack__ and __dlpack_device__",
        )
    try:
        taken = np.from_dlpack(source)
        data = np.asarray(_Writable(taken)) if bare else taken
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise RelayValueError(f"cannot take the array through DLPack: {error}", code="runtime.dlpack") from None
    shared = data.flags.c_contiguous and data.flags.writeable and is_aligned(data)
    return NDArray(as_numpy(data)) if shared else array(data)


def as_numpy(source: object, what: str = "an array") -> np.ndarray:
    """The values as a numpy array of a numeric dtype, without a copy where possible."""
    if isinstance(source, NDArray):
        return source.values()
    if type(source) is not np.ndarray and is_a(source, np.ndarray) and np.any(getattr(source, "mask", False)):
        raise RelayValueError(
            f"{what} has masked elements, which have no value",
            code="runtime.masked",
            help="say what stands in their place: x.filled(0)",
        )
    if not hasattr(source, "__array__") and isinstance(source, SupportsDLPack):
        return from_dlpack(source).values()
    try:
        values = np.asarray(source)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:  # torch's for what it keeps to itself
        raise RelayValueError(
            f"{what} cannot be made of this {type(source).__name__}: {error}",
            code="runtime.not-an-array",
            help="give numbers in a regular box",
        ) from None
    if values.dtype.name not in DTYPES:
        raise RelayTypeError(
            f"{what} cannot be made of {type(source).__name__} with elements of dtype `{values.dtype}`",
            code="runtime.dtype",
            help=f"dtypes: {', '.join(DTYPES)}",
        )
    return values


def converted(source: object, shape: tuple[int, ...], dtype: np.dtype, what: str = "the array") -> np.ndarray:
    """`source` as numpy values that fit into `what` of `shape` and `dtype`; clear errors where they don't."""
    values = as_numpy(source, what)
    if values.shape != shape:
        raise RelayValueError(
            f"{what} has shape {shape}, the value has shape {values.shape}",
            code="runtime.shape-mismatch",
            help=_shape_help(values, shape),
        )
    if not _convertible(values, dtype):
        raise RelayTypeError(
            f"{what} has dtype {dtype.name}, the value has dtype {values.dtype.name}",
            code="runtime.dtype-mismatch",
            help=f'convert it if that is meant: value.astype("{dtype.name}")',
        )
    return values


def _convertible(values: np.ndarray, dtype: np.dtype) -> bool:
    """Within its kind, integers if they fit into the range of `dtype`."""
    if values.dtype.kind not in "iu" or dtype.kind not in "iu":
        return np.can_cast(values.dtype, dtype, "same_kind")
    limits = np.iinfo(dtype)
    safe = values.size == 0 or np.can_cast(values.dtype, dtype)
    return safe or (int(values.min()) >= limits.min and int(values.max()) <= limits.max)


def _shape_help(values: np.ndarray, shape: tuple[int, ...]) -> str:
    size = 1
    for extent in shape:
        size *= extent
    return f"reshape it: value.reshape({shape})" if values.size == size else "give a value of that shape"


def _checked_dtype(dtype: DTypeLike) -> str:
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in DTYPES:
        raise RelayTypeError(f"there is no array dtype `{name}`", code="runtime.dtype", help=did_you_mean(name, DTYPES))
    return name


def _checked_shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for extent in extents:
        if not is_a(extent, int, np.integer) or extent < 0:
            raise RelayValueError(f"an extent is a number ≥ 0, got {extent!r}", code="runtime.shape")
    return tuple(int(extent) for extent in extents)


def _is_whole(index: object) -> bool:
    return index is Ellipsis or (isinstance(index, slice) and index == slice(None))


def numpyasarray(np_data: np.ndarray) -> tuple[NDArray, tuple[int, ...]]:
    """An NDArray over the memory of a numpy array where that is possible, else of a copy, and its shape."""
    shared = np_data.flags.writeable and np_data.flags.c_contiguous
    return (from_dlpack(np_data) if shared else array(np_data)), np_data.shape
