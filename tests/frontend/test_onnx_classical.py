"""Models that are no networks (ai.onnx.ml): trees, linear models, support vectors, what prepares features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_tools import evaluated, helper, imported, model, numpy_helper, onnx, run

from relaylab import relay
from relaylab.support.errors import RelayError

ML = "ai.onnx.ml"
RNG = np.random.default_rng(7)
BRANCHES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def ml_model(op_type: str, inputs: dict[str, np.ndarray], outputs: int = 1, version: int = 3, **attributes: Any) -> Any:
    """A model of one node of ai.onnx.ml, with an open number of rows."""
    node = helper.make_node(op_type, list(inputs), [f"out{k}" for k in range(outputs)], domain=ML, **attributes)
    shapes = {n: ("rows", *a.shape[1:]) for n, a in inputs.items() if n != "places"}
    proto = model([node], inputs, [f"out{k}" for k in range(outputs)], shapes=shapes, domain=ML)
    proto.opset_import[1].version = version
    return proto


def held(op_type: str, inputs: dict[str, np.ndarray], outputs: int = 1, version: int = 3, **attributes: Any) -> None:
    """Interpreted and compiled it gives what ONNX's own evaluator gives."""
    proto = ml_model(op_type, inputs, outputs, version, **attributes)
    mod = imported(proto)
    expected = evaluated(proto, inputs)
    for executor in ("debug", "vm"):
        for got, want in zip(run(mod, inputs, executor), expected, strict=True):
            assert got.shape == np.shape(want) and got.dtype == np.asarray(want).dtype
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


class Trees:
    """Random trees over three features as the attributes of a node, and as what walks down them step by step."""

    def __init__(self, count: int, targets: int, branches: tuple[str, ...] = ("LEQ",), several: bool = False):
        self.rng = np.random.default_rng(count * 10 + targets)
        self.nodes: dict[str, list[Any]] = {}
        self.leaves: dict[str, list[Any]] = {}
        self.tree: dict[tuple[int, int], tuple] = {}
        for t in range(count):
            todo, following = [(0, 0)], 1
            while todo:
                n, depth = todo.pop()
                leaf = depth > 1 and (depth > 4 or self.rng.random() < 0.4)
                feature, value = int(self.rng.integers(3)), float(self.rng.integers(-2, 3)) / 2
                mode = str(self.rng.choice(branches))
                yes, no = following, following + 1
                if not leaf:
                    following += 2
                    todo += [(yes, depth + 1), (no, depth + 1)]
                targets_of = [k for k in range(targets) if self.rng.random() < 0.7] if several else [t % targets]
                weights = [float(np.float32(self.rng.random())) for _ in targets_of]
                self.tree[t, n] = (mode, feature, value, yes, no, {}) if not leaf else (
                    "", 0, 0.0, 0, 0, dict(zip(targets_of, weights)))  # fmt: skip
                row = {"treeids": t, "nodeids": n, "modes": "LEAF" if leaf else f"BRANCH_{mode}", "featureids": feature,
                       "values": value, "truenodeids": yes * (not leaf), "falsenodeids": no * (not leaf)}  # fmt: skip
                for name, entry in row.items():
                    self.nodes.setdefault(name, []).append(entry)
                for k, w in zip(targets_of, weights) if leaf else ():
                    for name, entry in {"treeids": t, "nodeids": n, "ids": k, "weights": w}.items():
                        self.leaves.setdefault(name, []).append(entry)

    def attributes(self, kind: str) -> dict[str, Any]:
        return {f"nodes_{k}": v for k, v in self.nodes.items()} | {f"{kind}_{k}": v for k, v in self.leaves.items()}

    def walked(self, x: np.ndarray) -> list[list[dict[int, float]]]:
        """For every row, what the leaf of every tree gives to which target."""
        asks = {"LEQ": np.less_equal, "LT": np.less, "GTE": np.greater_equal, "GT": np.greater, "EQ": np.equal,
                "NEQ": np.not_equal}  # fmt: skip
        found = []
        for row in x:
            found.append([])
            for t in sorted({t for t, _ in self.tree}):
                at = (t, 0)
                while self.tree[at][0]:
                    mode, feature, value, yes, no, _ = self.tree[at]
                    at = (t, yes if asks[mode](row[feature], np.float32(value)) else no)
                found[-1].append(self.tree[at][5])
        return found


