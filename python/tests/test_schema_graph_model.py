"""Schemas, graphs, plans, models and figures."""

import json
import pickle

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import padmm

HEART = {"dataset": "heart", "rounds": 5, "reference": False}


def heart_model():
    return padmm.simulate(**HEART).model


def test_a_schema_survives_dict_toml_and_pickle(tmp_path):
    schema = padmm.datasets.load_heart_disease().schema
    assert padmm.Schema.from_dict(schema.to_dict()) == schema
    assert padmm.Schema.from_toml(schema.to_toml()) == schema
    (tmp_path / "s.toml").write_text(schema.to_toml())
    assert padmm.Schema.from_toml(tmp_path / "s.toml") == padmm.Schema.from_toml(str(tmp_path / "s.toml")) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema and hash(schema) == hash(pickle.loads(pickle.dumps(schema)))
    assert schema.site == "hospital" and schema.label["column"] == "num" and "age" in schema.columns


def test_a_draft_reads_dtypes_and_no_record():
    frame = pd.DataFrame(
        {
            "age": pd.array([30, None], dtype="Int64"),
            "ward": pd.Categorical(["a", "b"], categories=["a", "b", "c"]),
            "note": ["x", "y"],
            "ill": pd.array([True, None], dtype="boolean"),
        }
    )
    draft = padmm.Schema.draft(frame, label="ill")
    assert draft.missing == ["age: lower and upper", "note: values"]
    with pytest.raises(padmm.SchemaError, match="column `age` is numeric and needs both `lower` and `upper`"):
        draft.check()
    schema = draft.set("age", lower=0, upper=120).set("note", values=["x", "y", "z"]).check()
    assert schema.feature_names == ["age", "ward=a", "ward=b", "ward=c", "note=x", "note=y", "note=z", "(intercept)"]
    # The values of another frame make no difference: only dtypes are read.
    other = frame.assign(age=pd.array([99, 1], dtype="Int64"), note=["p", "q"])
    assert padmm.Schema.draft(other, label="ill") == padmm.Schema.draft(frame, label="ill")
    polars = pl.DataFrame({"age": [1], "ward": pl.Series(["a"], dtype=pl.Enum(["a", "b"])), "y": [0.5]})
    assert padmm.Schema.draft(polars, label="y").missing == ["age: lower and upper", "y: lower and upper"]
    with pytest.raises(ValueError, match="no column `nope`"):
        draft.set("nope", lower=0)


def test_nullable_and_categorical_columns_of_both_libraries_mean_the_same():
    schema = padmm.Schema.from_dict(
        {
            "intercept": True,
            "missing": "fill",
            "on_unknown_category": "other",
            "label": {"column": "y", "kind": "binary", "positive": ["yes"], "negative": ["no"]},
            "columns": [
                {"name": "n", "kind": "numeric", "lower": 0, "upper": 10, "fill": 5},
                {"name": "c", "kind": "categorical", "values": [1, 2, 3], "fill": 2},
                {"name": "b", "kind": "categorical", "values": ["false", "true"], "fill": "false"},
                {"name": "f", "kind": "numeric", "lower": 0, "upper": 1, "fill": 0},
            ],
        }
    )
    columns = {
        "n": [1, None, 11, 4],
        "c": [1, 2, None, 9],
        "b": [True, None, False, True],
        "f": [True, False, None, True],
    }
    y = ["yes", "no", "yes", "no"]
    pandas = pd.DataFrame(
        {
            "n": pd.array(columns["n"], dtype="Int64"),
            "c": pd.Categorical(columns["c"]),
            "b": pd.array(columns["b"], dtype="boolean"),
            "f": pd.array(columns["f"], dtype="boolean"),
            "y": pd.Series(y, dtype="string"),
        }
    )
    polars = pl.DataFrame({**columns, "y": pl.Series(y, dtype=pl.Categorical)})
    plain = {name: np.array(values, dtype=object) for name, values in {**columns, "y": y}.items()}
    plain["f"] = np.array([1.0, 0.0, np.nan, 1.0])
    plain["b"] = np.array(["true", None, "false", "true"], dtype=object)
    settings = {"agents": 2, "rounds": 3, "reference": False, "schema": schema}
    results = [padmm.simulate(data=frame, **settings) for frame in (pandas, polars, plain)]
    assert all(np.array_equal(r.coefficients, results[0].coefficients) for r in results)
    encoded = schema.encode(pandas)
    assert len(encoded) == 4 and encoded.n_dropped == 0 and dict(encoded.n_clipped)["n"] == 1


