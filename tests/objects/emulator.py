"""The S3 server of a test run: started on a free port, asked for objects, and stopped."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from tests.sources.postgres_server import free_port

ROOT = Path(__file__).parent.parent.parent
SERVER = Path(__file__).parent / "s3_server.py"
ENVIRONMENT = ROOT / ".venv-s3" / "bin" / "python"
KEY_ID, SECRET = "VIEWKEEPKEYID4TESTS", "v1ewkeep/S3cret+4/Tests/0nly"
_NAMES = {"s3": "http://s3.amazonaws.com/doc/2006-03-01/"}


@dataclass(frozen=True)
class Emulator:
    """A server that runs."""

    port: int

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        """Storage options for a lake on it."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
        }

    def make_bucket(self, name: str) -> str:
        """A new bucket; its URI."""
        self._request("PUT", f"/{name}")
        return f"s3://{name}"

    def objects(self, bucket: str, prefix: str = "") -> list[str]:
        """The names of all objects of a bucket that begin so."""
        names: list[str] = []
        after = ""
        while True:
            more = f"&start-after={quote(after)}" if after else ""
            query = f"/{bucket}?list-type=2&prefix={quote(prefix)}{more}"
            answer = ElementTree.fromstring(self._request("GET", query))
            found = [e.text or "" for e in answer.iterfind("s3:Contents/s3:Key", _NAMES)]
            if not found:
                return names
            names, after = names + found, found[-1]

    def read(self, bucket: str, name: str) -> bytes:
        """The bytes of an object."""
        return self._request("GET", f"/{bucket}/{quote(name)}")

    def count_requests(self) -> int:
        """How many requests there were."""
        return int(json.loads(self._request("GET", "/_control"))["requests"])

    @contextmanager
    def failing(self, **failures: Any) -> Iterator[None]:
        """A block in which the server fails in some way."""
        self._request("PUT", "/_control", json.dumps(failures).encode())
        try:
            yield
        finally:
            self._request("PUT", "/_control", b"{}")

    def _request(self, method: str, path: str, data: bytes = b"") -> bytes:
        signed = {"Authorization": "AWS tests:unchecked"}  # moto reads nothing to strangers
        request = Request(f"{self.url}{path}", data or None, signed, method=method)
        with urlopen(request, timeout=60) as answer:
            return bytes(answer.read())


def server_python() -> str:
    """The Python that has the server; without one, the test is skipped with the reason."""
    if find_spec("moto") is not None and find_spec("flask") is not None:
        return sys.executable
    if not ENVIRONMENT.exists():
        pytest.skip("there is no emulator of S3; `make setup-s3` installs one")
    return str(ENVIRONMENT)


@contextmanager
def running_emulator() -> Iterator[Emulator]:
    """A server on a free port of this machine."""
    python, emulator = server_python(), Emulator(free_port())
    with tempfile.TemporaryFile() as log:
        command = [python, str(SERVER), str(emulator.port)]
        environment = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
        child = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            _wait_until_ready(emulator, child)
            yield emulator
        finally:
            child.kill()
            child.wait(60)


def _wait_until_ready(emulator: Emulator, child: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 120
    while True:
        try:
            emulator.count_requests()
        except URLError:
            assert child.poll() is None, "the emulator of S3 has ended by itself"
            assert time.monotonic() < until, "the emulator of S3 does not answer"
            time.sleep(0.05)
        else:
            return