def data(rows: int = 9, features: int = 3) -> np.ndarray:
    """Data that is often equal to what trees ask for."""
    return (np.random.default_rng(rows).integers(-4, 5, (rows, features)) / 4).astype("float32")


@pytest.mark.parametrize("branches", [(b,) for b in BRANCHES] + [BRANCHES])
def test_trees_ask_in_every_way(branches):
    trees, x = Trees(4, 1, branches), data()
    got = run(imported(ml_model("TreeEnsembleRegressor", {"x": x}, **trees.attributes("target"))), {"x": x}, "vm")[0]
    np.testing.assert_allclose(got[:, 0], [sum(leaf[0] for leaf in row) for row in trees.walked(x)], rtol=1e-5)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("targets", "several"), [(1, False), (3, False), (3, True)])
def test_leaves_of_trees_are_put_together(aggregate, targets, several):
    trees, x = Trees(7, targets, several=several), data()
    how = {"SUM": sum, "AVERAGE": lambda v: sum(v) / 7, "MIN": min, "MAX": max}[aggregate]
    walked = [[[leaf[k] for leaf in row if k in leaf] for k in range(targets)] for row in trees.walked(x)]
    want = [[how(v) if v else 0.0 for v in row] for row in walked]
    attributes = trees.attributes("target") | {"n_targets": targets, "aggregate_function": aggregate}
    base = [0.5, -1.0, 2.0][:targets]
    for extra, plus in ({}, 0.0), ({"base_values": base}, base):
        mod = imported(ml_model("TreeEnsembleRegressor", {"x": x}, **attributes, **extra))
        for executor in ("debug", "vm"):
            np.testing.assert_allclose(run(mod, {"x": x}, executor)[0], np.array(want) + plus, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize(("classes", "several"), [(3, False), (4, True), (2, True)])
def test_trees_choose_classes(post, classes, several):
    trees, x = Trees(5, classes, several=several), data()
    labels = [7, 3, 5, 9][:classes]
    held("TreeEnsembleClassifier", {"x": x}, 2, classlabels_int64s=labels, post_transform=post,
         **trees.attributes("class"))  # fmt: skip


def test_trees_with_scores_of_one_of_two_classes():
    """Probabilities if no weight is negative, else margins: as onnxruntime has it, and the libraries that write it."""
    trees, x = Trees(3, 1), data()
    attributes = trees.attributes("class")
    scores = np.array([sum(leaf[0] for leaf in row) for row in trees.walked(x)])
    proto = ml_model("TreeEnsembleClassifier", {"x": x}, 2, classlabels_int64s=[4, 8], **attributes)
    label, both = run(imported(proto), {"x": x})
    np.testing.assert_allclose(both, np.stack([1 - scores, scores], 1), rtol=1e-5)
    np.testing.assert_array_equal(label, np.where(scores > 0.5, 8, 4))
    attributes["class_weights"] = [w - 0.7 for w in attributes["class_weights"]]
    scores -= 0.7 * 3
    proto = ml_model("TreeEnsembleClassifier", {"x": x}, 2, classlabels_int64s=[4, 8], post_transform="LOGISTIC",
                     base_values=[0.25], **attributes)  # fmt: skip
    label, both = run(imported(proto), {"x": x})
    positive = 1 / (1 + np.exp(-(scores + 0.25)))
    np.testing.assert_allclose(both, np.stack([1 - positive, positive], 1), rtol=1e-4)
    np.testing.assert_array_equal(label, np.where(scores + 0.25 > 0, 8, 4))


def test_trees_of_one_array_of_nodes_with_members():
    tensor = lambda values, dtype: numpy_helper.from_array(np.array(values, dtype))
    x = np.array([[1.2, 3.4, -0.12], [1.66, 4.14, 1.77], [4.0, 9.0, 0.0], [2.0, 1.0, 5.0]], "float32")
    held("TreeEnsemble", {"x": x}, version=5, n_targets=2, membership_values=tensor([1.2, 4.0, np.nan], "float32"),
         nodes_missing_value_tracks_true=None, nodes_featureids=[0, 2, 1], leaf_targetids=[0, 1, 0, 1],
         leaf_weights=tensor([5.23, 12.12, -12.23, 7.21], "float32"), tree_roots=[0], nodes_falseleafs=[0, 1, 1],
         nodes_trueleafs=[0, 1, 1], nodes_splits=tensor([0.0, 3.14, 1.2], "float32"),
         nodes_modes=tensor([6, 0, 2], "uint8"), nodes_truenodeids=[1, 0, 2], nodes_falsenodeids=[2, 1, 3],
         aggregate_function=1, post_transform=0)  # fmt: skip


def test_trees_say_where_nan_goes():
    trees = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "nodes_featureids": [0, 0, 0], "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
             "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2],
             "target_ids": [0, 0], "target_weights": [1.0, 2.0]}  # fmt: skip
    x = np.array([[-1.0], [1.0], [np.nan]], "float32")
    for tracked, there in (1, 1.0), (0, 2.0):
        proto = ml_model("TreeEnsembleRegressor", {"x": x}, nodes_missing_value_tracks_true=[tracked, 0, 0], **trees)
        np.testing.assert_array_equal(run(imported(proto), {"x": x}, "vm")[0][:, 0], [1.0, 2.0, there])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"nodes_truenodeids": [0, 0, 0]}, "comes back|not there"),
        ({"nodes_truenodeids": [9, 0, 0]}, "not there"),
        ({"nodes_featureids": [5, 0, 0]}, "feature beyond"),
        ({"nodes_values": [0.0]}, "do not fit"),
        ({"nodes_modes": ["BRANCH_ODD", "LEAF", "LEAF"]}, "do not fit"),
        ({"nodes_nodeids": [0, -1, 2]}, "numbers from 0"),
        ({"target_ids": [0, 4]}, "target that is not there"),
        ({"target_nodeids": [1, 7]}, "target that is not there"),
        ({"n_targets": 1 << 40}, "too many"),
        ({"base_values": [1.0, 2.0]}, "2 base values for 1 targets"),
    ],
)
def test_broken_trees_are_refused(changed, words):
    trees = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "nodes_featureids": [0, 0, 0], "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
             "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2],
             "target_ids": [0, 0], "target_weights": [1.0, 2.0]}  # fmt: skip
    with pytest.raises(RelayError, match=words):
        imported(ml_model("TreeEnsembleRegressor", {"x": data(2, 1)}, **(trees | changed)))


