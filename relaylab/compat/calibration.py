"""What partitioned functions are given, as arrays of the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylab.analysis import get_calibration_data as calibration_data
from relaylab.ir import GlobalVar, IRModule
from relaylab.runtime.ndarray import NDArray, array


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """The values that each partitioned function of a module gets and gives for these inputs, as NDArrays."""
    found = calibration_data(mod, data)
    return {gv: {kind: list(map(array, values)) for kind, values in parts.items()} for gv, parts in found.items()}
