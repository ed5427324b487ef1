"""Runs the core of the lake's tests with every version of Spark that is supported.

    python scripts/test_matrix.py [--cache FOLDER] [--docs] [3.5.9 4.0.5-connect ...]

Each version has an environment of its own below the cache folder, from the package index. With
`--docs`, the results are written into docs/spark_versions.md, beside those of versions that were
not run now.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "spark_versions.md"
START, END = "<!-- results -->", "<!-- end of results -->"
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
KINDS = ("classic", "connect")
TESTS = (
    "tests/keeper/test_spark_versions.py",
    "tests/keeper/test_end_to_end.py",
    "tests/keeper/test_delta_features.py",
)
CHOSEN = "not duckdb and not copies"
"""Tests that Spark has no part in, and further forms of others, are left out."""
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
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default"]
    log = cache / f"{version}-{kind}.log"
    with log.open("w") as file:
        subprocess.run(
            [*command, "-k", CHOSEN, *TESTS, *more],
            cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    last = log.read_text().strip().rpartition("\n")[2]
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    result = Result(
        version, kind, counts.get("passed", 0), failed or (not counts), counts.get("skipped", 0),
        round(time.monotonic() - start),
    )  # fmt: skip
    print(f"Spark {version} {kind}: {last} ({log})", flush=True)
    return result


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
    parser.add_argument("versions", nargs="*")
    arguments, more = parser.parse_known_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    every = [(version, kind) for version in VERSIONS for kind in KINDS]
    chosen = [
        (version, kind)
        for version, kind in every
        if not arguments.versions or {version, f"{version}-{kind}"} & set(arguments.versions)
    ]
    results = []
    for version, kind in chosen:
        results.append(run(version, kind, arguments.cache, more))
        if arguments.docs:
            write_page(results)
    print(json.dumps([asdict(each) for each in results], indent=1))
    if any(each.failed for each in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