def normal(*shape: int) -> list[float]:
    return [float(v) for v in RNG.normal(size=shape).astype("float32").reshape(-1)]


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_linear_models(rows, post):
    x = RNG.normal(size=(5, 4)).astype("float32")
    held("LinearRegressor", {"x": x}, coefficients=normal(rows, 4), intercepts=normal(rows), targets=rows)
    if rows > 1:
        held("LinearClassifier", {"x": x}, 2, coefficients=normal(rows, 4), intercepts=normal(rows),
             classlabels_ints=[5, 2, 9][:rows], post_transform=post)  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    x = RNG.normal(size=(5, 3)).astype("float32")
    shared = {"kernel_type": kernel, "kernel_params": [0.5, 0.25, 3.0]}
    held("SVMRegressor", {"x": x}, coefficients=normal(6), rho=normal(1), n_supports=6, support_vectors=normal(6, 3),
         **shared)  # fmt: skip
    for classes in (2, 3, 4):
        counts = [3, 1, 2, 2][:classes]
        total, pairs = sum(counts), classes * (classes - 1) // 2
        given = {"coefficients": normal(classes - 1, total), "support_vectors": normal(total, 3), "rho": normal(pairs),
                 "vectors_per_class": counts, "classlabels_ints": [4, 1, 6, 2][:classes], **shared}  # fmt: skip
        held("SVMClassifier", {"x": x}, 2, **given)


