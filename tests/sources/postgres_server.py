"""A PostgreSQL server for tests: found or installed from Debian's packages, on a free port."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SERVER = "VIEWKEEP_TEST_POSTGRES"
SETTINGS = {
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "40",
    "max_prepared_transactions": "4",
    "shared_buffers": "16MB",
    "unix_socket_directories": "",
}


def programs() -> Path | None:
    """The folder of the server's programs, the newest there is."""
    folders = sorted(glob("/usr/lib/postgresql/*/bin"), key=lambda f: int(f.split("/")[-2]))
    beside = shutil.which("postgres")
    return Path(folders[-1]) if folders else Path(beside).parent if beside else None


def installed_programs() -> Path:
    """The same, installed if that can be done; else the test is skipped with the reason."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed")
    folder = programs()
    if folder is None and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300)
        folder = programs()
    if folder is None:
        pytest.skip("there is no PostgreSQL server, and it cannot be installed here")
    return folder


def run_as_server(command: list[str], place: str) -> None:
    """Run a program of the server, which does not want to be root."""
    account: dict[str, Any] = {"user": _account()} if os.geteuid() == 0 else {}
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=120, **account
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _account() -> str:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_server() -> Iterator[str]:
    """A server with an empty database; the DSN of its owner. One that runs already is used if the
    environment names it."""
    if SERVER in os.environ:
        yield os.environ[SERVER]
        return
    folder, port = installed_programs(), free_port()
    with tempfile.TemporaryDirectory(prefix="viewkeep-pg-") as place:
        if os.geteuid() == 0:
            shutil.chown(place, _account())
        data, secret = f"{place}/data", f"{place}/secret"
        Path(secret).write_text("s3cret-w0rd")
        os.chmod(secret, 0o644)
        run_as_server(
            [
                *(str(folder / "initdb"), "-D", data, "-U", "keeper", "-E", "UTF8"),
                *("--locale=C", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"),
            ],
            place,
        )
        options = " ".join(f"-c {name}={value!r}" for name, value in SETTINGS.items())
        control = [str(folder / "pg_ctl"), "-D", data, "-w", "-l", f"{place}/log"]
        run_as_server([*control, "-o", f"-p {port} {options}", "start"], place)
        try:
            yield f"postgresql://keeper:s3cret-w0rd@127.0.0.1:{port}/postgres"
        finally:
            run_as_server([*control, "-m", "immediate", "stop"], place)
