"""The tests of a module once for each engine."""

import os
from collections.abc import Iterator

import pytest

LONG = "VIEWKEEP_LONG" in os.environ
ENGINES = ("reference", "compiled")


@pytest.fixture(scope="module", params=ENGINES, autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """What `engine="auto"` starts with; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_ENGINE", request.param)
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        yield request.param


def takes_long(item: pytest.Item) -> bool:
    """Random queries in all ways are thousands of programs to compile, and invariants after every
    update read all maps: for long runs only. `test_compiled.py` has some of both in every run.
    """
    function = getattr(item, "obj", None)
    random = getattr(function, "is_hypothesis_test", False) or item.path.stem == "test_adaptive"
    compiled = getattr(item, "callspec", None) and item.callspec.params.get("engine") == "compiled"
    return bool(random and compiled) and not LONG
