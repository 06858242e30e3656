"""`relay.random`: counter-based random numbers."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
def multinomial(key: Arg, probs: Arg, num_samples: int = 1) -> TupleWrapper:
    """The advanced generator and `num_samples` int32 indices per row of `probs`, drawn in proportion to its entries.

    key: the generator: key (4 words), path (2), counter (2), place of the next split in the path (2); numbers drawn twice from the same one are the same; shape (10,); dtype uint64
    probs: how likely each index is, up to a factor per row; shape (*rows, N); dtype floats
    num_samples: how many indices each row draws
    Result: a tuple: the next generator, (10,) of uint64; the indices, (*rows, num_samples) of int32
    """
def normal(key: Arg, shape: Any, dtype: str = 'float32', mean: Arg | float = 0.0, scale: Arg | float = 1.0) -> TupleWrapper:
    """The advanced generator and floats of a normal distribution, by the sine of Box and Muller's method; the second
    half of the words drawn gives the angles.

    key: the generator: key (4 words), path (2), counter (2), place of the next split in the path (2); numbers drawn twice from the same one are the same; shape (10,); dtype uint64
    shape: the shape of the numbers
    dtype: their data type: float16, float32 or float64
    mean: the expected value; shape (); dtype any
    scale: the standard deviation; shape (); dtype any
    Result: a tuple: the next generator, (10,) of uint64; the numbers, `shape` of `dtype`
    """
def threefry_generate(key: Arg, shape: Any) -> TupleWrapper:
    """The advanced generator and random uint64 words of a shape.

    key: the generator: key (4 words), path (2), counter (2), place of the next split in the path (2); numbers drawn twice from the same one are the same; shape (10,); dtype uint64
    shape: the shape of the numbers
    Result: a tuple: the next generator, (10,) of uint64; the words, `shape` of uint64
    """
def threefry_key(seed: int) -> Constant:
    """A generator made from a seed (an int below 2^256), its key; a uint64[10] constant whose word 8 is 2^63."""
def threefry_split(key: Arg) -> TupleWrapper:
    """Two generators from one, independent of each other and of it.

    key: the generator: key (4 words), path (2), counter (2), place of the next split in the path (2); numbers drawn twice from the same one are the same; shape (10,); dtype uint64
    Result: a tuple of two generators, (10,) of uint64 each
    """
def uniform(key: Arg, shape: Any, dtype: str = 'float32', low: Arg | float = 0.0, high: Arg | float = 1.0) -> TupleWrapper:
    """The advanced generator and floats spread evenly over low <= x < high: low + (high - low) * u, with u the upper 23
    of the low 32 bits of a word (52 of 64 for float64, 10 of 16 for float16).

    key: the generator: key (4 words), path (2), counter (2), place of the next split in the path (2); numbers drawn twice from the same one are the same; shape (10,); dtype uint64
    shape: the shape of the numbers
    dtype: their data type: float16, float32 or float64
    low: the least number; shape (); dtype any
    high: the bound that stays out; shape (); dtype any
    Result: a tuple: the next generator, (10,) of uint64; the numbers, `shape` of `dtype`
    """
