"""One emulator of S3 for all tests of object stores, and a bucket for each."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.objects.emulator import Emulator, running_emulator

collect_ignore = ["s3_server.py"]
"""It runs in the environment of the emulator."""
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """The server; where there is none, the test is skipped with the reason."""
    with running_emulator() as server:
        yield server


@pytest.fixture
def bucket(emulator: Emulator) -> str:
    """The name of a bucket that is empty."""
    name = f"bucket-{next(_NUMBERS)}"
    emulator.make_bucket(name)
    return name