def test_errors_name_row_and_column_and_no_cell():
    heart = padmm.datasets.load_heart_disease()
    wrong = heart.frame.assign(age=heart.frame["age"].astype(object))
    wrong.loc[4, "age"] = "secret"
    with pytest.raises(padmm.SchemaError, match="row 6, column `age`: the cell is not a finite number") as caught:
        padmm.simulate(data=wrong, schema=heart.schema)
    assert "secret" not in str(caught.value)
    with pytest.raises(padmm.SchemaError, match="the file lacks `thal`"):
        padmm.simulate(data=heart.frame.drop(columns="thal"), schema=heart.schema)
    with pytest.raises(FileNotFoundError, match="cannot read"):
        padmm.simulate(data="/nowhere.csv", schema="/nowhere.toml")
    with pytest.raises(ValueError, match="needs a schema"):
        padmm.simulate(data=heart.frame)


def test_graphs():
    for graph in [
        padmm.Graph.ring(6),
        padmm.Graph.grid(2, 3),
        padmm.Graph.erdos_renyi(8, 0.5),
        padmm.Graph.regular(6, 3),
    ]:
        theirs = graph.to_networkx()
        assert padmm.Graph.from_networkx(theirs) == padmm.Graph.from_edges(theirs.edges(), graph.names)
        laplacian = np.sort(networkx.laplacian_spectrum(theirs))
        assert np.allclose(graph.spectrum().signed, laplacian, atol=1e-9)
        assert graph.spectrum().bipartite == networkx.is_bipartite(theirs)
    assert padmm.Graph.star(4).degrees == [3, 1, 1, 1]
    assert padmm.Graph.small_world(10, 4, 0.1, seed=3) == padmm.Graph.small_world(10, 4, 0.1, seed=3)
    with pytest.raises(ValueError, match="not connected"):
        padmm.Graph.from_edges([("a", "b"), ("c", "d")])
    with pytest.raises(ValueError, match="directed"):
        padmm.Graph.from_networkx(networkx.DiGraph([(0, 1)]))
    with pytest.raises(ValueError, match="no family called `rong`"):
        padmm.Graph("rong", 3)


def test_a_graph_decides_the_network():
    path = padmm.Graph.from_networkx(networkx.path_graph(4))
    result = padmm.simulate(dataset="heart", graph=path, split="even", rounds=3, reference=False)
    assert [site["degree"] for site in result.record["setting"]["sites"]] == [1, 2, 2, 1]
    named = padmm.Graph.from_edges([("va", "hungary"), ("hungary", "cleveland"), ("cleveland", "switzerland")])
    degrees = {s["name"]: s["degree"] for s in padmm.simulate(graph=named, **HEART).record["setting"]["sites"]}
    assert degrees == {"cleveland": 2, "hungary": 2, "switzerland": 1, "va": 1}


def test_plans():
    plan = padmm.Plan(epsilon=2, graph="ring")
    assert pickle.loads(pickle.dumps(plan)) == plan and plan.with_(rounds=3) != plan
    assert padmm.Plan.from_toml(plan.to_toml()) == plan
    with pytest.raises(TypeError, match="unknown setting 'epsilonn'"):
        padmm.Plan(epsilonn=1)
    with pytest.raises(ValueError, match="where the records are"):
        padmm.Plan.from_toml('dataset = "heart"\nepsilon = 1')
    calibration = plan.calibration(padmm.datasets.load_heart_disease().schema, [303, 261, 46, 130])
    spent = padmm.simulate(plan, dataset="heart", reference=False).privacy
    for before, after in zip(calibration["sites"], spent.sites, strict=True):
        assert before["privacy"]["epsilon_exact"] == after.epsilon_exact
        assert before["privacy"]["noise_std_first"] == after.noise_std_first


