"""Code for AArch64, run in an emulator: every kind of kernel and random networks against the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arm_machine import ArmMachine
from support.compiled import difference, interpreted
from support.networks import random_network

from relaylab import relay
from relaylab.codegen.isa.target import CpuTarget
from relaylab.ir import IRModule
from relaylab.runtime import cpu, load_module
from relaylab.runtime.archive import ArtifactError
from relaylab.support.errors import RelayValueError

ARM = "llvm -mtriple=aarch64-linux-gnu -mcpu="
CPUS = ("generic", "neoverse-n1", "neoverse-v1")  # products of bytes: of 16 bits, `sdot`, `usdot`
LAYOUT = 'data_layout="NHWC", kernel_layout="HWIO"'


def conv(size: int, channels: int, strides: str = "[1, 1]") -> tuple[str, str]:
    """Parameters and body of a convolution with its bias and a ReLU."""
    parameters = (
        f"%x: Tensor[(1, 9, 11, {size}), float32], %w: Tensor[(3, 3, {size}, {channels}), float32],"
        f" %b: Tensor[({channels}), float32]"
    )
    options = f"strides={strides}, padding=[1, 1, 1, 1], channels={channels}, kernel_size=[3, 3], {LAYOUT}"
    return parameters, f"nn.relu(nn.bias_add(nn.conv2d(%x, %w, {options}), %b, axis=3))"


PROGRAMS = {  # parameters, body, the code that is expected
    "dense": ("%x: Tensor[(7, 33), float32], %w: Tensor[(21, 33), float32]", "nn.relu(nn.dense(%x, %w))", "gemm"),
    "one row": ("%x: Tensor[(1, 65), float32], %w: Tensor[(40, 65), float32]", "tanh(nn.dense(%x, %w))", "gemm"),
    "few columns": ("%x: Tensor[(9, 35), float32], %w: Tensor[(3, 35), float32]", "nn.dense(%x, %w)", "gemm"),
    "inputs": (
        "%x: Tensor[(2, 7, 9), float32], %y: Tensor[(2, 11, 9), float32]",
        "nn.batch_matmul(%x, %y, transpose_b=True)",
        "gemm",
    ),
    "doubles": ("%x: Tensor[(7, 33), float64], %w: Tensor[(21, 33), float64]", "nn.dense(%x, %w)", "gemm"),
    "halves": ("%x: Tensor[(7, 33), float16], %w: Tensor[(21, 33), float16]", "nn.relu(nn.dense(%x, %w))", "gemm"),
    "bfloats": ("%x: Tensor[(7, 33), bfloat16], %w: Tensor[(21, 33), bfloat16]", "nn.dense(%x, %w)", "gemm"),
    "strassen": (
        "%x: Tensor[(31, 256), float32], %w: Tensor[(256, 256), float32]",
        "nn.relu(nn.dense(%x, %w))",
        "gemm",
    ),
    "conv": (*conv(6, 13, "[2, 1]"), "conv"),
    "winograd": (*conv(16, 24), "winograd"),
    "depthwise": (
        "%x: Tensor[(1, 9, 11, 7), float32], %w: Tensor[(3, 3, 7, 1), float32]",
        'nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=7, channels=7, kernel_size=[3, 3], data_layout="NHWC",'
        ' kernel_layout="HWOI")',
        "depthwise",
    ),
    "softmax": ("%x: Tensor[(5, 37), float32]", "nn.softmax(%x)", "softmax"),
    "functions": ("%x: Tensor[(5, 13), float32]", "erf(sigmoid(log(exp(%x)))) + sin(%x)", "erf"),
    "functions of doubles": (
        "%x: Tensor[(5, 13), float64], %y: Tensor[(5, 13), float64]",
        "erf(sigmoid(log(exp(%x)))) + sin(%x) * power(abs(%y), %x) + floor_mod(sinh(%x), atan(%y))",
        "erf",
    ),
    "sort": ("%x: Tensor[(5, 13), float32]", "sort(%x)", "sort"),
    "casts": ("%x: Tensor[(5, 13), float32]", 'cast(cast(%x * 100f, dtype="int8"), dtype="float16")', "cast"),
    "bytes": ("%x: Tensor[(7, 36), uint8], %w: Tensor[(21, 36), int8]", 'nn.dense(%x, %w, out_dtype="int32")', "gemm"),
}


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Bytes of every value, other numbers around zero."""
    if dtype in ("uint8", "int8"):
        info = np.iinfo(dtype)
        return rng.choice([info.min, info.max, *range(info.min, info.max + 1, 5)], shape).astype(dtype)
    return (rng.standard_normal(shape) * 0.5).astype(dtype)


