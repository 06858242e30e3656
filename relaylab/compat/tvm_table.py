"""Where the names of the modules `tvm.…` come from, and of `relaylab.contrib`: the other half of `table`."""

from __future__ import annotations

from collections.abc import Mapping

_IR = """Attrs, BaseFunc, DictAttrs, Expr as RelayExpr, FuncType, GlobalTypeVar, GlobalVar, GlobalVarSupply, IRModule,
    IncompleteType, NameSupply, Op, RefType as RelayRefType, TensorType, TupleType, Type, TypeCall, TypeData, TypeKind,
    TypeVar, assert_structural_equal, structural_equal, structural_hash"""
_DEVICES = "Device, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu"
_INSTRUMENTS = {
    "transform.engine.instrument": """DumpIR, PassInstrument, PassPrintingInstrument, PassTimingInstrument,
        PrintAfterAll, PrintBeforeAll, pass_instrument"""
}
_MANAGER = {
    "transform.engine.context": "PassContext",
    "transform": "ModulePass, Pass, PassInfo, Sequential, module_pass",
    "transform.engine.print_ir": "PrintIR",
}
_REGISTRY = {
    "compat.registry": """get_global_func, list_global_func_names, lookup as _get_global_func, register_func,
        register_object, remove_global_func"""
}
_EXECUTOR = {"runtime.graph_executor": "GraphModule, create, get_device"}
_FOLDERS = {
    "runtime.utils": "DirectoryCreatedPastAtExit, FileLock, TempDirectory, filelock, is_source_path, tempdir, which"
}
_VISUALIZER = {"viz.relay_viz": "*"}

