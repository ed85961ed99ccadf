"""What several tests need."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def command() -> str:
    """The command ``padmm``, built from the same checkout."""
    root = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    places = [os.environ.get("PADMM_BIN"), str(target / "release" / "padmm"), shutil.which("padmm")]
    found = next((place for place in places if place and Path(place).exists()), None)
    if found is None:
        if os.environ.get("PADMM_REQUIRE_BIN"):
            pytest.fail("the command `padmm` is not built, and PADMM_REQUIRE_BIN is set")
        pytest.skip("the command `padmm` is not built: cargo build --release --bin padmm, or set PADMM_BIN")
    return found


@pytest.fixture
def two_classes() -> tuple[np.ndarray, np.ndarray]:
    """Points of the square whose first coordinate decides."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (1200, 3))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
