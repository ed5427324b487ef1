"""Runs the examples of pages about lakes: all of a page in one process, one after the other.

Spark takes seconds to start, so the blocks of a page share one process, its variables and its
folder. A block of `csv` or `sql` with a name behind (```csv prices.csv) is the file of that name.
Times differ from run to run: what a page shows stays if only times are different.
"""

import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from viewkeep.cli.main import run

WIDTH = "80"
PLACE = "/data"
"""The folder of a page's examples, as the page shows it."""

_BLOCK = re.compile(
    r"^```(?P<kind>python|console|csv|sql)(?: (?P<file>\S+))?\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_TIMES = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "MOMENT"),
    (r"\b(\d+ (s|min|h|days) ago|now)\b", "AGO"),
    (r"\b\d[\d.,]* (s|min|h)\b", "TIME"),
    (r"\b\d[\d.,]*x\b", "TIMES"),
    (r"[ ─]+", " "),
)


def refreshed_live(page: str, examples: Path) -> str:
    """The page with what its examples print now; Spark is that of the process, or started."""
    with _place(examples) as folder:
        names: dict[str, Any] = {"__name__": "__main__"}
        return _BLOCK.sub(lambda block: _run(block, names, folder), page)


def _run(block: re.Match[str], names: dict[str, Any], folder: Path) -> str:
    whole, code, shown = block[0], block["code"], block["output"]
    match block["kind"]:
        case "csv" | "sql":
            if block["file"]:
                Path(block["file"]).write_text(code, encoding="utf-8")
            return whole
        case "python":
            found = _printed(code, names, folder)
            if shown is None:
                return whole if not found else f"{whole}\n```text\n{found}```\n"
            return whole if _same(shown, found) else whole.replace(_text(shown), _text(found))
    found = "\n".join(_answers(code, folder))
    return whole if _same(code, found) else f"```console\n{found}```\n"


def _printed(code: str, names: dict[str, Any], folder: Path) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(code, "example", "exec"), names)
    return _tidy(out.getvalue(), folder)


def _answers(session: str, folder: Path) -> Iterator[str]:
    """The commands of a block, each with its output."""
    for command in re.findall(r"^\$ viewkeep (.*)$", session, re.MULTILINE):
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            try:
                run(shlex.split(command))
            except SystemExit as exit_:
                if exit_.code:
                    out.write(f"(exit code {exit_.code})\n")
        yield f"$ viewkeep {command}\n{_tidy(out.getvalue(), folder)}"


def _tidy(text: str, folder: Path) -> str:
    """Without what a page does not show: the start of Spark, blank lines, the real folder."""
    text = text.replace("starting Spark ...\n", "").replace(str(folder), PLACE)
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _same(shown: str, found: str) -> bool:
    return _timeless(shown) == _timeless(found)


def _timeless(text: str) -> str:
    for pattern, word in _TIMES:
        text = re.sub(pattern, word, text)
    return text


def _text(output: str) -> str:
    return f"```text\n{output}```\n"


@contextmanager
def _place(examples: Path) -> Iterator[Path]:
    """A new folder to work in, and a plain screen."""
    before = {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR", "VIEWKEEP_LAKE")}
    with TemporaryDirectory() as name, chdir(name):
        (Path(name) / "examples").symlink_to(examples)
        os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1"}
        os.environ.pop("VIEWKEEP_LAKE", None)
        try:
            yield Path(name)
        finally:
            for variable, value in before.items():
                os.environ.pop(variable, None)
                os.environ |= {} if value is None else {variable: value}