def coupled(each: np.ndarray) -> np.ndarray:
    """The probabilities of classes for which the squares of what pairs of them miss are least (Wu, Lin, Weng, 2004)."""
    count = len(each)
    system, right = np.ones((count + 1, count + 1)), np.zeros(count + 1)
    system[count, count], right[count] = 0, 1
    system[:count, :count] = -each.T * each
    np.fill_diagonal(system[:count, :count], [(np.delete(each[:, k], k) ** 2).sum() for k in range(count)])
    return np.linalg.solve(system, right)[:count]


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_support_vectors_with_probabilities(classes):
    """LIBSVM stops when nothing is off by more than 0.005; onnxruntime gives what it gives."""
    x = RNG.normal(size=(6, 3)).astype("float32")
    total, pairs = 2 * classes, classes * (classes - 1) // 2
    given = {"coefficients": normal(classes - 1, total), "support_vectors": normal(total, 3), "rho": normal(pairs),
             "vectors_per_class": [2] * classes, "classlabels_ints": list(range(classes)), "kernel_type": "RBF",
             "kernel_params": [0.5, 0.0, 3.0]}  # fmt: skip
    slope, shift = normal(pairs), normal(pairs)
    plain = imported(ml_model("SVMClassifier", {"x": x}, 2, **given))
    margins = run(plain, {"x": x})[1][:, -pairs:]
    proto = ml_model("SVMClassifier", {"x": x}, 2, prob_a=slope, prob_b=shift, **given)
    label, got = run(imported(proto), {"x": x}, "vm")
    for row, margin in zip(got, margins):
        each = np.zeros((classes, classes))
        above = np.triu_indices(classes, 1)
        each[above] = 1 / (1 + np.exp(margin * slope + shift))
        each.T[above] = 1 - each[above]
        np.testing.assert_allclose(row, coupled(each), atol=0.01)
    np.testing.assert_array_equal(label, run(plain, {"x": x})[0])  # of the votes, not of the probabilities
    ort = pytest.importorskip("onnxruntime")
    want = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(got, want[1], atol=1e-5)


def test_what_prepares_features():
    x = RNG.normal(size=(5, 3)).astype("float32")
    whole = RNG.integers(-2, 4, (5, 3))
    held("Scaler", {"x": x}, offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, -1.0])
    held("Binarizer", {"x": x}, threshold=0.25)
    held("OneHotEncoder", {"x": whole}, cats_int64s=[3, 0, -1], zeros=1)
    held("ArrayFeatureExtractor", {"x": x, "places": np.array([[2, 0]])})
    held("FeatureVectorizer", {"x": x, "y": x[:, :2]}, inputdimensions=[2, 3])
    held("LabelEncoder", {"x": whole}, version=2, keys_int64s=[2, -1, 0], values_floats=[1.5, 2.5, -3.0],
         default_float=9.0)  # fmt: skip
    holes = np.where(whole > 2, np.nan, whole).astype("float32")
    held("Imputer", {"x": holes}, imputed_value_floats=[4.0, 5.0, 6.0], replaced_value_float=float("nan"))
    held("Imputer", {"x": whole}, imputed_value_int64s=[8], replaced_value_int64=1)
    for norm in ("L1", "L2"):
        held("Normalizer", {"x": x}, norm=norm)


