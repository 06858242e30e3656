"""Devices of functions and variables: set by PlanDevices, printed and read as TVM's text has them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.programs import programs
from support.values import assert_same_results

from relaylab import relay
from relaylab.compat.target import Target, VirtualDevice, make_compilation_config
from relaylab.ir import structural_equal
from relaylab.runtime.device import cpu, cuda
from relaylab.support.errors import RelayValueError

CPU = VirtualDevice(cpu(0))
HERE = "virtual_device=meta[VirtualDevice][0]"
TEXT = f"""#[version = "0.0.5"]
def @main(%a {{{HERE}}}: Tensor[(5, 7), float32], Inline=1, {HERE}) -> Tensor[(5, 7), float32] {{
  let %b {{{HERE}}}: Tensor[(5, 7), float32] = on_device(%a, {HERE}, constrain_result=True);
  %b
}}
"""


def program() -> relay.IRModule:
    x, y, z = (relay.var(n, shape=(2, 3)) for n in "xyz")
    inner = relay.Function([z], relay.nn.relu(z))
    body = relay.add(relay.annotation.on_device(relay.nn.relu(x), cpu(0)), relay.Call(inner, [y]))
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, y], body)))


def test_functions_and_their_parameters_say_where_they_are() -> None:
    with relay.transform.PassContext() as ctx:
        plan = relay.transform.PlanDevices(make_compilation_config(ctx, "llvm"))
    mod = plan(program())
    main: Any = mod["main"]
    assert "on_device" not in str(main)
    inner = main.body.args[1].op
    for where in (main, *main.params, inner, *inner.params):
        assert where.virtual_device_.device_type_int == 1 and where.virtual_device_.virtual_device_id == 0
    assert repr(main.body.virtual_device_) == "VirtualDevice(?)"
    shown = 'VirtualDevice(device_type=1, virtual_device_id=0, target=Target("llvm"))'
    assert str(mod).count(f"{{virtual_device={shown}}}: Tensor") == 3
    assert str(mod).count(f", virtual_device={shown}) -> Tensor") == 2
    assert plan(mod) is mod
    x, y = np.random.default_rng(0).normal(size=(2, 2, 3)).astype("float32")
    for kind in ("debug", "vm", "graph"):
        out = relay.create_executor(kind, mod=relay.transform.InferType()(mod)).evaluate()(x, y).numpy()
        np.testing.assert_allclose(out, np.maximum(x, 0) + np.maximum(y, 0), rtol=1e-6)


def test_random_programs_with_effects_keep_their_meaning() -> None:
    with relay.transform.PassContext() as ctx:
        plan = relay.transform.PlanDevices(make_compilation_config(ctx, "llvm"))
    for mod in programs(14):
        after = relay.transform.InferType()(plan(mod))
        assert plan(after) is after and structural_equal(relay.parse(after.astext()), after)
        assert_same_results(mod, after)


def test_of_several_targets_one_is_where_values_live() -> None:
    both = [Target("llvm"), Target("llvm").with_host("llvm")]
    for targets in (both, tuple(both), dict(zip((cpu(0), cpu(1)), both))):
        with relay.transform.PassContext(config={"relay.fallback_device_type": 1}) as ctx:
            config = make_compilation_config(ctx, targets)
        assert config.primitive_targets == both and config.optional_homogeneous_target is None
        assert config.default_primitive_virtual_device.device_type_int == 1
        assert "virtual_device" in str(relay.transform.PlanDevices(config)(program()))


def test_devices_stay_through_text_and_passes() -> None:
    with relay.transform.PassContext() as ctx:
        mod = relay.transform.PlanDevices(make_compilation_config(ctx, "llvm"))(program())
    assert structural_equal(relay.parse(mod.astext()), mod)
    short = relay.parse('#[version = "0.0.5"]\n' + str(mod))
    assert structural_equal(short, mod)
    assert not structural_equal(mod, relay.transform.PlanDevices()(program()))  # TVM compares the devices of variables
    later: Any = relay.transform.ToANormalForm()(relay.transform.InferType()(mod))["main"]
    assert [p.virtual_device_ for p in later.params] == [later.virtual_device_] * 2 == [mod["main"].virtual_device_] * 2


def test_the_table_of_a_caller_holds_devices() -> None:
    mod = relay.parse(TEXT, init_meta_table={"VirtualDevice": [CPU]})
    main: Any = mod["main"]
    assert main.virtual_device_ == CPU == main.body.var.virtual_device_
    assert dict(main.attrs) == {"Inline": 1} and main.body.value.attrs.virtual_device == CPU
    text = mod.astext()
    assert text.startswith(TEXT.replace("result=True)", "result=True) /* ty=Tensor[(5, 7), float32] */"))
    assert structural_equal(relay.parse(text), mod)


@pytest.mark.parametrize(
    ("text", "kind", "number", "scope"),
    [
        ("device_type=1, virtual_device_id=0, target=Target(id=5f, kind='llvm', keys={'cpu'})", 1, 0, ""),
        ("device_type=2", 2, -1, ""),
        ("memory_scope='global'", -1, -1, "global"),
        ("?", -1, -1, ""),
    ],
)  # fmt: skip
def test_devices_as_tvm_prints_them(text: str, kind: int, number: int, scope: str) -> None:
    func: Any = relay.parse_expr(f"fn (%x) {{ on_device(%x, virtual_device=VirtualDevice({text})) }}")
    found = func.body.attrs.virtual_device
    assert (found.device_type_int, found.virtual_device_id, found.memory_scope) == (kind, number, scope)
    assert (found.target is None) == ("Target" not in text)


def test_devices_in_the_section_that_tvm_writes() -> None:
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["VirtualDevice"], "data": [2]},
        {"type_key": "Array", "data": [3]},
        {
            "type_key": "VirtualDevice",
            "attrs": {"device_type_int": "1", "memory_scope": "5", "target": "4", "virtual_device_id": "0"},
        },
        {"type_key": "Target", "attrs": {"attrs": "0", "host": "0", "keys": "0", "kind": "6", "tag": "5"}},
        {"type_key": "runtime.String"},
        {"type_key": "TargetKind", "repr_str": "llvm"},
    ]
    section = {"root": 1, "nodes": nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.10.0"}}
    main: Any = relay.parse(f"{TEXT}\n#[metadata]\n{json.dumps(section)}")["main"]
    assert main.virtual_device_ == VirtualDevice(cpu(0), "llvm")


def test_functions_on_devices() -> None:
    x, y = relay.Var("x"), relay.Var("y")
    func = relay.annotation.function_on_device(relay.Function([x, y], relay.add(x, y)), ["cpu", cuda()], "cuda")
    assert func.virtual_device_ == VirtualDevice(cuda(0)) and not func.attrs
    assert [p.virtual_device_.device_type_int for p in func.params] == [1, 2]
    free: Any = relay.annotation.on_device(x, "cuda", constrain_result=False, constrain_body=False)
    assert free.attrs.virtual_device.device_type_int == -1
    with pytest.raises(RelayValueError, match="bogus"):
        relay.annotation.on_device(x, "bogus")
    with pytest.raises(RelayValueError, match="type 2"):
        relay.transform.PlanDevices()(relay.IRModule.from_expr(relay.annotation.on_device(relay.const(1), "cuda")))
