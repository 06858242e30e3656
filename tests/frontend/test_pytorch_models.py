"""Small networks of the usual kinds against torch, compiled; where their nodes come from; what is refused."""
# ruff: noqa: E501 (a case a cell)

from __future__ import annotations

import pytest
from pytorch_networks import NETWORKS, Residual
from pytorch_tools import Wrapped, agree, compare, program, run, torch, wanted

from relaylab import relay, study
from relaylab.support.errors import RelayError

nn = torch.nn


QUICK = ("residual", "unet", "gpt", "separable")  # the other kinds are slow tests


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in NETWORKS])
def test_networks_agree(name: str) -> None:
    torch.manual_seed(0)
    model, inputs = NETWORKS[name]()
    agree(model, *inputs)


def test_an_open_batch_stays_open() -> None:
    torch.manual_seed(0)
    model, x = Residual(), torch.randn(2, 3, 8, 8)
    mod, params = agree(model, x, executor="vm", dynamic=({0: torch.export.Dim("batch")},))
    assert mod["main"].ret_type.shape[0] is mod["main"].params[0].type_annotation.shape[0]
    assert isinstance(mod["main"].ret_type.shape[0], relay.SizeVar) and mod["main"].ret_type.shape[1] == 5
    wide = torch.randn(5, 3, 8, 8)
    compare(run(mod, params, [wide], "vm"), wanted(model, [wide]), 1e-4)
    fixed, _ = relay.frontend.from_pytorch(
        program(model, x, dynamic=({0: torch.export.Dim("b")},)), [("x", (7, 3, 8, 8))]
    )
    assert str(fixed["main"].ret_type) == "Tensor[(7, 5), float32]"


def test_spans_name_the_module_and_the_line() -> None:
    mod, _ = relay.frontend.from_pytorch(Residual().eval(), [("x", (1, 3, 8, 8))])
    spans: dict[str, str] = {}
    relay.analysis.post_order_visit(
        mod["main"], lambda e: spans.setdefault(e.op.name, str(e.span)) if isinstance(e, relay.Call) else None
    )
    lines = open(__file__.replace("test_pytorch_models", "pytorch_networks")).read().splitlines()
    for name, module, text in [("nn.conv2d", "stem at ", "x = self.stem(x)"), ("nn.dense", "head at ", "self.head(")]:
        place, line, _ = spans[name].rsplit(":", 2)
        assert place.startswith(module) and place.endswith("pytorch_networks.py") and text in lines[int(line) - 1]


def test_modules_torchscript_and_files(tmp_path) -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval(), torch.randn(2, 4)
    infos = [("x", ((2, 4), "float32"))]
    traced = torch.jit.trace(model, x)
    torch.jit.save(traced, tmp_path / "model.pt")
    torch.export.save(program(model, x), tmp_path / "model.pt2")
    for given in (model, traced, torch.jit.script(model), tmp_path / "model.pt", str(tmp_path / "model.pt2")):
        mod, params = relay.frontend.from_pytorch(given, infos)
        assert mod["main"].params[0].name_hint == "x" and sorted(params) == ["0.bias", "0.weight"]
        compare(run(mod, params, [x], "debug"), wanted(model, [x]), 1e-5)
    mod, params = relay.frontend.from_pytorch(model, [x], use_parser_friendly_name=True)
    assert sorted(params) == ["0_bias", "0_weight"]
    mod, _ = relay.frontend.from_pytorch(model, [("x", (relay.Any(), 4))])
    assert mod["main"].ret_type.shape[0] is mod["main"].params[0].type_annotation.shape[0]
    assert mod["main"].ret_type.shape[1] == 3


def test_own_converters() -> None:
    ep = program(Wrapped(torch.special.bessel_j0), torch.randn(3))
    mod, _ = relay.frontend.from_pytorch(
        ep, None, {"aten::special_bessel_j0": lambda inputs, types: relay.cos(inputs[0])}
    )
    assert "cos(" in mod.astext()


def refused(model, infos=None, **options) -> RelayError:
    with pytest.raises(RelayError) as info:
        relay.frontend.from_pytorch(model, infos, **options)
    return info.value


