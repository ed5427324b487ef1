"""Says in one sentence when the Java that Spark needs is missing or too old."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

NEEDED = 17
INSTALL = (
    f"install it, e.g. apt-get install openjdk-{NEEDED}-jre-headless (Debian, Ubuntu) "
    f"or brew install openjdk@{NEEDED} (macOS)"
)


def problem(environment: Mapping[str, str]) -> str | None:
    """What is wrong with the Java of this environment, or None."""
    found = version_banner(environment)
    if found is None:
        return f"Java {NEEDED} is needed for Spark and was not found: {INSTALL}"
    major = major_version(found)
    if major is None or major < NEEDED:
        have = f"Java {major}" if major is not None else "an unknown Java"
        return f"Java {NEEDED} is needed for Spark and only {have} was found: {INSTALL}"
    return None


def version_banner(environment: Mapping[str, str]) -> str | None:
    """What `java -version` prints, or None when no Java runs; JAVA_HOME goes first, as in Spark."""
    home = environment.get("JAVA_HOME")
    java = (
        os.path.join(home, "bin", "java")
        if home
        else shutil.which("java", path=environment.get("PATH", os.defpath))
    )
    if java is None:
        return None
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):  # macOS has a `java` that only says it is absent
        return None
    return run.stderr + run.stdout


def major_version(banner: str) -> int | None:
    """The major version in a banner: 17 of "17.0.9", 8 of "1.8.0_392"."""
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(match.group(1)) if match else None


if __name__ == "__main__":
    sentence = problem(os.environ)
    if sentence is not None:
        sys.exit(sentence)
