"""A broker of Kafka for tests: one node in KRaft mode, from jars that `make setup-kafka` gets."""

import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection

import pytest

from tests.sources.postgres_server import free_port

FOLDER = "VIEWKEEP_KAFKA_JARS"
CONNECTOR = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
CLUSTER, TOMBSTONE, PATIENCE = "MkU3OEVBNTcwNTJENDM2Qk", "#tombstone", 120
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "num.partitions": "3",
}


def jar_folder() -> Path:
    """The folder of the jars; where there is none, the test is skipped."""
    beside = Path(__file__).parents[2] / ".kafka-jars"
    folder = Path(os.environ.get(FOLDER, beside))
    if not any(folder.glob("kafka_2.13-*.jar")):
        pytest.skip(f"no broker of Kafka in {folder}: make setup-kafka gets it")
    return folder


def connector_jars() -> list[str]:
    """The jars of Spark's source of Kafka."""
    return [str(each) for each in jar_folder().glob("*.jar") if each.name.startswith(CONNECTOR)]


@dataclass
class Broker:
    """A broker whose log is in `place`; it may be killed and started again."""

    place: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Write its settings, and format its log."""
        controller = f"127.0.0.1:{free_port()}"
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://{controller}"
        places = {
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.place / "log"),
        }
        settings = [f"{name}={value}\n" for name, value in {**SETTINGS, **places}.items()]
        self._properties.write_text("".join(settings))
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._properties))

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = subprocess.Popen(
            self._java("kafka.Kafka", str(self._properties)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(OSError), create_connection(("127.0.0.1", self.port), 1):
                return
            assert self.process.poll() is None, "the broker did not start"
            time.sleep(0.2)
        raise AssertionError("the broker does not listen")

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def produce(self, topic: str, messages: Iterable[tuple[str, str | None]]) -> None:
        """Add messages of a key and a value; a value that is None is a tombstone."""
        lines = (f"{key}\t{TOMBSTONE if value is None else value}\n" for key, value in messages)
        options: Mapping[str, str] = {"parse.key": "true", "null.marker": TOMBSTONE}
        named = [part for pair in options.items() for part in ("--property", "=".join(pair))]
        where = ["--bootstrap-server", self.address, "--topic", topic, *named]
        self._run("kafka.tools.ConsoleProducer", *where, text="".join(lines))

    @property
    def _properties(self) -> Path:
        return self.place / "server.properties"

    def _java(self, main: str, *arguments: str) -> list[str]:
        return ["java", "-Xmx256m", "-cp", f"{jar_folder()}/*", main, *arguments]

    def _run(self, main: str, *arguments: str, text: str = "") -> None:
        done = subprocess.run(
            self._java(main, *arguments),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running_broker(place: Path) -> Iterator[Broker]:
    """A broker with an empty log, which ends with the block."""
    broker = Broker(place)
    broker.prepare()
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
