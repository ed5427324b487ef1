"""A missing or old Java is told in one sentence that names the package to install."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "check_java.py"


def check(path: Path, java_home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path)} | ({"JAVA_HOME": str(java_home)} if java_home else {})
    return subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )


def fake_java(folder: Path, script: str) -> Path:
    """A `java` that prints to standard error, as the real one does."""
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["17.0.9", "21", "25-ea"])
def test_a_new_enough_java_is_silent(tmp_path: Path, version: str) -> None:
    run = check(fake_java(tmp_path / "bin", f"""echo 'openjdk version "{version}"' >&2"""))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("""echo 'java version "1.8.0_392"' >&2""", "only Java 8 was found"),
        ("""echo 'openjdk version "11.0.21" 2023-10-17' >&2""", "only Java 11 was found"),
        ("echo 'Unable to locate a Java Runtime' >&2; exit 1", "was not found"),
    ],
)
def test_an_old_or_broken_java_is_named(tmp_path: Path, script: str, expected: str) -> None:
    run = check(fake_java(tmp_path / "bin", script))
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert f"Java 17 is needed for Spark and {expected}" in run.stderr
    assert "openjdk-17-jre-headless" in run.stderr


def test_a_missing_java_is_named(tmp_path: Path) -> None:
    run = check(tmp_path)
    assert run.returncode == 1
    assert run.stderr == (
        "Java 17 is needed for Spark and was not found: install it, e.g. apt-get install "
        "openjdk-17-jre-headless (Debian, Ubuntu) or brew install openjdk@17 (macOS)\n"
    )


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    """As in Spark's own scripts."""
    new = fake_java(tmp_path / "bin", """echo 'openjdk version "17.0.1"' >&2""")
    fake_java(tmp_path / "old" / "bin", """echo 'java version "1.8.0_392"' >&2""")
    assert "Java 8" in check(new, java_home=tmp_path / "old").stderr
