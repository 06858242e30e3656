"""The graph of a network as JSON, in the format that graph executors read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from relaylab.codegen.network.names import numbered
from relaylab.codegen.network.network import Network, NetworkTensor, Operation, flatten, of_whole_batch

CPU = 1


def graph_json(network: Network, storage: Mapping[NetworkTensor, int], parts: int = 1) -> str:
    """The text, on one line; `storage` numbers the memory of every tensor.

    All tensors but constants are those of one of `parts` of a batch.
    """
    names: Counter[str] = Counter()
    entries = [_entry(node, names) for node in network.nodes]
    tensors = [tensor for node in network.nodes for tensor in _outputs(node)]
    return json.dumps(
        {
            "nodes": entries,
            "arg_nodes": [k for k, node in enumerate(network.nodes) if isinstance(node, NetworkTensor)],
            "heads": [_reference(tensor) for tensor in network.outputs],
            "attrs": {
                "dltype": ["list_str", [t.dtype for t in tensors]],
                "device_index": ["list_int", [CPU] * len(tensors)],
                "storage_id": ["list_int", [storage[t] for t in tensors]],
                "shape": [
                    "list_shape",
                    [list(of_whole_batch(t.shape, 1 if t.origin == "constant" else parts)) for t in tensors],
                ],
            },
            "node_row_ptr": list(accumulate((len(_outputs(node)) for node in network.nodes), initial=0)),
        },
        separators=(",", ":"),
    )


def _outputs(node: NetworkTensor | Operation) -> tuple[NetworkTensor, ...]:
    return (node,) if isinstance(node, NetworkTensor) else node.outputs


def _reference(tensor: NetworkTensor) -> list[int]:
    return [tensor.node, tensor.output, 0]


def _entry(node: NetworkTensor | Operation, names: Counter[str]) -> dict[str, Any]:
    if isinstance(node, NetworkTensor):
        return {"op": "null", "name": node.name, "inputs": []}
    inputs = [_reference(tensor) for tensor in flatten(node.inputs)]
    return {
        "op": "tvm_op",
        "name": numbered(node.name, names),
        "attrs": {
            "num_outputs": str(len(node.outputs)),
            "num_inputs": str(len(inputs)),
            "flatten_data": "0",
            "func_name": "__nop" if node.reshape_only else node.name,
            **_extra(node),
        },
        "inputs": inputs,
    }


def _extra(node: Operation) -> dict[str, str]:
    found = {key: node.function.attr(key) for key in ("hash", "src_layout", "dst_layout")}
    return {key: str(value) for key, value in found.items() if value is not None}
