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
    **{f"relay.testing.{name}": f"zoo.{name}" for name in NETWORKS},
}
"""Modules that are another one, with all that is below it: both names are one object."""

_EXPRESSIONS = """Call, Constant, Expr, ExprWithOp, GlobalVar, If, Let, RefCreate, RefRead, RefWrite, TempExpr,
    Tuple, TupleGetItem, TupleWrapper, Var, Expr as RelayExpr"""
_TYPES = """AnyDim as Any, FuncType, GlobalTypeVar, IncompleteType, RefType, ShapeVar, TensorType, TupleType, Type,
    TypeCall, TypeData, TypeKind, TypeVar, is_dynamic, scalar_type"""
_MATCHING = """Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard"""
_IR = """Attrs, BaseFunc, DictAttrs, Expr as RelayExpr, FuncType, GlobalTypeVar, GlobalVar, GlobalVarSupply, IRModule,
    IncompleteType, NameSupply, Op, RefType as RelayRefType, TensorType, TupleType, Type, TypeCall, TypeData, TypeKind,
    TypeVar, assert_structural_equal, get_first_structural_mismatch, structural_equal, structural_hash"""
_DEVICES = "Device, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu"
_INSTRUMENTS = {"transform.engine.instrument": "PassInstrument, PassTimingInstrument, pass_instrument"}
_MANAGER = {
    "transform.engine.context": "PassContext",
    "transform": "ModulePass, Pass, PassInfo, Sequential, module_pass",
    "transform.engine.print_ir": "PrintIR",
}
_REGISTERED = {
    "transform.layouts.registered": "register_alter_op_layout, register_convert_op_layout",
    "transform.legalize": "register_legalize",
}
_PATTERN_TABLES = {"compat.patterns": "get_pattern_table, register_pattern_table"}
_EXECUTOR = {"runtime.graph_executor": "GraphModule, create"}
_FOLDERS = {"runtime.utils": "TempDirectory, tempdir"}
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
    "relay.analysis": (
        "facts about programs",
        {"analysis": "*", "transform.fusion.extract_fused_functions": "extract_fused_functions"},
    ),
    "relay.backend": ("executors and runtimes as options of `relay.build`", {"codegen.options": "Executor, Runtime"}),
    "relay.build_module": (
        "building, and binding parameters",
        {
            "codegen.build": "build, optimize",
            "codegen.executors": "create_executor",
            "transform.bind": "bind, bind_params_by_name",
            "transform.engine.context": "PassContext, build_config",
        },
    ),
    "relay.dataflow_pattern": ("matching and rewriting parts of graphs", {"transform.pattern": "*"}),
    "relay.expr": ("expressions", {"ir.expr": _EXPRESSIONS, "ir.leaves": "const, var", "transform.bind": "bind"}),
    "relay.expr_functor": (
        "visitors and mutators of expressions",
        {"ir.functor": "ExprFunctor, ExprMutator, ExprVisitor"},
    ),
    "relay.frontend": ("other formats", {"frontend": "from_onnx, from_pytorch, to_onnx"}),
    "relay.function": ("functions", {"ir.expr": "BaseFunc, Function, FunctionWithFields"}),
    "relay.image": ("operators on images", {"op.image": "*"}),
    "relay.loops": ("while loops as recursive closures", {"ir.loops": "while_loop"}),
    "relay.nn": ("operators of neural networks", {"op.nn": "*"}),
    "relay.op": (
        "operators, and the table of them",
        {
            "op": "*, dyn, image, nn, qnn, random, vision, vm",
            "op.base": "OpPattern",
            "op.vm": "annotation, memory",
            "ir.op": "Op",
            **_REGISTERED,
        },
    ),
    "relay.op.algorithm": ("sorting", _OPERATORS),
    "relay.op.contrib": ("tables of patterns", _PATTERN_TABLES),
    "relay.op.contrib.register": ("tables of patterns", _PATTERN_TABLES),
    "relay.op.image": ("operators on images", {"op.image": "*"}),
    "relay.op.nn": ("operators of neural networks", {"op.nn": "*"}),
    "relay.op.op": ("the table of operators", {"op": "*", "op.base": "OpPattern", "ir.op": "Op", **_REGISTERED}),
    "relay.op.random": ("random numbers", {"op.random": "*"}),
    "relay.op.reduce": ("reductions", _OPERATORS),
    "relay.op.tensor": ("elementwise operators", _OPERATORS),
    "relay.op.transform": ("operators that move elements", _OPERATORS),
    "relay.op.vision": ("operators of detectors", {"op.vision": "*"}),
    "relay.param_dict": ("parameters as bytes", {"runtime.params": "load_param_dict, save_param_dict"}),
    "relay.prelude": ("the standard library of data types and functions", {"text.prelude": "Prelude"}),
    "relay.qnn": ("the quantized dialect", {"op.qnn": "*"}),
    "relay.qnn.op": ("quantized operators", {"op.qnn": "*"}),
    "relay.qnn.transform": (
        "passes that lower the quantized dialect",
        {"transform.quantized.qnn": "QnnCanonicalizeOps as CanonicalizeOps, QnnLegalize as Legalize"},
    ),
    "relay.random": ("random numbers", {"op.random": "*"}),
    "relay.scope_builder": ("building programs statement by statement", {"ir.scope_builder": "ScopeBuilder"}),
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
    "relay.transform": ("passes", {"transform": "*"}),
    "relay.transform.flexible_shape": (
        "programs for several sizes of an axis",
        {
            "transform.flexible_shape_dispatch": """FlexibleShapeDispatch, flexible_dispatch, override_shape,
                specialize_body"""
        },
    ),
    "relay.ty": ("types", {"ir.types": _TYPES}),
    "relay.type_functor": ("visitors and mutators of types", {"ir.functor": "TypeFunctor, TypeMutator, TypeVisitor"}),
    "relay.vision": ("operators of detectors", {"op.vision": "*"}),
    "relay.vm": (
        "compiling for the virtual machine",
        {"codegen.vm": "VMExecutable as Executable, VirtualMachine, compile"},
    ),
    "contrib": ("what lived in tvm.contrib", {}),
    "contrib.graph_executor": ("running a compiled graph", _EXECUTOR),
    "contrib.utils": ("temporary folders", _FOLDERS),
    "tvm": (
        "the module tree that `import tvm` finds",
        {
            "compat.registry": "get_global_func, register_func, VERSION as __version__",
            "ir": "IRModule",
            "runtime.device": _DEVICES,
            "runtime.ndarray": "NDArray",
            "support.errors": "RelayError as TVMError",
        },
    ),
    "tvm.contrib": ("executors, the visualizer, temporary folders", {}),
    "tvm.contrib.debugger": ("running node by node", {}),
    "tvm.contrib.debugger.debug_executor": (
        "running node by node",
        {"runtime.debug_executor": "GraphModuleDebug, create"},
    ),
    "tvm.contrib.graph_executor": ("running a compiled graph", _EXECUTOR),
    "tvm.contrib.graph_runtime": ("the old name of graph_executor", _EXECUTOR),
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
        {"ir": _IR, "compat.registry": "make_node, register_op_attr", "support.source": "SourceName, Span"},
    ),
    "tvm.ir.instrument": ("hooks around passes", _INSTRUMENTS),
    "tvm.ir.module": ("modules", {"ir": "IRModule"}),
    "tvm.ir.op": ("operators", {"ir": "Op", "compat.registry": "register_op_attr"}),
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
            "compat.registry": "String, convert",
            "compat.target": "enabled",
            "runtime.container": "ADT",
            "runtime.device": "Device, cpu, cuda, device, gpu",
            "runtime.module": "load_module",
            "runtime.ndarray": "NDArray, array",
            "runtime.params": "load_param_dict, save_param_dict",
        },
    ),
    "tvm.runtime.container": ("values that are not tensors", {"runtime.container": "*"}),
    "tvm.runtime.ndarray": ("arrays", {"runtime.ndarray": "*", "runtime.device": "Device, device"}),
    "tvm.runtime.profiling": ("reports of measured time", {"runtime.profiling": "*"}),
    "tvm.runtime.vm": ("the virtual machine", {"codegen.vm": "VMExecutable as Executable, VirtualMachine"}),
    "tvm.target": ("what to compile for", {"compat.target": "Target"}),
    "tvm.te": ("symbolic sizes", {"ir.types": "SizeVar as size_var, SizeVar as var"}),
    "tvm.testing": ("helpers of test-suites", {"compat.testing": "*"}),
    "tvm.tir": ("dimensions", {"ir.types": "AnyDim as Any, SizeVar, SizeVar as Var", "compat.registry": "IntImm"}),
    "tvm.transform": ("the pass manager", _MANAGER),
}
"""Modules made of names of others: what each is for, and from which of relaylab its names are (`*`: all public)."""