def test_nan_is_a_key_like_others():
    x = np.array([[1.0, np.nan, 2.0]], "float32")
    proto = ml_model("LabelEncoder", {"x": x}, version=2, keys_floats=[2.0, float("nan")], values_int64s=[3, 7])
    np.testing.assert_array_equal(run(imported(proto), {"x": x}, "vm")[0], [[-1, 7, 3]])


def text_model(op_type: str) -> Any:
    """A classifier whose classes have names, chosen by their places."""
    names = helper.make_tensor("names", onnx.TensorProto.STRING, [3], [b"ash", b"birch", b"cedar"])
    nodes = [
        helper.make_node("ArgMax", ["x"], ["place"], axis=1, keepdims=0),
        helper.make_node(op_type, ["names", "place"], ["label"], domain=ML if op_type != "Gather" else ""),
    ]
    proto = model(nodes, {"x": data()}, ["label"], domain=ML)
    proto.graph.initializer.append(names)
    return proto


def test_labels_that_are_texts_are_their_places():
    x = data()
    got = run(imported(text_model("ArrayFeatureExtractor")), {"x": x})[0]
    np.testing.assert_array_equal(got, x.argmax(1)[None])
    trees = Trees(5, 3)
    attributes = trees.attributes("class") | {"classlabels_strings": ["ash", "birch", "cedar"]}
    label, scores = run(imported(ml_model("TreeEnsembleClassifier", {"x": x}, 2, **attributes)), {"x": x})
    np.testing.assert_array_equal(label, scores.argmax(1))


def test_other_texts_are_refused():
    with pytest.raises(RelayError, match="not texts"):
        imported(text_model("Gather"))
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=["a"], values_int64s=[1])
    proto = model([node], {"x": data()}, ["y"], domain=ML)
    with pytest.raises(RelayError, match="tensors of texts"):
        proto.opset_import[1].version = 2
        imported(proto)
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(RelayError, match="encode texts as numbers"):
        imported(proto)


def test_a_forest_is_one_native_form():
    """Scaled, classified, its map left out: for any number of rows no operator is run on its own."""
    trees, x = Trees(20, 3), data(30)
    nodes = [
        helper.make_node("Scaler", ["x"], ["scaled"], domain=ML, offset=[0.0], scale=[1.0]),
        helper.make_node("TreeEnsembleClassifier", ["scaled"], ["label", "scores"], domain=ML,
                         classlabels_int64s=[0, 1, 2], **trees.attributes("class")),
        helper.make_node("ZipMap", ["scores"], ["map"], domain=ML, classlabels_int64s=[0, 1, 2]),
    ]  # fmt: skip
    proto = model(nodes, {"x": x}, ["label", "map"], shapes={"x": ("rows", 3)}, domain=ML)
    exe = relay.vm.compile(imported(proto), "llvm")
    machine = relay.vm.VirtualMachine(exe)
    assert exe.specializations.form() is not None
    for rows in (x, x[:4]):
        label, scores = (v.numpy() for v in machine.invoke("main", rows))
        want = [[sum(leaf.get(k, 0) for leaf in row) for k in range(3)] for row in trees.walked(rows)]
        np.testing.assert_allclose(scores, want, rtol=1e-5)
        np.testing.assert_array_equal(label, np.argmax(want, 1))


def test_models_of_scikit_learn():
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.datasets import load_iris
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    x, y = load_iris(return_X_y=True)
    x = x.astype("float32")
    for estimator in (RandomForestClassifier(20), GradientBoostingClassifier(n_estimators=20), SVC()):
        pipeline = make_pipeline(StandardScaler(), estimator).fit(x, y)
        label = run(imported(skl2onnx.to_onnx(pipeline, x[:1])), {"X": x}, "vm")[0]
        assert (label == pipeline.predict(x)).mean() > 0.99
