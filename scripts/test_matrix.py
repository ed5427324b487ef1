"""Runs the core of the lake's tests with every version of Spark that is supported.

    python scripts/test_matrix.py [--cache FOLDER] [--docs] [--remove] [3.5.9 4.0.5-connect ...]

Each version has an environment of its own below the cache folder, from the package index: 700 MB
to 1 GB each, which `--remove` deletes when the version has run. With `--docs`, the results are
written into docs/spark_versions.md, beside those of versions that were not run now.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "spark_versions.md"
START, END = "<!-- results -->", "<!-- end of results -->"
RUNS = (
    *(("3.5.9", "classic"), ("3.5.7", "connect")),
    *((version, kind) for version in ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
      for kind in ("classic", "connect")),
)  # fmt: skip
"""The newest version of each line; of Spark 3.5 also the newest that has a server of Connect."""
CONNECT_SERVER = "org.apache.spark:spark-connect_2.12"
"""The server of Spark 3.5, which is not among the jars that its package brings."""
TESTS = (
    "tests/keeper/test_spark_versions.py",
    "tests/keeper/test_end_to_end.py",
    "tests/keeper/test_delta_features.py",
)
CHOSEN = "not duckdb and not copies"
"""Tests that Spark has no part in, and further forms of others, are left out."""
PATIENCE = 30
"""Seconds that a process may take after its last test."""
PACKAGES = ("pytest>=8.3", "hypothesis>=6.120", "pandas<3", "numpy>=2")


@dataclass(frozen=True)
class Result:
    """What came of the tests with one version."""

    version: str
    kind: str
    passed: int
    failed: int
    skipped: int
    seconds: int


def python_of(version: str, cache: Path) -> Path:
    """The interpreter of an environment with a version of Spark, which is made once."""
    folder = cache / f"spark-{version}"
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"Making an environment with Spark {version} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"pyspark[connect]=={version}"], check=True)
        # What Spark asks of NumPy is meant for its machine learning.
        subprocess.run([*install, f"{ROOT}[lake]", *PACKAGES], check=True)
        (folder / ".ready").touch()
    return python


def run(version: str, kind: str, cache: Path, more: Sequence[str]) -> Result:
    """Run the tests with one version."""
    python, start = python_of(version, cache), time.monotonic()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment.pop("VIEWKEEP_CONNECT", None)
    if kind == "connect":
        environment["VIEWKEEP_CONNECT"] = "1"
        if version.startswith("3."):
            server = f"--packages {CONNECT_SERVER}:{version} pyspark-shell"
            environment["PYSPARK_SUBMIT_ARGS"] = server
    log, report = (cache / f"{version}-{kind}.{end}" for end in ("log", "xml"))
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-W", "default"]
    command += [f"--junit-xml={report}"]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "-k", CHOSEN, *TESTS, *more], cwd=ROOT, env=environment,
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        _wait(process, report)
    result = Result(version, kind, *_counts(report), round(time.monotonic() - start))
    print(f"{result} ({log})", flush=True)
    return result


def _wait(process: "subprocess.Popen[bytes]", report: Path) -> None:
    """Until the process ends, or a while after its report: clients of Connect may try for many
    minutes to tell a server of their end that has ended before them."""
    while process.poll() is None:
        if report.exists() and time.time() - report.stat().st_mtime > PATIENCE:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(1)


def _counts(report: Path) -> tuple[int, int, int]:
    """Tests that passed, failed and were skipped; without a report, one that failed."""
    if not report.exists():
        return 0, 1, 0
    [suite] = ElementTree.parse(report).getroot()
    count = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return count["tests"] - failed - count["skipped"], failed, count["skipped"]


def write_page(results: list[Result]) -> None:
    """Put results into the page, in place of older ones of the same versions."""
    text = PAGE.read_text()
    before, _, rest = text.partition(START)
    old, _, after = rest.partition(END)
    known = {(r.version, r.kind): r for r in map(_parsed, old.splitlines()) if r is not None}
    known |= {(each.version, each.kind): each for each in results}
    lines = ["| Spark | session | passed | failed | skipped |", "|---|---|---|---|---|"]
    for each in sorted(known.values(), key=lambda r: (r.version, r.kind)):
        cells = (each.version, each.kind, each.passed, each.failed, each.skipped)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    PAGE.write_text(f"{before}{START}\n{chr(10).join(lines)}\n{END}{after}")


def _parsed(line: str) -> Result | None:
    cells = [each.strip() for each in line.strip("| ").split("|")]
    if len(cells) != 5 or not cells[0][:1].isdigit():
        return None
    version, kind, *counts = cells
    return Result(version, kind, *map(int, counts), 0)


def main() -> None:
    """Run the versions that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "viewkeep-matrix")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--remove", action="store_true")
    parser.add_argument("versions", nargs="*")
    arguments, more = parser.parse_known_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    chosen = [
        (version, kind)
        for version, kind in RUNS
        if not arguments.versions or {version, f"{version}-{kind}"} & set(arguments.versions)
    ]
    results = []
    for place, (version, kind) in enumerate(chosen):
        results.append(run(version, kind, arguments.cache, more))
        if arguments.docs:
            write_page(results)
        if arguments.remove and version not in {later for later, _ in chosen[place + 1 :]}:
            shutil.rmtree(arguments.cache / f"spark-{version}")
    print(json.dumps([asdict(each) for each in results], indent=1))
    if any(each.failed for each in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