def test_a_model_becomes_an_estimator_and_predicts_the_same(tmp_path):
    model = heart_model()
    model.save(tmp_path / "model.json")
    with pytest.raises(OSError, match="exists already"):
        model.save(tmp_path / "model.json")
    heart = padmm.datasets.load_heart_disease()
    complete = ~np.isnan(model.decision_function(heart.data))
    rows = heart.data[complete]
    estimator = padmm.Model.load(tmp_path / "model.json").to_sklearn()
    assert np.array_equal(estimator.decision_function(rows), model.decision_function(rows))
    assert np.array_equal(estimator.predict(rows), model.predict(rows))
    assert np.array_equal(estimator.predict_proba(rows), model.predict_proba(rows))
    again = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert pickle.loads(pickle.dumps(model)) == model and model.privacy["epsilon_exact"] <= 5
    (tmp_path / "cut.json").write_text(model.to_json()[:100])
    with pytest.raises(ValueError, match="not a complete padmm model"):
        padmm.Model.load(tmp_path / "cut.json")


def run_onnx(proto, feeds):
    """By onnxruntime where it is, else by ONNX's own reference."""
    try:
        import onnxruntime

        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        session = ReferenceEvaluator(proto)
    return session.run(None, feeds)


def feeds_of(model, frame):
    columns = model.schema.to_dict()["columns"]
    numeric = [c["name"] for c in columns if c["kind"] == "numeric"]
    feeds = {"numeric": frame[numeric].to_numpy(dtype=np.float64, na_value=np.nan)}
    for column in columns:
        if column["kind"] == "categorical":
            cells = ["" if pd.isna(v) else str(v) for v in frame[column["name"]]]
            feeds[column["name"]] = np.array(cells, dtype=object).reshape(-1, 1)
    return feeds


@pytest.mark.parametrize("dataset", ["heart", "adult"])
def test_onnx_gives_the_same_margins(dataset, tmp_path):
    pytest.importorskip("onnx")
    model = padmm.simulate(dataset=dataset, rounds=3, reference=False).model
    data = (padmm.datasets.load_heart_disease if dataset == "heart" else padmm.datasets.load_adult)().data
    proto = model.to_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 0
    margins, scores = run_onnx(proto, feeds_of(model, data))
    expected = model.decision_function(data)
    assert np.allclose(margins[:, 0], expected, rtol=1e-12, atol=1e-14, equal_nan=True)
    assert np.allclose(scores[:, 0], model.predict_proba(data)[:, 1], rtol=1e-12, equal_nan=True)


