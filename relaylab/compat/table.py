"""Where every public name comes from that programs reach under `relaylab.relay`, `relaylab.contrib` and `tvm`.

`finder` reads these two tables. A key is a module below `relaylab`: `relay.nn` is `relaylab.relay.nn`, and
`tvm.nd` is what programs import as `tvm.nd` after `install_as_tvm()`.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.compat.tvm_table import OUTSIDE

NETWORKS = (
    "attention", "darknet", "dcgan", "densenet", "dqn", "inception_v3", "init", "layers", "lstm", "mlp", "mobilenet",
    "nat", "resnet", "resnet_3d", "squeezenet", "synthetic", "temp_op_attr", "unet", "vgg", "yolo_detection",
)  # fmt: skip
"""The modules of `zoo` that `relay.testing` has."""

SAME: Mapping[str, str] = {
    "tvm.relay": "relay",
    "contrib.relay_viz": "viz.relay_viz",
    "contrib.registry": "compat.registry",
    "contrib.target": "compat.target",
    "contrib.testing": "compat.testing.helpers",
    "contrib.patterns": "compat.patterns",
    "contrib.gradients": "study.gradients",
    "relay.quantize": "quantize",
    **{f"relay.testing.{name}": f"zoo.{name}" for name in NETWORKS},
    # packages of TVM whose names are all in one module below them
    "relay.analysis.analysis": "relay.analysis",
    "relay.op.annotation.annotation": "relay.op.annotation",
    "relay.op.image.image": "relay.op.image",
    "relay.op.memory.memory": "relay.op.memory",
    "relay.op.nn.nn": "relay.op.nn",
    **{f"relay.op.vision.{name}": "relay.op.vision" for name in ("multibox", "nms", "rcnn", "yolo")},
    "relay.op.random.kernel": "relay.op.random",
    "relay.qnn.op.qnn": "relay.qnn.op",
}
"""Modules that are another one, with all that is below it: both names are one object."""

_EXPRESSIONS = """Call, Constant, Expr, ExprWithOp, GlobalVar, If, Let, RefCreate, RefRead, RefWrite, TempExpr,
    Tuple, TupleGetItem, TupleWrapper, Var, Expr as RelayExpr"""
_TYPES = """AnyDim as Any, FuncType, GlobalTypeVar, IncompleteType, RefType, ShapeVar, TensorType, TupleType, Type,
    TypeCall, TypeData, TypeKind, TypeVar, is_dynamic, scalar_type"""
_MATCHING = """Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard"""
_SPARSE = "SparseAnalysisResult, process_{}_params as process_params"
_SEARCHED = "dense_weights as _search_dense_op_weight"  # TVM's tutorials of pruned networks ask it
_BY_DATA = "transform.sparse.by_data"
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
_QNN = "register_qnn_canonicalize, register_qnn_legalize"
_PATTERN_TABLES = {"compat.patterns": "get_pattern_table, register_pattern_table"}
_OPERATORS = {"op": "*"}

FACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "relay": (
        "the Relay language",  # what `relay/__init__.py` does not import itself, since it loads the compiler
        {
            "codegen.build": "build, optimize",
            "codegen.executors": "create_executor",
            "compat.later": "astext, pretty_print, scatter_elements",
            "compat.records": "TypeConstraint, TypeRelation",
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
    "relay.base": (
        "nodes",
        {
            "ir.expr": "Var as Id",
            "ir.node": "Node as RelayNode",
            "compat.later": "astext, pretty_print",
            "support.source": "SourceName, Span",
        },
    ),
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
    "relay.analysis.sparse_dense": (
        "sparse weights",
        {"analysis.sparse_weights": f"{_SPARSE.format('dense')}, {_SEARCHED}"},
    ),
    "relay.data_dep_optimization": ("rewriting by what parameters hold", {}),
    "relay.data_dep_optimization.bsr_conv2d": (
        "sparse weights",
        {_BY_DATA: "bsr_conv2d as convert, bsr_conv2d_of_constants as convert2"},
    ),
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
    "relay.frontend.onnx": ("models of ONNX", {"frontend": "from_onnx"}),
    "relay.frontend.pytorch": ("models of PyTorch", {"frontend": "from_pytorch"}),
    "relay.frontend.common": ("what importers share", {"frontend.common": "*"}),
    "relay.function": ("functions", {"ir.expr": "BaseFunc, Function, FunctionWithFields"}),
    "relay.ir_pass": (
        "passes and facts as TVM 0.5 had them",
        {"analysis": "*", "ir": "structural_equal as alpha_equal", "zoo.helpers": "run_infer_type as infer_type"},
    ),
    "relay.image": ("operators on images", {"op.image": "*"}),
    "relay.loops": ("while loops as recursive closures", {"ir.scope_builder": "while_loop"}),
    "relay.nn": ("operators of neural networks", {"op.nn": "*"}),
    "relay.op.annotation": ("operators that tell passes something", {"op.vm.annotation": "*, function_on_device"}),
    "relay.op.memory": ("explicit allocation", {"op.vm.memory": "*"}),
    "relay.op.nn.utils": ("padding", {"op.window": "get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d"}),
    "relay.op.op_attrs": ("the records of attributes", {"compat.op_attrs": "*"}),
    "relay.op": (
        "operators, and the table of them",
        {
            "op": "*, dyn, image, nn, qnn, random, vision, vm",
            "compat.later": "scatter_elements",
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
    "relay.op.dyn": ("operators whose shapes are tensors", {"op.dyn": "*"}),
    "relay.op.image": ("operators on images", {"op.image": "*"}),
    "relay.op.nn": ("operators of neural networks", {"op.nn": "*"}),
    "relay.op.op": ("the table of operators", {"op": "*", "op.base": "OpPattern", "ir.op": "Op", **_REGISTERED}),
    "relay.op.random": ("random numbers", {"op.random": "*"}),
    "relay.op.reduce": ("reductions", _OPERATORS),
    "relay.op.tensor": ("elementwise operators", {**_OPERATORS, "compat.refused": "copy_shape_func"}),
    "relay.op.transform": ("operators that move elements", {**_OPERATORS, "compat.later": "scatter_elements"}),
    "relay.op.vision": ("operators of detectors", {"op.vision": "*"}),
    "relay.param_dict": ("parameters as bytes", {"runtime.params": "load_param_dict, save_param_dict"}),
    "relay.parser": ("Relay text", {"text": "fromtext, parse, parse_expr"}),
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
        {"transform.quantized.qnn": "QnnCanonicalizeOps as CanonicalizeOps, adapt_to_target as Legalize"},
    ),
    "relay.random": ("random numbers", {"op.random": "*"}),
    "relay.scope_builder": (
        "building programs statement by statement",
        {"ir.scope_builder": "ScopeBuilder, WithScope"},
    ),
    "relay.testing": (
        "the networks, and helpers of tests",
        {
            "codegen.python_source": "run_as_python, to_python",
            "study.gradients": "check_grad",
            "text.prelude": "Prelude",
            "transform": "gradient",
            "zoo.helpers": "count_ops, rand, run_infer_type, run_opt_pass",
            "zoo.init": "create_workload",
            "zoo.nat": "count, make_nat_expr, make_nat_value",
            "zoo.temp_op_attr": "TempOpAttr",
        },
    ),
    "relay.testing.byoc": ("parts for another compiler", {"compat.testing.byoc": "CcompilerAnnotator"}),
    "relay.testing.py_converter": ("Python", {"codegen.python_source": "PythonConverter, run_as_python, to_python"}),
    "relay.transform": ("passes", {"transform": "*", "transform.recast": "recast"}),
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
    "relay.transform.recast": ("other data types for some operators", {"transform.recast": "recast"}),
    "relay.transform.transform": ("passes", {"transform": "*", "compat.refused": "CollagePartition"}),
    "relay.transform.flexible_shape": ("any sizes", {"transform.flexible_shape_dispatch": "*"}),
    "relay.ty": ("types", {"ir.types": _TYPES, "compat.records": "TypeConstraint, TypeRelation"}),
    "relay.type_functor": ("visitors and mutators of types", {"ir.functor": "TypeFunctor, TypeMutator, TypeVisitor"}),
    "relay.vision": ("operators of detectors", {"op.vision": "*"}),
    "relay.vm": (
        "compiling for the virtual machine",
        {"codegen.vm": "VMCompiler, VMExecutable as Executable, VirtualMachine, compile"},
    ),
    **OUTSIDE,
}
"""Modules made of names of others: what each is for, and from which of relaylab its names are (`*`: all public)."""
