"""One PostgreSQL server for all tests of sources."""

from collections.abc import Iterator

import pytest

from tests.sources.postgres_server import running_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The DSN of the server; where there is none, the test is skipped with the reason."""
    with running_server() as dsn:
        yield dsn


@pytest.fixture
def server_or_none(request: pytest.FixtureRequest) -> str | None:
    """The same for tests that can do without."""
    try:
        dsn: str = request.getfixturevalue("server")
    except pytest.skip.Exception:
        return None
    return dsn