def test_onnx_follows_every_rule_of_a_schema():
    pytest.importorskip("onnx")
    schema = padmm.Schema.from_dict(
        {
            "norm_bound": 1.3,
            "intercept": True,
            "missing": "fill",
            "on_unknown_category": "other",
            "missing_values": ["?", "", "NA", "-9"],
            "label": {"column": "y", "kind": "numeric", "lower": -5, "upper": 20},
            "columns": [
                {"name": "a", "kind": "numeric", "lower": 0, "upper": 4, "fill": 1, "fill_values": ["0"]},
                {"name": "b", "kind": "numeric", "lower": -1, "upper": 1, "fill": 0.5},
                {"name": "c", "kind": "categorical", "values": ["u", "v"], "fill": "v", "missing_values": ["unknown"]},
            ],
        }
    )
    frame = pd.DataFrame(
        {
            "a": [0.0, 2.0, 9.0, np.nan, -9.0, 3.0],
            "b": [0.1, -3.0, np.nan, 0.2, 1.0, -1.0],
            "c": ["u", "v", "w", "unknown", None, "u"],
            "y": [0.0, 3.0, 6.0, 9.0, 12.0, 15.0],
        }
    )
    model = padmm.simulate(data=frame, schema=schema, loss="huber", agents=2, rounds=3, reference=False).model
    margins, numbers = run_onnx(model.to_onnx(), feeds_of(model, frame))
    assert np.allclose(margins[:, 0], model.decision_function(frame), rtol=1e-12)
    assert np.allclose(numbers[:, 0], model.predict(frame), rtol=1e-12)
    counts = model.schema.with_(label={"column": "y", "kind": "numeric", "lower": 0, "upper": 20})
    counted = padmm.simulate(data=frame, schema=counts, loss="poisson", agents=2, rounds=3, reference=False).model
    margins, numbers = run_onnx(counted.to_onnx(), feeds_of(counted, frame))
    assert np.allclose(numbers[:, 0], counted.predict(frame), rtol=1e-12)
    assert np.allclose(numbers, np.minimum(np.exp(margins), 20), rtol=1e-12)
    dropping = model.schema.with_(missing="drop", on_unknown_category="error")
    text = json.loads(model.to_json())
    text["schema"] = dropping.to_dict()
    text["coefficients"] = [c for c in text["coefficients"] if c["name"] != "c=(other)"]
    strict = padmm.Model.from_json(json.dumps(text))
    margins, _ = run_onnx(strict.to_onnx(), feeds_of(strict, frame))
    known = frame[frame["c"] != "w"]
    places = known.index.to_numpy()
    assert np.allclose(margins[places, 0], strict.decision_function(known), rtol=1e-12, equal_nan=True)
    assert np.isnan(margins[2, 0]), "a category that the encoder would refuse"


def test_traces_reach_both_libraries_without_copying():
    pyarrow = pytest.importorskip("pyarrow")
    result = padmm.simulate(dataset="heart", rounds=7, runs=2)
    table = pyarrow.table(result.trace)
    again = pyarrow.table(result.trace)
    address = [t.column("average_loss").chunk(0).buffers()[1].address for t in (table, again)]
    assert address[0] == address[1], "both look at the same memory"
    frame = result.to_polars()
    assert frame.shape == (14, 14) and frame["round"].to_list() == [*range(1, 8)] * 2
    assert frame["average_loss"].to_numpy().__array_interface__["data"][0] == address[0]
    pandas = result.to_pandas()
    assert pandas["average_loss"].to_numpy().__array_interface__["data"][0] == address[0]
    written = [m["average_loss"] for run in result.record["runs"] for m in run["trace"]]
    assert pandas["average_loss"].tolist() == written
    assert result.to_pandas(reference=True)["algorithm"].unique().tolist() == ["admm"]


def test_figures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    result = padmm.simulate(dataset="heart", rounds=5, runs=2)
    other = padmm.simulate(dataset="heart", rounds=5, algorithm="dvp", reference=False)
    ax = padmm.plot.convergence(result)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["p-admm", "without noise", "pooled optimum"]
    assert np.allclose(padmm.plot.privacy(result).lines[0].get_ydata()[-1], result.privacy.epsilon_exact)
    assert padmm.plot.privacy(padmm.account.calibrate(1)).get_ylabel() == "epsilon spent"
    both = padmm.plot.comparison([result, other], measure="accuracy")
    assert [t.get_text() for t in both.get_legend().get_texts()] == ["p-admm", "dvp"]
    assert len(padmm.Graph.ring(5).plot().lines) == 5
    pyplot.close("all")


def test_every_declared_setting_of_a_plan_is_a_keyword_of_the_estimators() -> None:
    import inspect

    from padmm._plan import SETTINGS

    # Sites, rows that are set aside, noise and repetitions have names of their own, as scikit-learn's users know them.
    elsewhere = {"agents", "holdout", "runs", "seed"}
    for estimator in (padmm.PrivateADMMClassifier, padmm.PrivateADMMRegressor):
        keywords = set(inspect.signature(estimator).parameters)
        assert set(SETTINGS) - elsewhere <= keywords
