"""Runs the examples of README.md and of pages in docs and puts what they print where it stands.

- A `python` block is followed by a `text` block: its output.
- In a `console` block, lines that start with `$ viewkeep` are commands, the others their output.
- An `sql` block that starts with the comment `-- tables.sql` is the file of that name.

Pages about lakes run in one process (docs/live_pages.py), since Spark takes long to start.
`make docs` writes the pages; tests/test_docs.py compares them.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    ROOT / "docs" / "adaptive.md",
    ROOT / "docs" / "engine.md",
    ROOT / "docs" / "explain.md",
    ROOT / "docs" / "graph.md",
    ROOT / "docs" / "maintain.md",
    ROOT / "docs" / "maintenance.md",
    ROOT / "docs" / "operations.md",
    ROOT / "docs" / "projects.md",
    ROOT / "docs" / "scripts.md",
    ROOT / "docs" / "strategies" / "id.md",
    ROOT / "docs" / "strategies" / "viewtree.md",
)
LIVE_PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "keeper.md",
    ROOT / "docs" / "reading_views.md",
    ROOT / "docs" / "sources.md",
)
VIEWKEEP = Path(sys.executable).with_name("viewkeep")
WIDTH = "80"

_FILE = re.compile(r"^```sql\n(-- (\S+\.sql)\n.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"(^```python\n(.*?)^```\n\n```text\n).*?(^```$)", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"(^```console\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)


def refreshed(page: str) -> str:
    """The page with what its examples print now."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        for content, file in _FILE.findall(page):
            (folder / file).write_text(content, encoding="utf-8")
        page = _PYTHON.sub(lambda m: m[1] + _output(["python", "-c", m[2]], folder) + m[3], page)
        return _CONSOLE.sub(lambda m: m[1] + _session(m[2], folder) + m[3], page)


def _session(session: str, folder: Path) -> str:
    """The commands of a console block, each with its output."""
    commands = re.findall(r"^\$ (.*)$", session, re.MULTILINE)
    return "\n".join(f"$ {each}\n{_output(shlex.split(each), folder)}" for each in commands)


def _output(command: Sequence[str], folder: Path) -> str:
    """What a command prints, mistakes included, without blank lines around it."""
    programs = {"python": sys.executable, "viewkeep": str(VIEWKEEP)}
    run = subprocess.run(
        [programs[command[0]], *command[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,  # an example may show an error
    )
    return run.stdout.strip("\n") + "\n"


if __name__ == "__main__":
    from live_pages import refreshed_live

    for path in PAGES:
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in LIVE_PAGES:
        page = path.read_text(encoding="utf-8")
        path.write_text(refreshed_live(page, ROOT / "examples"), encoding="utf-8")
