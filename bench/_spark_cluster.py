"""Spark's own standalone cluster as processes of this machine: a master and some workers.

Workers share nothing with the driver but what lies in folders: their environment is empty, they
start elsewhere, Python is not where Spark would look for it, and folders that belong to the driver
can be hidden from them (which root may do on Linux).
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

NO_PYTHON = "/nonexistent/python"
SECONDS = 120
"""A process of Spark that has not started by then will not."""
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Cluster:
    """Processes that run, and what sessions need to know of them."""

    url: str
    workers: tuple[int, ...]
    """Their process IDs; each leads a group that its executors belong to."""
    cores: int
    memory: str

    def session(self, name: str, driver_memory: str = "1g", **settings: str) -> SparkSession:
        """A session of this process whose executors are those of the workers, one of each."""
        builder = SparkSession.builder.master(self.url).appName(name)
        for key, value in {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": driver_memory,
            "spark.executor.cores": str(self.cores),
            "spark.executor.memory": self.memory,
            "spark.pyspark.python": NO_PYTHON,
            "spark.sql.shuffle.partitions": str(2 * self.cores * len(self.workers)),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **{key.replace("__", "."): value for key, value in settings.items()},
        }.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        return spark

    def executors(self, worker: int) -> list[int]:
        """The process IDs of the executors of a worker."""
        listed = subprocess.run(
            ["ps", "-o", "pid=,pgid=,args=", "-e"], capture_output=True, text=True, check=True
        )
        rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
        return [int(p) for p, g, args in rows if int(g) == worker and "ExecutorBackend" in args]


@contextmanager
def running_cluster(
    folder: Path,
    workers: int = 2,
    cores: int = 1,
    memory: str = "1g",
    hidden: Sequence[Path] = (),
) -> Iterator[Cluster]:
    """A cluster until the block ends; logs of its processes are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        master = _Process(folder / "master", ("master.Master", "--port", "0"), ())
        stack.callback(master.stop)
        url = master.line_in_log(r"Starting Spark master at (spark://\S+)")
        options = ("--cores", str(cores), "--memory", _doubled(memory), url)
        started = []
        for number in range(workers):
            started.append(
                _Process(folder / f"worker{number}", ("worker.Worker", *options), hidden)
            )
            stack.callback(started[-1].stop)
        for each in started:
            each.line_in_log("(Successfully registered) with master")
        yield Cluster(url, tuple(each.id for each in started), cores, memory)


class _Process:
    """A process of Spark in a folder of its own, the leader of a group."""

    def __init__(self, folder: Path, command: Sequence[str], hidden: Sequence[Path]) -> None:
        (folder / "local").mkdir(parents=True)
        (folder / "work").mkdir()
        self._log = folder / "log"
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        script = Path(spec.origin).parent / "bin" / "spark-class"
        options = ["--host", "127.0.0.1", "--webui-port", "0"]
        name, *rest = command
        line = [str(script), f"{_DEPLOY}.{name}", *options, *rest]
        if hidden:
            covers = " && ".join(f"mount -t tmpfs none {path}" for path in hidden)
            line = ["unshare", "-m", "sh", "-c", f'{covers} && exec "$0" "$@"', *line]
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": "127.0.0.1",
            **{key: os.environ[key] for key in ("JAVA_HOME",) if key in os.environ},
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                line, cwd=folder, env=environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.id = self._process.pid

    def line_in_log(self, pattern: str) -> str:
        """What a pattern finds in the log, as soon as it is there."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            match = re.search(pattern, self._log.read_text(errors="replace"))
            if match is not None:
                return match[1]
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"Spark's process did not start: {self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End the process and those that it has started, by its group."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.id, sign)
                self._process.wait(timeout=10)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()


def _doubled(memory: str) -> str:
    """Room for an executor beside what Spark keeps for itself."""
    return f"{2 * int(memory[:-1])}{memory[-1]}"


@dataclass(frozen=True)
class DriverMemory:
    """The most memory that the two processes of a driver have held so far, in bytes."""

    python: int
    java: int

    def __str__(self) -> str:
        return f"driver: Python {self.python / 1e6:,.0f} MB, Java {self.java / 1e6:,.0f} MB"


def driver_memory(spark: SparkSession) -> DriverMemory:
    """The peaks of this process and of the Java beside it, as the kernel counts them."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    process: subprocess.Popen[bytes] = vars(gateway)["proc"]
    return DriverMemory(_peak(os.getpid()), _peak(process.pid))


def _peak(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text() if sys.platform == "linux" else ""
    match = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(match[1]) * 1024 if match else 0


def tasks_by_executor(spark: SparkSession) -> dict[str, int]:
    """The tasks that each executor has ended so far; the driver is one without any."""
    store = spark.sparkContext._jsc.sc().statusStore()
    listed = store.executorList(False)
    return {listed.apply(i).id(): listed.apply(i).totalTasks() for i in range(listed.size())}
