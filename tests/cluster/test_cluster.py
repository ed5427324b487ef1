"""Lakes on a cluster of two workers that share nothing with the driver but the lake's folder.

`make test-cluster` runs them, and the long form of the tests does: processes take a while to start.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench._spark_cluster import Cluster, running_cluster
from tests.cluster.driver import ROWS

ROOT = Path(__file__).parents[2]
CHOSEN = bool(os.environ.get("VIEWKEEP_LONG") or os.environ.get("VIEWKEEP_CLUSTER"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHOSEN, reason="make test-cluster and the long form run them"),
]


@pytest.fixture(scope="module")
def driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the driver keeps files that are nobody else's."""
    return tmp_path_factory.mktemp("driver")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, driver_folder: Path) -> Iterator[Cluster]:
    """Two workers; where this process may hide folders from them, the driver's are hidden."""
    may_hide = os.geteuid() == 0 and shutil.which("unshare") is not None
    hidden = [driver_folder, ROOT / "src"] if may_hide else []
    with running_cluster(tmp_path_factory.mktemp("cluster"), hidden=hidden) as processes:
        yield processes


def drive(cluster: Cluster, driver_folder: Path, folder: Path, scenario: str) -> dict[str, Any]:
    """What a driver in a process of its own tells of a scenario."""
    environment = {**os.environ, "TMPDIR": str(driver_folder), "ONLY_THE_DRIVER": "knows this"}
    environment.pop("VIEWKEEP_CONNECT", None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.driver", scenario, json.dumps(asdict(cluster)),
         str(folder)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(scenario, answer)
    return answer


def test_views_of_tpch(cluster: Cluster, driver_folder: Path, tmp_path: Path) -> None:
    """Both workers do work, the driver runs no task, and views are what Spark answers."""
    answer = drive(cluster, driver_folder, tmp_path, "tpch")
    assert all(answer["right"].values()), answer
    tasks = answer["tasks"]
    assert tasks.pop("driver") == 0
    assert len(tasks) == 2
    assert all(tasks.values())
    assert answer["strategies"]["id"]


def test_rows_stay_with_the_executors(
    cluster: Cluster, driver_folder: Path, tmp_path: Path
) -> None:
    """Spark ends a job whose rows would come to the driver; they are written by executors."""
    answer = drive(cluster, driver_folder, tmp_path, "large")
    assert all(answer["right"].values()), answer
    assert set(answer["rows"].values()) == {ROWS - 1}
    assert answer["ways"]["texts"][0] == "recompute"
    assert answer["bytes"] > 40_000_000
    assert answer["grown"] < answer["bytes"]
    assert all(each.startswith("spark-") for each in answer["files"]["texts"])
    assert sum(each.startswith("spark-") for each in answer["files"]["big"]) > 1


def test_deaths(cluster: Cluster, driver_folder: Path, tmp_path: Path) -> None:
    """The last test: one worker is gone after it."""
    answer = drive(cluster, driver_folder, tmp_path, "deaths")
    assert all(answer["killed"]), answer
    assert answer["right"]
    assert answer["kinds"] == 1000
    assert answer["sum"] == 7 * ROWS * (ROWS - 1) // 2