def test_all_unknown_operators_are_named_at_once(monkeypatch) -> None:
    ep = program(Wrapped(lambda x: torch.special.airy_ai(x) + torch.special.zeta(x, x)), torch.randn(3))
    error = refused(ep)
    assert error.code == "import.unsupported" and "special_airy_ai.default, special_zeta.default" in error.message
    assert error.place.count("pytorch_models.py") + error.place.count("pytorch_tools.py") == 2
    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", None)  # which takes minutes of large ones
    error = refused(program(Wrapped(lambda x: torch.nn.functional.gelu(x) + torch.randn(3)), torch.randn(3)))
    assert error.code == "import.unsupported" and "randn.default" in error.message


def test_what_is_refused(tmp_path) -> None:
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    torch.save(model, tmp_path / "model.pt")
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    for name in ("model.pt", "weights.pth"):
        error = refused(tmp_path / name, [x])
        assert error.code == "import.pickle" and "torch.export.save" in error.help
    assert refused(tmp_path / "none.pt2").code == "import.unreadable"
    assert (
        refused(model).code
        == refused(model, [("x", 4)]).code
        == refused(model, [("x", (2, "a"))]).code
        == "import.input"
    )
    assert refused(model.state_dict(), [x]).code == refused(3).code == "import.model"
    assert refused(model, [x], keep_quantized_weight=True).code == "import.option"
    assert refused(program(model, x), [("x", (3, 4))]).code == "import.input"
    assert refused(Wrapped(lambda a: a if a.sum() > 0 else -a), [x]).code == "import.export"
    assert refused(nn.BatchNorm1d(4).train(), [x]).code in ("import.unsupported", "import.mutation")
    assert refused(Wrapped(lambda a: a.to(torch.complex64)), [x]).code == "import.output"


def test_commands_take_files(tmp_path) -> None:
    ep = program(nn.Linear(4, 3), torch.randn(2, 4), dynamic=({0: torch.export.Dim("b")},))
    torch.export.save(ep, tmp_path / "net.pt2")
    loaded = study.load(tmp_path / "net.pt2")
    assert loaded.name == "net" and str(loaded.mod["main"].ret_type) == "Tensor[(1, 3), float32]"


class _Writes(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.conv, self.norm, self.function = torch.nn.Conv2d(3, 3, 3), torch.nn.BatchNorm2d(3), function

    def forward(self, x):
        return self.function(self.norm(self.conv(x)), x)


def _read_later(y, x):
    first = y[:, 0]
    y.relu_()
    return first


def _under_no_grad(y, x):
    y += x.mean()
    with torch.no_grad():
        z = torch.nn.functional.layer_norm(y, (6, 6)).relu_()
    return z + torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).mean()


def test_known_programs_are_taken_apart_by_operators(monkeypatch) -> None:
    def whole(*args):
        raise AssertionError("the program was decomposed as a whole")

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", whole)
    mod, _ = agree(_Writes(_under_no_grad), torch.randn(2, 3, 8, 8), tolerance=1e-5)
    assert "nn.softmax" in str(mod)
    gelu, x = Wrapped(lambda x: torch.nn.functional.gelu(x @ x.mT)), torch.randn(5, 3, 4)
    agree(gelu, x, executor="vm", dynamic=(({0: torch.export.Dim("n")},),))


@pytest.mark.parametrize("function", [_read_later, lambda y, x: (torch.einsum("nchw->nhwc", y), y.relu_())[0]])
def test_what_a_view_reads_is_what_was_written(function) -> None:
    agree(_Writes(function), torch.randn(2, 3, 8, 8), tolerance=1e-5)


def test_checks_compute_nothing() -> None:
    def counted(x, many):
        n = many.sum().item()
        torch._check(n != 0)
        return x * n

    agree(Wrapped(counted), torch.randn(3), torch.tensor([1, 2]))


def test_a_mistake_is_not_hidden_by_taking_the_program_apart_whole(monkeypatch) -> None:
    exported = program(Wrapped(torch.sin), torch.randn(3))
    monkeypatch.setattr("relaylab.frontend.pytorch.expansion.changes", lambda node: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        relay.frontend.from_pytorch(exported)
