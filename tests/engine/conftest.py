"""All tests of this folder run with each engine."""

import pytest

from tests.engine.engines import engine as engine
from tests.engine.engines import takes_long


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only long runs have time for."""
    left = [item for item in items if takes_long(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
