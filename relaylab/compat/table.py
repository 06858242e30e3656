"""Where every public name comes from that programs reach under `relaylab.relay`, `relaylab.contrib` and `tvm`.

`finder` reads these two tables. A key is a module below `relaylab`: `relay.nn` is `relaylab.relay.nn`, and
`tvm.nd` is what programs import as `tvm.nd` after `install_as_tvm()`.
"""

from __future__ import annotations

from collections.abc import Mapping

NETWORKS = (
    "darknet", "dcgan", "densenet", "dqn", "inception_v3", "init", "layers", "lstm", "mlp", "mobilenet", "nat",
    "resnet", "resnet_3d", "squeezenet", "synthetic", "temp_op_attr", "vgg", "yolo_detection",
)  # fmt: skip
"""The modules of `zoo` that `relay.testing` has."""

SAME: Mapping[str, str] = {
    "tvm.relay": "relay",
    "contrib.relay_viz": "viz.relay_viz",
    "contrib.registry": "compat.registry",
    "contrib.target": "compat.target",
    "contrib.testing": "compat.testing",
    "contrib.patterns": "compat.patterns",
    "contrib.gradients": "study.gradients",
    "relay.quantize": "quantize",
    **{f"relay.testing.{name}": f"zoo.{name}" for name in NETWORKS},
    # packages of TVM whose names are all in one module below them
    "relay.analysis.analysis": "relay.analysis",
    "relay.op.annotation.annotation": "relay.op.annotation",
    "relay.op.memory.memory": "relay.op.memory",
    "relay.op.nn.nn": "relay.op.nn",
    "relay.qnn.op.qnn": "relay.qnn.op",
}
"""Modules that are another one, with all that is below it: both names are one object."""

_EXPRESSIONS = """Call, Constant, Expr, ExprWithOp, GlobalVar, If, Let, RefCreate, RefRead, RefWrite, TempExpr,
    Tuple, TupleGetItem, TupleWrapper, Var, Expr as RelayExpr"""
_TYPES = """AnyDim as Any, FuncType, GlobalTypeVar, IncompleteType, RefType, ShapeVar, TensorType, TupleType, Type,
    TypeCall, TypeData, TypeKind, TypeVar, is_dynamic, scalar_type"""
_MATCHING = """Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard"""
_IR = """Attrs, BaseFunc, DictAttrs, Expr as RelayExpr, FuncType, GlobalTypeVar, GlobalVar, GlobalVarSupply, IRModule,
    IncompleteType, NameSupply, Op, RefType as RelayRefType, TensorType, TupleType, Type, TypeCall, TypeData, TypeKind,
    TypeVar, assert_structural_equal, structural_equal, structural_hash"""
_BY_DATA = "transform.sparse.by_data"
_SPARSE = "SparseAnalysisResult, process_{}_params as process_params"
_DEVICES = "Device, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu"
_INSTRUMENTS = {
    "transform.engine.instrument": """PassInstrument, PassTimingInstrument, PrintAfterAll, PrintBeforeAll,
        pass_instrument"""
}
_MANAGER = {
    "transform.engine.context": "PassContext",
    "transform": "ModulePass, Pass, PassInfo, Sequential, module_pass",
    "transform.engine.print_ir": "PrintIR",
}
_REGISTERED = {
    "transform.layouts.registered": "register_alter_op_layout, register_convert_op_layout",
    "transform.legalize": "register_legalize",
    "op.custom": "*",
    "compat.refused": "OpImplementation, OpSpecialization, OpStrategy",
}
_FACTS = {
    "analysis": "*",
    "compat.patterns": "get_calibration_data",
    "transform.fusion.extract_fused_functions": "extract_fused_functions",
}
_NN = {
    "op.nn": "*",
    "compat.refused": """contrib_conv2d_gemm_weight_transform, contrib_conv2d_gemm_without_weight_transform,
        contrib_conv2d_winograd_nnpack_weight_transform, contrib_conv2d_winograd_weight_transform,
        contrib_conv2d_winograd_without_weight_transform, contrib_conv3d_winograd_weight_transform,
        contrib_conv3d_winograd_without_weight_transform""",
}
_QNN = "register_qnn_canonicalize, register_qnn_legalize"
_PATTERN_TABLES = {"compat.patterns": "get_pattern_table, register_pattern_table"}
_REGISTRY = {
    "compat.registry": """get_global_func, list_global_func_names, lookup as _get_global_func, register_func,
        register_object, remove_global_func"""
}
_EXECUTOR = {"runtime.graph_executor": "GraphModule, create, get_device"}
_FOLDERS = {
    "runtime.utils": "DirectoryCreatedPastAtExit, FileLock, TempDirectory, filelock, is_source_path, tempdir, which"
}
_VISUALIZER = {"viz.relay_viz": "*"}
_OPERATORS = {"op": "*"}

FACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "relay": (
        "the Relay language",  # what `relay/__init__.py` does not import itself, since it loads the compiler
        {
            "codegen.build": "build, optimize",
            "codegen.executors": "create_executor",
            "transform.bind": "bind",
            "transform.engine.context": "build_config",
            "runtime.params": "load_param_dict, save_param_dict",
        },
    ),
    "relay.adt": ("algebraic data types", {"ir.adt": _MATCHING, "ir.types": "TypeData"}),
    "relay.analysis": ("facts about programs", _FACTS),
    "relay.analysis.annotated_regions": ("regions for external compilers", {"analysis.regions": "AnnotatedRegionSet"}),
    "relay.analysis.call_graph": ("who calls whom", {"analysis": "CallGraph"}),
    "relay.analysis.count_layers": ("layers along a path", {"analysis.counts": "LayerCounter, count_layers"}),
    "relay.analysis.feature": ("features of the language", {"analysis": "Feature"}),
    "relay.backend": ("executors and runtimes as options of `relay.build`", {"codegen.options": "Executor, Runtime"}),
    "relay.backend.aot": ("networks as one function", {"compat.refused": "AOTLowerMain"}),
    "relay.backend.executor": ("executors as options", {"codegen.options": "Executor"}),
    "relay.backend.executor_factory": (
        "compiled networks",
        {
            "runtime.module": "GraphExecutorFactoryModule, GraphExecutorFactoryModule as ExecutorFactoryModule",
            "runtime.aot_executor": "AOTExecutorFactoryModule",
        },
    ),
    "relay.backend.graph_executor_codegen": ("graphs as JSON", {"compat.build_module": "GraphExecutorCodegen"}),
    "relay.backend.interpreter": (
        "evaluating programs",
        {
            "codegen.executors": "CompiledExecutor as Executor",
            "interp": "Interpreter",
            "interp.values": "ConstructorValue, RefValue",
        },
    ),
    "relay.backend.name_transforms": (
        "names as C writes them",
        {
            "compat.backend": """prefix_generated_name, prefix_name, sanitize_name, to_c_constant_style,
                to_c_function_style, to_c_variable_style"""
        },
    ),
    "relay.backend.runtime": ("runtimes as options", {"codegen.options": "Runtime"}),
    "relay.backend.utils": ("names of compiled modules", {"compat.backend": "CallType, mangle_module_name"}),
    "relay.backend.vm": (
        "compiling for the virtual machine",
        {"codegen.vm": "VMCompiler, compile", "codegen.executors": "VMRunner as VMExecutor"},
    ),
    "relay.base": ("nodes", {"ir.expr": "Var as Id", "ir.node": "Node as RelayNode"}),
    "relay.build_module": (
        "building, and binding parameters",
        {
            "codegen.build": "build, optimize",
            "codegen.executors": "AotRunner as AotExecutor, GraphRunner as GraphExecutor, create_executor",
            "transform.bind": "bind, bind_params_by_name",
            "transform.engine.context": "PassContext, build_config",
            "compat.build_module": "BuildModule",
        },
    ),
    "relay.analysis.sparse_conv2d": ("sparse weights", {"analysis.sparse_weights": _SPARSE.format("conv2d")}),
    "relay.analysis.sparse_dense": ("sparse weights", {"analysis.sparse_weights": _SPARSE.format("dense")}),
    "relay.data_dep_optimization": ("rewriting by what parameters hold", {}),
    "relay.data_dep_optimization.bsr_conv2d": ("sparse weights", {_BY_DATA: "bsr_conv2d as convert"}),
    "relay.data_dep_optimization.bsr_dense": ("sparse weights", {_BY_DATA: "bsr_dense as convert"}),
    "relay.data_dep_optimization.simplify_fc_transpose": ("weights", {_BY_DATA: "simplify_fc_transpose as convert"}),
    "relay.dataflow_pattern": (
        "matching and rewriting parts of graphs",
        {"transform.pattern": "*", "compat.registry": "register_object as register_df_node"},
    ),
    "relay.expr": (
        "expressions",
        {
            "ir.expr": _EXPRESSIONS,
            "ir.leaves": "const, var",
            "transform.bind": "bind",
            "compat.records": "StaticMemoryPlan, StorageInfo",
        },
    ),
    "relay.expr_functor": (
        "visitors and mutators of expressions",
        {"ir.functor": "ExprFunctor, ExprMutator, ExprVisitor"},
    ),
    "relay.frontend": ("other formats", {"frontend": "from_onnx, from_pytorch, to_onnx"}),
    "relay.frontend.pytorch": ("models of PyTorch", {"frontend": "from_pytorch"}),
    "relay.frontend.common": ("what importers share", {"frontend.common": "*"}),
    "relay.function": ("functions", {"ir.expr": "BaseFunc, Function, FunctionWithFields"}),
    "relay.ir_pass": (
        "passes and facts as TVM 0.5 had them",
        {"analysis": "*", "ir": "structural_equal as alpha_equal", "zoo.helpers": "run_infer_type as infer_type"},
    ),
    "relay.image": ("operators on images", {"op.image": "*"}),
    "relay.loops": ("while loops as recursive closures", {"ir.loops": "while_loop"}),
    "relay.nn": ("operators of neural networks", {"op.nn": "*"}),
    "relay.op.annotation": ("operators that tell passes something", {"op.vm.annotation": "*, function_on_device"}),
    "relay.op.memory": ("explicit allocation", {"op.vm.memory": "*"}),
    "relay.op.nn.utils": ("padding", {"op.window": "get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d"}),
    "relay.op.op_attrs": ("the records of attributes", {"compat.op_attrs": "*"}),
    "relay.op": (
        "operators, and the table of them",
        {
            "op": "*, dyn, image, nn, qnn, random, vision, vm",
            "op.base": "OpPattern",
            "op.vm": "annotation, memory",
            "ir.op": "Op",
            "ir.leaves": "const",
            **_REGISTERED,
        },
    ),
    "relay.op.algorithm": ("sorting", _OPERATORS),
    "relay.op.contrib": ("tables of patterns", _PATTERN_TABLES),
    "relay.op.contrib.register": ("tables of patterns", _PATTERN_TABLES),
    "relay.op.image": ("operators on images", {"op.image": "*"}),
    "relay.op.nn": ("operators of neural networks", _NN),
    "relay.op.op": ("the table of operators", {"op": "*", "op.base": "OpPattern", "ir.op": "Op", **_REGISTERED}),
    "relay.op.random": ("random numbers", {"op.random": "*"}),
    "relay.op.reduce": ("reductions", _OPERATORS),
    "relay.op.tensor": ("elementwise operators", {**_OPERATORS, "compat.refused": "copy_shape_func"}),
    "relay.op.transform": ("operators that move elements", _OPERATORS),
    "relay.op.vision": ("operators of detectors", {"op.vision": "*"}),
    "relay.param_dict": ("parameters as bytes", {"runtime.params": "load_param_dict, save_param_dict"}),
    "relay.prelude": ("the standard library of data types and functions", {"text.prelude": "*"}),
    "relay.qnn": ("the quantized dialect", {"op.qnn": "*"}),
    "relay.qnn.op": (
        "quantized operators",
        {"op.qnn": "*", "op.qnn.scale": "RequantizeConfig", "transform.legalize": _QNN},
    ),
    "relay.qnn.op.canonicalizations": (
        "functions of quantized numbers as tables",
        {"transform.quantized.lookup": "create_integer_lookup_op, create_integer_lookup_table, run_const_expr"},
    ),
    "relay.qnn.op.op": ("legalization of quantized operators", {"transform.legalize": _QNN}),
    "relay.qnn.transform": (
        "passes that lower the quantized dialect",
        {"transform.quantized.qnn": "QnnCanonicalizeOps as CanonicalizeOps, QnnLegalize as Legalize"},
    ),
    "relay.random": ("random numbers", {"op.random": "*"}),
    "relay.scope_builder": (
        "building programs statement by statement",
        {"ir.scope_builder": "ScopeBuilder, WithScope"},
    ),
    "relay.testing": (
        "the networks, and helpers of tests",
        {
            "study.gradients": "check_grad",
            "text.prelude": "Prelude",
            "zoo.helpers": "count_ops, rand, run_infer_type, run_opt_pass",
            "zoo.init": "create_workload",
            "zoo.nat": "count, make_nat_expr, make_nat_value",
            "zoo.temp_op_attr": "TempOpAttr",
        },
    ),
    "relay.testing.py_converter": ("Python", {"codegen.python_source": "PythonConverter, run_as_python, to_python"}),
    "relay.transform": ("passes", {"transform": "*"}),
    "relay.transform.fake_quantization_to_integer": (
        "rules of the pass of that name",
        {
            "op.custom": "register_fake_quantization_to_integer",
            "transform": "FakeQuantizationToInteger",
            "transform.quantized.affine": "*",
        },
    ),
    "relay.transform.mixed_precision": (
        "categories of operators for half precision",
        {
            "op.custom": "register_mixed_precision_conversion",
            "transform.to_mixed_precision": """generic_always_op, generic_follow_op, generic_never_op,
                get_generic_out_dtypes, register_func_to_op_list""",
        },
    ),
    "relay.transform.transform": ("passes", {"transform": "*", "compat.refused": "CollagePartition"}),
    "relay.transform.flexible_shape": ("any sizes", {"transform.flexible_shape_dispatch": "*"}),
    "relay.ty": ("types", {"ir.types": _TYPES}),
    "relay.type_functor": ("visitors and mutators of types", {"ir.functor": "TypeFunctor, TypeMutator, TypeVisitor"}),
    "relay.vision": ("operators of detectors", {"op.vision": "*"}),
    "relay.vm": (
        "compiling for the virtual machine",
        {"codegen.vm": "VMCompiler, VMExecutable as Executable, VirtualMachine, compile"},
    ),
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
    "tvm._ffi.registry": ("the registry of functions", _REGISTRY),
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
    "tvm.contrib.relay_viz": ("drawing programs", _VISUALIZER),
    "tvm.contrib.relay_viz.dot": ("drawing programs as pictures", _VISUALIZER),
    "tvm.contrib.relay_viz.interface": ("what is drawn of a program", _VISUALIZER),
    "tvm.contrib.relay_viz.terminal": ("drawing programs as text", _VISUALIZER),
    "tvm.contrib.utils": ("temporary folders", _FOLDERS),
    "tvm.error": (
        "exceptions",
        {
            "support.errors": """DiagnosticError, RelayError as InternalError, RelayError as TVMError,
                RelayAttributeError as OpAttributeInvalid, RelayAttributeError as OpNotImplemented"""
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
    "tvm.parser": ("Relay text", {"text": "fromtext, parse, parse_expr"}),
    "tvm.runtime": (
        "arrays, devices, loading what was compiled",
        {
            "compat.object_path": "ObjectPath, ObjectPathPair",
            "compat.values": "Object, ObjectGeneric, PackedFunc, const, convert, convert_to_object",
            "compat.target": "enabled",
            "runtime.benchmark": "BenchmarkResult",
            "runtime.container": "ADT, ShapeTuple, String",
            "runtime.device": "Device, cpu, cuda, device, gpu",
            "runtime.module": "Module, load_module",
            "runtime.threads": "num_threads",
            "runtime.ndarray": "NDArray, array",
            "runtime.params": "load_param_dict, save_param_dict",
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
    "tvm.target": ("what to compile for", {"compat.target": "Target, VirtualDevice", "compat.foreign": "*"}),
    "tvm.te": ("symbolic sizes", {"ir.types": "SizeVar as size_var, SizeVar as var"}),
    "tvm.testing": ("helpers of test-suites", {"compat.testing": "*"}),
    "tvm.testing.plugin": ("fixtures of test-suites", {"compat.fixtures": "*"}),
    "tvm.testing.utils": ("helpers of test-suites", {"compat.testing": "*"}),
    "tvm.tir": (
        "dimensions",
        {
            "ir.types": "AnyDim as Any, SizeVar, SizeVar as Var",
            "compat.registry": "IntImm",
            "compat.values": "FloatImm, PrimExpr, StringImm, const",
        },
    ),
    "tvm.tir.expr": (
        "numbers in shapes",
        {
            "ir.types": "AnyDim as Any, SizeVar, SizeVar as Var",
            "compat.registry": "IntImm",
            "compat.values": "FloatImm, PrimExpr, StringImm",
        },
    ),
    "tvm.transform": ("the pass manager", _MANAGER),
}
"""Modules made of names of others: what each is for, and from which of relaylab its names are (`*`: all public)."""
