"""Lakes on both engines: modules that say `BACKENDS` run once on each; others as keepers choose."""

from typing import Any

import pytest

from viewkeep.keeper import Keeper


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Once for each engine that the module names."""
    backends = getattr(metafunc.module, "BACKENDS", ())
    if backends:
        metafunc.parametrize("engine", backends, indirect=True)


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine that all keepers of a test use, unless they name another one."""
    choice: str = getattr(request, "param", "auto")
    create = Keeper.__init__

    def forced(self: Keeper, *given: Any, **named: Any) -> None:
        create(self, *given, **{"backend": choice, **named})

    if choice != "auto":
        monkeypatch.setattr(Keeper, "__init__", forced)
    return choice
