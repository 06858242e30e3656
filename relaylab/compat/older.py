"""Names of other releases of TVM (0.6 to 0.16): what each is here. Asking for one warns with the name of today."""

from __future__ import annotations

import importlib
import warnings

MODULES = {
    "tvm.contrib.util": "contrib.utils",
    "tvm.contrib.graph_runtime": "contrib.graph_executor",
    "tvm.contrib.debugger.debug_runtime": "tvm.contrib.debugger.debug_executor",
    "tvm.module": "tvm.runtime",
    "tvm.ndarray": "tvm.nd",
    "relay.module": "tvm.ir.module",
    "relay.testing.config": "relay.testing",
    "tvm.driver.build_module": "relay.build_module",
}
"""Modules that had another name, and which they are."""

NAMES = {
    "tvm.context": "relaylab.runtime.device:device",
    "tvm.TVMContext": "relaylab.runtime.device:Device",
    "tvm.nd.context": "relaylab.runtime.device:device",
    "tvm.nd.TVMContext": "relaylab.runtime.device:Device",
    "tvm.runtime.TVMContext": "relaylab.runtime.device:Device",
    "tvm.runtime.context": "relaylab.runtime.device:device",
    "tvm.runtime.load": "relaylab.runtime.module:load_module",
    "tvm.runtime.module.load": "relaylab.runtime.module:load_module",
    "tvm.convert": "relaylab.compat.registry:convert",
    "tvm.var": "relaylab.ir.dims:SizeVar",
    "relay.Module": "relaylab.ir.module:IRModule",
    "relay.expr.Function": "relaylab.ir.expr:Function",
    "relay.expr.FunctionWithFields": "relaylab.ir.expr:FunctionWithFields",
    "relay.expr.Module": "relaylab.ir.module:IRModule",
    "relay.analysis.alpha_equal": "relaylab.ir.equal:structural_equal",
    "relay.analysis.assert_alpha_equal": "relaylab.ir.equal:assert_structural_equal",
    "relay.analysis.structural_hash": "relaylab.ir.digest:structural_hash",
    "relay.testing.ctx_list": "relaylab.compat.testing.helpers:enabled_targets",
    "relay.testing.enabled_targets": "relaylab.compat.testing.helpers:enabled_targets",
}
"""Names that moved, and where they are."""


def told_of_module(key: str) -> None:
    """Warn that a module has another name now."""
    if key in MODULES:
        place = f"relaylab.{MODULES[key]}"
        warnings.warn(f"{key} is a former name: it is {place} now", DeprecationWarning, stacklevel=4)


def old_name(key: str) -> object | None:
    """What a former name such as `tvm.context` stands for, with a DeprecationWarning; None if it is none."""
    place = NAMES.get(key)
    if place is None:
        return None
    module, _, name = place.partition(":")
    warnings.warn(f"{key} is a former name: it is {place.replace(':', '.')} now", DeprecationWarning, stacklevel=4)
    return getattr(importlib.import_module(module), name)
