"""Models as ONNX graphs, for programs that are not Python. The graph encodes a row and applies the model, like ``Model``.

Inputs: ``numeric``, double, one column for each numeric column in the schema's order, and for each categorical column a text
input of its name with one column. Outputs: ``margin``, and ``probability`` of the positive class (logistic loss) or
``prediction`` (regression). Where the command would refuse a cell or drop a row, the outputs are NaN: a graph cannot refuse.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._frames import text_of
from ._optional import need

if TYPE_CHECKING:
    from ._model import Model

OPSET = 17
ML_OPSET = 3


class _Builder:
    """Nodes and constants, with names that do not repeat."""

    def __init__(self) -> None:
        self.onnx = need("onnx", "to_onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def node(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        output = name or f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output


def export(model: Model, path: str | Path | None) -> Any:
    """The model as a ``ModelProto``."""
    build = _Builder()
    helper, double = build.onnx.helper, build.onnx.TensorProto.DOUBLE
    schema = model.schema.to_dict()
    weights = np.array(list(model.coefficients.values()))
    numeric = [c for c in schema["columns"] if c["kind"] == "numeric"]
    categorical = [c for c in schema["columns"] if c["kind"] == "categorical"]
    inputs, outputs, terms, absent = [], [], [], []
    squared = build.constant([[0.0]])
    if numeric:
        inputs.append(helper.make_tensor_value_info("numeric", double, [None, len(numeric)]))
        unit, missing = _numeric(build, numeric, schema)
        terms.append(build.node("MatMul", unit, build.constant(weights[: len(numeric)].reshape(-1, 1))))
        squared = build.node("ReduceSum", build.node("Mul", unit, unit), build.constant([1], np.int64), keepdims=1)
        absent.append(missing)
    start = len(numeric)
    other = schema.get("on_unknown_category") == "other"
    for column in categorical:
        inputs.append(helper.make_tensor_value_info(column["name"], build.onnx.TensorProto.STRING, [None, 1]))
        width = len(column["values"]) + other
        terms.append(_categorical(build, column, weights[start : start + width], schema))
        start += width
    n_hot = len(categorical) + bool(schema["intercept"])
    if schema["intercept"]:
        terms.append(build.constant([[weights[-1]]]))
    dense = terms[0]
    for term in terms[1:]:
        dense = build.node("Add", dense, term)
    # The scale that keeps an encoded row within the norm bound, rounded as in the encoder.
    norm = build.node("Sqrt", build.node("Add", squared, build.constant([[float(n_hot)]])))
    slack = 1.0 - (len(numeric) + n_hot + 4) * np.finfo(np.float64).eps
    bound = schema["norm_bound"]
    shrunk = build.node("Mul", build.node("Div", build.constant([[bound]]), norm), build.constant([[slack]]))
    is_long = build.node("Greater", norm, build.constant([[bound * slack]]))
    scale = build.node("Where", is_long, shrunk, build.constant([[1.0]]))
    margin = build.node("Mul", scale, dense)
    for missing in absent:
        margin = build.node("Where", missing, build.constant([[np.nan]]), margin)
    build.node("Identity", margin, name="margin")
    outputs.append(helper.make_tensor_value_info("margin", double, [None, 1]))
    if model.loss == "logistic":
        # Written out: not every runtime has a sigmoid of doubles.
        grown = build.node("Exp", build.node("Neg", margin))
        build.node(
            "Div", build.constant([[1.0]]), build.node("Add", build.constant([[1.0]]), grown), name="probability"
        )
        outputs.append(helper.make_tensor_value_info("probability", double, [None, 1]))
    elif model.is_count:
        # The expected count. What is not more than the cap is kept, so that NaN is.
        cap = build.constant([[float(schema["label"]["upper"])]])
        grown = build.node("Exp", margin)
        build.node("Where", build.node("Greater", grown, cap), cap, grown, name="prediction")
        outputs.append(helper.make_tensor_value_info("prediction", double, [None, 1]))
    elif not model.is_classifier:
        label = schema["label"]
        grown = build.node("Mul", margin, build.constant([[label["upper"] - label["lower"]]]))
        build.node("Add", build.constant([[label["lower"]]]), grown, name="prediction")
        outputs.append(helper.make_tensor_value_info("prediction", double, [None, 1]))
    graph = helper.make_graph(build.nodes, "padmm", inputs, outputs, build.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="padmm")
    if model.is_own:
        # The graph has no place for the model's mark, so it says in words what it is.
        proto.doc_string = "A site's own model, computed from its records without noise: never to be sent."
    build.onnx.checker.check_model(proto)
    if path is not None:
        build.onnx.save(proto, str(path))
    return proto


def _numbers(texts: list[Any]) -> list[float]:
    found = []
    for text in texts:
        try:
            found.append(float(text))
        except ValueError:
            continue
    return found


def _numeric(build: _Builder, columns: list[dict[str, Any]], schema: dict[str, Any]) -> tuple[str, str]:
    """Numbers in units of their bounds, and whether a row has a cell that is missing or not allowed."""
    filled = []
    for j, column in enumerate(columns):
        cell = build.node("Gather", "numeric", build.constant([j], np.int64), axis=1)
        nan = build.constant([[np.nan]])
        fill = build.constant([[float(column["fill"])]]) if "fill" in column else nan
        for number in _numbers([*schema["missing_values"], *column.get("missing_values", [])]):
            cell = build.node("Where", build.node("Equal", cell, build.constant([[number]])), nan, cell)
        if schema["missing"] == "fill":
            cell = build.node("Where", build.node("IsNaN", cell), fill, cell)
        for number in _numbers(column.get("fill_values", [])):
            # Before the rule for missing cells in the encoder; a number is in one of the lists, so the order is the same.
            same = build.node(
                "Equal",
                build.node("Gather", "numeric", build.constant([j], np.int64), axis=1),
                build.constant([[number]]),
            )
            cell = build.node("Where", same, fill, cell)
        filled.append(cell)
    values = build.node("Concat", *filled, axis=1)
    lower = np.array([[c["lower"] for c in columns]], dtype=np.float64)
    upper = np.array([[c["upper"] for c in columns]], dtype=np.float64)
    refused = build.node("IsNaN", values)
    if schema["on_out_of_range"] == "error":
        outside = build.node(
            "Or",
            build.node("Less", values, build.constant(lower)),
            build.node("Greater", values, build.constant(upper)),
        )
        refused = build.node("Or", refused, outside)
    counted = build.node("Cast", refused, to=build.onnx.TensorProto.DOUBLE)
    total = build.node("ReduceSum", counted, build.constant([1], np.int64), keepdims=1)
    missing = build.node("Greater", total, build.constant([[0.0]]))
    # NaN would pass through or not, by the runtime: it is taken out here and put back at the end.
    values = build.node("Where", build.node("IsNaN", values), build.constant(lower), values)
    unit = build.node("Div", build.node("Sub", values, build.constant(lower)), build.constant(upper - lower))
    unit = build.node("Max", unit, build.constant([[0.0]]))
    return build.node("Min", unit, build.constant([[1.0]])), missing


def _categorical(build: _Builder, column: dict[str, Any], weights: np.ndarray, schema: dict[str, Any]) -> str:
    """The weight of the cell's category; NaN where there is none."""
    values = [text_of(v) for v in column["values"]]
    fill = values.index(text_of(column["fill"])) if "fill" in column else len(weights)
    places = {text: j for j, text in enumerate(values)}
    # A missing cell is dropped (NaN) or filled; one that is not known is another category, or NaN.
    gaps = [*schema["missing_values"], *(text_of(v) for v in column.get("missing_values", []))]
    places.update({text: fill if schema["missing"] == "fill" else len(weights) for text in gaps})
    places.update({text_of(v): fill for v in column.get("fill_values", [])})
    # Programs that hold whole numbers with gaps write 1 as 1.0: the encoder takes both.
    whole = {f"{text}.0": code for text, code in places.items() if text.lstrip("-").isdigit()}
    places = {**whole, **places}
    unknown = len(values) if schema.get("on_unknown_category") == "other" else len(weights)
    code = build.node(
        "LabelEncoder",
        column["name"],
        keys_strings=list(places),
        values_int64s=list(places.values()),
        default_int64=unknown,
        domain="ai.onnx.ml",
    )
    return build.node("Gather", build.constant([*weights, np.nan]), code, axis=0)