OUTSIDE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "contrib": ("what lived in tvm.contrib", {}),
    "contrib.graph_executor": ("running a compiled graph", _EXECUTOR),
    "contrib.utils": ("temporary folders", _FOLDERS),
    "tvm": (
        "the module tree that `import tvm` finds",
        {
            "compat.registry": "get_global_func, register_func, register_object, VERSION as __version__",
            "compat.values": "DataType",
            "ir": "IRModule",
            "runtime.device": _DEVICES,
            "runtime.ndarray": "NDArray",
            "support.errors": "RelayError as TVMError",
        },
    ),
    "tvm._ffi": ("the registry of functions", _REGISTRY),
    "tvm._ffi.base": ("exceptions", {"support.errors": "RelayError as TVMError"}),
    "tvm._ffi.registry": ("the registry of functions", _REGISTRY),
    "tvm._ffi.runtime_ctypes": ("data types and devices", {"compat.values": "DataType", "runtime.device": "Device"}),
    "tvm.container": ("lists and maps", {"compat.values": "Array, Map"}),
    "tvm.contrib": ("executors, the visualizer, temporary folders", {}),
    "tvm.contrib.debugger": ("running node by node", {}),
    "tvm.contrib.debugger.debug_executor": (
        "running node by node",
        {"runtime.debug_executor": "GraphModuleDebug, create"},
    ),
    "tvm.contrib.download": ("files that programs would download", {"compat.download": "*"}),
    "tvm.contrib.download_testdata": ("files that programs would download", {"compat.download": "*"}),
    "tvm.contrib.graph_executor": ("running a compiled graph", _EXECUTOR),
    "tvm.contrib.pickle_memoize": ("reference data of tests", {"compat.later": "memoize"}),
    "tvm.contrib.relay_viz": ("drawing programs", _VISUALIZER),
    "tvm.contrib.relay_viz.dot": ("drawing programs as pictures", _VISUALIZER),
    "tvm.contrib.relay_viz.interface": ("what is drawn of a program", _VISUALIZER),
    "tvm.contrib.relay_viz.terminal": ("drawing programs as text", _VISUALIZER),
    "tvm.contrib.utils": ("temporary folders", _FOLDERS),
    "tvm.error": (
        "exceptions",
        {
            "support.errors": """DiagnosticError, RelayError as InternalError, RelayError as OpError,
                RelayError as TVMError, RelayAttributeError as OpAttributeInvalid,
                RelayAttributeError as OpAttributeRequired, RelayAttributeError as OpAttributeUnImplemented,
                RelayAttributeError as OpNotImplemented"""
        },
    ),
    "tvm.instrument": ("hooks around passes", _INSTRUMENTS),
    "tvm.ir": (
        "modules, types, structural equality",
        {
            "ir": _IR,
            "compat.object_path": "get_first_structural_mismatch",
            "compat.records": "CallingConv, PointerType, PrimType, TypeConstraint, TypeRelation",
            "compat.registry": "EnvFunc, make_node, register_op_attr",
            "compat.refused": "register_intrin_lowering",
            "compat.values": "Array, BaseExpr, Map, PrimExpr, Range",
            "ir.adt": "Constructor",
            "ir.node": "Node",
            "support.source": "SourceName, Span",
            "text.node_json": "load_json, save_json",
            "transform.quantized.affine": "AffineType, TensorAffineType, TupleAffineType",
        },
    ),
    "tvm.ir.adt": ("algebraic data types", {"ir": "TypeData", "ir.adt": "Constructor"}),
    "tvm.ir.affine_type": (
        "what integers stand for",
        {"transform.quantized.affine": "AffineType, TensorAffineType, TupleAffineType"},
    ),
    "tvm.ir.attrs": ("attributes", {"ir": "Attrs, DictAttrs", "compat.registry": "make_node"}),
    "tvm.ir.base": (
        "nodes, their text and their equality",
        {
            "ir": "assert_structural_equal, structural_equal, structural_hash",
            "compat.object_path": "get_first_structural_mismatch",
            "compat.registry": "EnvFunc",
            "ir.node": "Node",
            "support.source": "SourceName, Span",
            "text.node_json": "load_json, save_json",
        },
    ),
    "tvm.ir.container": ("lists and maps", {"compat.values": "Array, Map"}),
    "tvm.ir.diagnostics": ("errors of programs", {"compat.diagnostics": "*"}),
    "tvm.ir.expr": (
        "expressions",
        {"ir": "Expr as RelayExpr, GlobalVar", "compat.values": "BaseExpr, PrimExpr, Range"},
    ),
    "tvm.ir.function": ("functions", {"ir": "BaseFunc", "compat.records": "CallingConv"}),
    "tvm.ir.json_compact": ("older JSON of programs", {"text.node_json_versions": "*"}),
    "tvm.ir.memory_pools": (
        "memories as options",
        {
            "compat.records": """ConstantMemoryPools, ConstantPoolInfo, PoolInfo, PoolInfoProperties,
                WorkspaceMemoryPools, WorkspacePoolInfo"""
        },
    ),
    "tvm.ir.tensor_type": ("types of tensors", {"ir": "TensorType"}),
    "tvm.ir.type": (
        "types",
        {
            "ir": """FuncType, GlobalTypeVar, IncompleteType, RefType as RelayRefType, TupleType, Type, TypeKind,
                TypeVar""",
            "compat.records": "PointerType, PrimType, TypeConstraint",
        },
    ),
    "tvm.ir.type_relation": ("relations between types", {"ir": "TypeCall", "compat.records": "TypeRelation"}),
    "tvm.ir.instrument": ("hooks around passes", _INSTRUMENTS),
    "tvm.ir.module": ("modules", {"ir": "IRModule"}),
    "tvm.ir.op": (
        "operators",
        {"ir": "Op", "compat.registry": "register_op_attr", "compat.refused": "register_intrin_lowering"},
    ),
    "tvm.ir.supply": ("fresh names", {"ir.names": "GlobalVarSupply, NameSupply"}),
    "tvm.ir.transform": ("the pass manager", _MANAGER),
    "tvm.nd": (
        "arrays and devices",
        {
            "runtime.device": "Device, cpu, cuda, device, gpu, opencl",
            "runtime.ndarray": "NDArray, array, empty, from_dlpack",
        },
    ),
    "tvm.parser": ("Relay text", {"text": "SpanCheck, fromtext, parse, parse_expr"}),
    "tvm.runtime": (
        "arrays, devices, loading what was compiled",
        {
            "compat.object_path": "ObjectPath, ObjectPathPair",
            "compat.values": "DataType, Object, ObjectGeneric, PackedFunc, const, convert, convert_to_object",
            "compat.target": "enabled",
            "runtime.benchmark": "BenchmarkResult",
            "runtime.container": "ADT, ShapeTuple, String",
            "runtime.device": "Device, cpu, cuda, device, gpu",
            "runtime.module": "Module, load_module",
            "runtime.threads": "num_threads",
            "runtime.ndarray": "NDArray, array",
            "runtime.params": "load_param_dict, save_param_dict",
            "runtime.profiling": "Report",
        },
    ),
    "tvm.runtime.container": ("values that are not tensors", {"runtime.container": "*"}),
    "tvm.runtime.executor.aot_executor": ("running networks", {"runtime.aot_executor": "AotModule"}),
    "tvm.runtime.executor": ("running networks", {"runtime.aot_executor": "AotModule"}),
    "tvm.runtime.module": (
        "what was compiled",
        {
            "compat.refused": "load_static_library, system_lib",
            "compat.target": "enabled",
            "runtime.benchmark": "BenchmarkResult",
            "runtime.module": "Module, load_module",
            "runtime.threads": "num_threads",
        },
    ),
    "tvm.runtime.ndarray": ("arrays", {"runtime.ndarray": "*, numpyasarray", "runtime.device": f"{_DEVICES}"}),
    "tvm.runtime.object": ("objects", {"compat.values": "Object"}),
    "tvm.runtime.object_generic": (
        "Python values as objects",
        {"compat.values": "ObjectGeneric, const, convert, convert_to_object"},
    ),
    "tvm.runtime.object_path": ("ways from a program to a part of it", {"compat.object_path": "*"}),
    "tvm.runtime.packed_func": ("functions", {"compat.values": "PackedFunc"}),
    "tvm.runtime.params": ("parameters in files", {"runtime.params": "load_param_dict, save_param_dict"}),
    "tvm.runtime.profiler_vm": (
        "time in the virtual machine",
        {"codegen.vm_profiler": "VirtualMachineProfiler, enabled"},
    ),
    "tvm.runtime.profiling": (
        "reports of measured time",
        {"runtime.profiling": "*", "runtime.function_profile": "DeviceWrapper, MetricCollector, profile_function"},
    ),
    "tvm.runtime.vm": (
        "the virtual machine",
        {"codegen.vm": "VMExecutable as Executable, VirtualMachine", "compat.values": "convert_arguments as convert"},
    ),
    "tvm.target": (
        "what to compile for",
        {"compat.target": "Target, VirtualDevice, make_compilation_config", "compat.foreign": "*"},
    ),
    "tvm.target.compilation_config": ("what to compile for", {"compat.target": "make_compilation_config"}),
    "tvm.target.target": ("what to compile for", {"compat.target": "Target", "compat.foreign": "*"}),
    "tvm.target.virtual_device": ("where values live", {"compat.target": "VirtualDevice"}),
    "tvm.te": (
        "symbolic sizes",
        {
            "ir.dims": "SizeVar as size_var, SizeVar as var",
            "op.shapes": "floordiv, floordiv as indexdiv, floormod, floormod as indexmod, rounded as round",
        },
    ),
    "tvm.testing": ("helpers of test-suites", {"compat.testing.helpers": "*"}),
    "tvm.testing.plugin": ("fixtures of test-suites", {"compat.testing.fixtures": "*"}),
    "tvm.testing.utils": ("helpers of test-suites", {"compat.testing.helpers": "*"}),
    "tvm.tir": (
        "dimensions",
        {
            "ir.dims": "AnyDim as Any, SizeVar, SizeVar as Var",
            "op.shapes": "floordiv, floordiv as indexdiv, floormod, floormod as indexmod, rounded as round",
            "compat.registry": "IntImm",
            "compat.values": "FloatImm, PrimExpr, StringImm, const",
        },
    ),
    "tvm.tir.expr": (
        "numbers in shapes",
        {
            "ir.dims": "AnyDim as Any, SizeVar, SizeVar as Var, floordiv, floordiv as indexdiv",
            "compat.registry": "IntImm",
            "compat.values": "FloatImm, PrimExpr, StringImm",
        },
    ),
    "tvm.transform": ("the pass manager", _MANAGER),
}
"""The modules that are not below `relay`, as `table.FACES` has them."""
