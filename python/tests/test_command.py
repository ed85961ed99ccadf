"""The same plan and seed give the same numbers, bit for bit, as the command's."""

import json
import re
import subprocess

import numpy as np
import pytest

import padmm

PLANS = [
    ("adult", {"rounds": 8}),
    (
        "adult",
        {
            "rounds": 5,
            "holdout": "official",
            "graph": "erdos-renyi:0.6",
            "agents": 7,
            "seed": 12,
            "split": "label-skew:0.5",
        },
    ),
    ("heart", {"rounds": 12, "epsilon": 2.0, "runs": 2}),
    ("heart", {"rounds": 6, "algorithm": "dvp"}),
    ("heart", {"algorithm": "auto", "weights": "auto"}),
    ("heart", {"rounds": 6, "algorithm": "m-admm", "penalty_growth": 1.05}),
    ("heart", {"rounds": 6, "algorithm": "mr-admm", "accountant": "basic"}),
    ("heart", {"rounds": 6, "algorithm": "dp-admm", "output": "last"}),
    ("heart", {"rounds": 6, "algorithm": "token", "regularizer": "elastic-net", "regularization": 0.01}),
    ("heart", {"rounds": 6, "algorithm": "gaussian-objective"}),
    ("heart", {"rounds": 6, "algorithm": "admm", "loss": "hinge"}),
]


def run(command: str, dataset: str, settings: dict, out) -> dict:
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    line = [command, "simulate", f"--dataset={dataset}", *flags, "--json", "--quiet", f"--out={out}"]
    printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    return json.loads(printed)


@pytest.mark.parametrize(("dataset", "settings"), PLANS)
def test_records_are_the_same_bits(command, tmp_path, dataset, settings):
    printed = run(command, dataset, settings, tmp_path / "out")
    result = padmm.simulate(dataset=dataset, **settings)
    written = json.loads((tmp_path / "out" / "record.json").read_text())
    ours = dict(result.record)
    assert written.pop("seconds") > 0 and ours.pop("seconds") > 0
    # JSON texts of floats are shortest round trips: equal numbers here are equal bits.
    assert ours == written
    assert (tmp_path / "out" / "trace.csv").read_text() == result.trace_csv()
    assert json.loads((tmp_path / "out" / "model.json").read_text()) == json.loads(result.model.to_json())
    told = result.to_json()
    assert printed.pop("seconds") > 0 and told.pop("seconds") > 0
    assert told == printed


def test_a_plan_file_means_the_same_to_both(command, tmp_path):
    plan = padmm.Plan(epsilon=1.5, rounds=7, graph="ring", loss="huberized-hinge", loss_width=0.25, holdout=0.2)
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    line = [
        command,
        "simulate",
        "--plan",
        str(tmp_path / "plan.toml"),
        "--dataset=heart",
        "--quiet",
        f"--out={tmp_path / 'out'}",
    ]
    subprocess.run(line, check=True)
    written = json.loads((tmp_path / "out" / "record.json").read_text())
    ours = padmm.simulate(padmm.Plan.from_toml(tmp_path / "plan.toml"), dataset="heart").record
    assert ours["runs"] == written["runs"] and ours["setting"] == written["setting"]


@pytest.mark.parametrize("backend", ["pandas", "polars", "numpy"])
def test_a_frame_is_encoded_as_the_file(command, tmp_path, backend):
    subprocess.run(
        [command, "data", "export", "heart", "--out", str(tmp_path / "heart.csv")], check=True, capture_output=True
    )
    files = {"data": tmp_path / "heart.csv", "schema": tmp_path / "heart.schema.toml"}
    heart = padmm.datasets.load_heart_disease(backend=backend)
    from_file = padmm.simulate(**files, rounds=5, reference=False)
    from_frame = padmm.simulate(data=heart.frame, schema=heart.schema, rounds=5, reference=False)
    assert from_frame.record["runs"] == from_file.record["runs"]
    assert np.array_equal(from_frame.coefficients, from_file.coefficients)


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (["--epsilon=-1"], {"epsilon": -1}),
        (["--algorithm=nope"], {"algorithm": "nope"}),
        (["--graph=grid:2x3"], {"graph": "grid:2x3"}),
        (["--agents=9"], {"agents": 9, "split": "site"}),
        (["--loss=squared"], {"loss": "squared"}),
        (["--relaxation=0.5"], {"relaxation": 0.5}),
        (["--algorithm=token", "--graph=ring"], {"algorithm": "token", "graph": "ring"}),
        (["--holdout=2"], {"holdout": "2"}),
        (["--rounds=4000", "--decay=0.5"], {"rounds": 4000, "decay": 0.5}),
    ],
)
def test_errors_have_the_commands_words(command, tmp_path, flags, settings):
    if settings.get("split") == "site":
        flags = [*flags, "--split=site"]
    line = [command, "simulate", "--dataset=heart", "--quiet", f"--out={tmp_path / 'out'}", *flags]
    said = subprocess.run(line, capture_output=True, text=True).stderr
    with pytest.raises(ValueError) as caught:
        padmm.simulate(dataset="heart", **settings)
    assert _plain(str(caught.value)) in _plain(said)


def _plain(text: str) -> str:
    """The words alone: a setting is a flag to the command and a keyword here."""
    return " ".join(re.sub(r"--|['`]", "", text).replace("=", " ").replace("_", "-").split())


def test_predictions_are_the_commands(command, tmp_path):
    subprocess.run(
        [command, "data", "export", "heart", "--out", str(tmp_path / "heart.csv")], check=True, capture_output=True
    )
    result = padmm.simulate(dataset="heart", rounds=5, reference=False)
    result.model.save(tmp_path / "model.json")
    line = [
        command,
        "predict",
        "--model",
        str(tmp_path / "model.json"),
        "--data",
        str(tmp_path / "heart.csv"),
        "--json",
    ]
    printed = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    heart = padmm.datasets.load_heart_disease()
    model = padmm.Model.load(tmp_path / "model.json")
    margins, labels, scores = (
        model.decision_function(heart.data),
        model.predict(heart.data),
        model.predict_proba(heart.data),
    )
    assert np.isnan(margins).sum() == printed["dropped"]
    for told in printed["predictions"]:
        place = told["row"] - 2
        assert margins[place] == told["margin"] and labels[place] == told["predicted"]
        assert scores[place, 1] == told["probability"]


def test_accounting_is_the_commands(command):
    for flags, account in [
        (["--epsilon=1"], padmm.account.calibrate(1)),
        (
            ["--epsilon=2", "--accountant=paper", "--features=104", "--delta=1e-6"],
            padmm.account.calibrate(2, 1e-6, accountant="paper", features=104),
        ),
        (["--noise-multiplier=6.8", "--decay=1"], padmm.account.spend(noise_multiplier=6.8, decay=1.0)),
        (
            ["--rho=0.4", "--rounds=10", "--group-records=3", "--group-sites=2"],
            padmm.account.spend(rho=0.4, rounds=10, group_records=3, group_sites=2),
        ),
    ]:
        line = [command, "account", *flags, "--json", "--all-rounds"]
        told = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
        for key in (
            "epsilon_exact",
            "epsilon_paper",
            "rho_total",
            "mu",
            "noise_multiplier_first",
            "noise_multiplier_last",
            "delta_slack",
        ):
            assert getattr(account, key) == told[key], key
        assert account.curve["epsilon_exact"].tolist() == [point["epsilon_exact"] for point in told["curve"]]
        if "group" in told:
            assert account.group_epsilon_exact == told["group"]["epsilon_exact"]
