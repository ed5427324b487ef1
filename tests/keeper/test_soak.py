"""The soak of `bench/soak.py` for some seconds: watchers die, and nothing is lost or doubled."""

import os
from pathlib import Path

import pytest

from bench.soak import soak

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
SECONDS, EVERY = (120.0, 10.0) if LONG else (4.0, 2.0)


@pytest.mark.slow
def test_watchers_that_die_lose_nothing(tmp_path: Path) -> None:
    figures = soak(tmp_path, SECONDS, EVERY, rows=100, bound=2.0)
    assert figures["kills"] >= 1
    assert figures["files"] > 1
    assert figures["lag_median"] > 0
