"""The package itself: what it imports, and that its stubs tell the truth."""

import ast
import json
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

import padmm
from padmm import _padmm

FORBIDDEN = ["sklearn", "pandas", "polars", "scipy", "matplotlib", "networkx", "onnx", "tqdm", "pyarrow"]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_loads_nothing_but_itself():
    # How long it takes is for python/benchmarks/overhead.py to say; that it is quick rests on what is not loaded, numpy included.
    loaded = json.loads(run("import sys, json, padmm; print(json.dumps(list(sys.modules)))"))
    assert not [name for name in [*FORBIDDEN, "numpy"] if name in loaded]
    loaded = json.loads(
        run("import sys, json, padmm; padmm.simulate; padmm.account; print(json.dumps(list(sys.modules)))")
    )
    assert not [name for name in FORBIDDEN if name in loaded]
    assert [r for r in requires("padmm") or [] if "extra ==" not in r] == ["numpy>=1.24"]


def test_everything_works_without_optional_packages():
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in FORBIDDEN)
    run(
        f"import sys; {blocked}\n"
        "import padmm, numpy\n"
        "heart = padmm.datasets.load_heart_disease()\n"
        "result = padmm.simulate(data=heart.frame, schema=heart.schema, rounds=3)\n"
        "assert len(result.model.predict(heart.data)) == 920\n"
        "assert padmm.account.calibrate(1).epsilon_exact <= 1\n"
        "for name, use in [('scikit-learn', lambda: padmm.PrivateADMMClassifier), ('pandas', result.to_pandas),\n"
        "                  ('polars', result.to_polars), ('onnx', result.model.to_onnx),\n"
        "                  ('matplotlib', lambda: padmm.plot.privacy(result))]:\n"
        "    try:\n"
        "        use()\n"
        "    except ImportError as error:\n"
        "        assert name in str(error) and 'pip install' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(name)\n"
    )


def test_every_name_is_there():
    for name in padmm.__all__:
        assert getattr(padmm, name) is not None
    assert set(padmm.__all__) <= set(dir(padmm))
    with pytest.raises(AttributeError):
        getattr(padmm, "nonsense")  # noqa: B009


def test_the_stubs_name_what_the_module_has():
    stub = Path(padmm.__file__).with_name("_padmm.pyi")
    tree = ast.parse(stub.read_text())
    described = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    there = {name for name in dir(_padmm) if not name.startswith("_")}
    assert described == there
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {m.name for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("__")}
            real = {name for name in dir(getattr(_padmm, node.name)) if not name.startswith("__")}
            assert methods == real, node.name
    assert stub.with_name("py.typed").exists()