def emulated(mod: IRModule, inputs: dict[str, np.ndarray], params: dict[str, np.ndarray], cpu: str, level: int = 3):
    """The library, and what the emulated CPU computes."""
    with relay.transform.PassContext(opt_level=level):
        lib = relay.build(mod, ARM + cpu, params=params)
    return lib, ArmMachine(lib.executable).run(inputs)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_kind_of_kernel(name: str, cpu: str) -> None:
    parameters, body, code = PROGRAMS[name]
    mod = relay.transform.InferType()(relay.fromtext(f"fn ({parameters}) {{ {body} }}"))
    rng = np.random.default_rng(3)
    given = {p.name_hint: numbers(rng, p.checked_type.concrete_shape, p.checked_type.dtype) for p in mod["main"].params}
    weights = {name: given[name] for name in given if name in "wb"}
    lib, got = emulated(mod, {name: given[name] for name in given if name not in weights}, weights, cpu)
    assert code in str(lib.summary())
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}.get(str(got[0].dtype), 2e-5)
    assert not difference(got, interpreted(mod, given), tolerance)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    net = random_network(seed)
    rest = {name: data for name, data in net.inputs.items() if name not in net.params}
    _, got = emulated(net.mod, rest, net.params, CPUS[seed % 3], seed % 4)
    assert not difference(got, interpreted(net.mod, net.inputs), net.tolerance)


def test_the_emulator_sees_what_is_wrong() -> None:
    """A kernel that reads beyond its memory, and a network whose weights are others, do not pass."""
    mod = relay.fromtext("fn (%x: Tensor[(64, 64), float32]) { %x + 1f }")
    lib, (got,) = emulated(mod, {"x": np.ones((64, 64), "float32")}, {}, "generic")
    np.testing.assert_array_equal(got, np.full((64, 64), 2, "float32"))
    with pytest.raises(Exception, match="UNMAPPED"):
        ArmMachine(lib.executable).run({"x": np.ones((8, 8), "float32")})


@pytest.mark.parametrize("cpu_name", ["generic", "cortex-a72", "neoverse-n1", "apple-m1"])
def test_code_for_another_machine_is_looked_at_and_exported_but_not_run(cpu_name: str, tmp_path: Path) -> None:
    mod = relay.fromtext("fn (%x: Tensor[(7, 33), float32], %w: Tensor[(21, 33), float32]) { nn.dense(%x, %w) }")
    lib = relay.build(mod, ARM + cpu_name)
    assert "fmla" in lib.inspect("asm", "dense")
    assert "128-bit vectors, 32 registers" in lib.inspect("why", "dense")
    lib.export_library(tmp_path / "net.so")
    for module in (lib, load_module(tmp_path / "net.so")):
        with pytest.raises(ArtifactError, match="aarch64-linux-gnu") as caught:
            module["default"](cpu(0))
        assert caught.value.code == "runtime.other-machine" and caught.value.help


def test_targets_of_two_architectures() -> None:
    target = CpuTarget.parse(ARM + "neoverse-n1")
    assert (target.isa, target.registers, target.lanes("float32"), target.needs) == (
        "neon", 32, 4, ("dotprod", "fp-armv8", "neon"),
    )  # fmt: skip
    assert CpuTarget.parse(str(target)) == target and target.converts_halves
    assert CpuTarget.parse("llvm -mtriple=arm64-apple-macos -mcpu=apple-m1").byte_products.name == "sdot"
    assert CpuTarget.parse("llvm -mtriple=aarch64-linux-gnu -mattr=+i8mm").byte_products.name == "usdot"
    assert CpuTarget.parse("llvm -mtriple=aarch64-linux-gnu") == CpuTarget.parse(ARM + "generic")
    assert CpuTarget.parse("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids").byte_products.name == "vpdpbusd"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("-mtriple=armv7l-linux-gnueabihf", "target.triple", "aarch64-linux-gnu"),
        ("-mtriple=aarch64", "target.triple", "aarch64-linux-gnu"),
        ("-mtriple=aarch64-linux-gnu -mcpu=haswell", "target.cpu", "-mtriple=x86_64-linux-gnu"),
        ("-mtriple=aarch64-linux-gnu -mcpu=neoverse-n7", "target.cpu", "neoverse-n"),
        ("-mtriple=aarch64-linux-gnu -mattr=+avx2", "target.feature", "no CPU feature `avx2`"),
        ("-mtriple=aarch64-linux-gnu -mattr=-neon", "target.feature", "every AArch64 CPU has `neon`"),
        ("-mtriple=x86_64-linux-gnu -mcpu=cortex-a72", "target.cpu", "-mtriple=aarch64-linux-gnu"),
    ],
)
def test_what_is_no_target(text: str, code: str, words: str) -> None:
    with pytest.raises(RelayValueError) as caught:
        CpuTarget.parse(f"llvm {text}")
    assert caught.value.code == code and words in str(caught.value)
