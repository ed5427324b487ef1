"""Which lake a command works on, and what people see while it works."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.screen import show, tell, write
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from viewkeep.keeper import Keeper

FAILED = 1
"""The exit code when something failed, or when the answer is no."""

VARIABLE, LOG_VARIABLE = "VIEWKEEP_LAKE", "VIEWKEEP_SPARK_LOG"
PROJECT = "viewkeep.toml"
"""The file that makes a folder a project."""
OWN = "_viewkeep"
"""The folder that makes a folder a lake."""

LakePath = Annotated[
    str | None,
    typer.Option(
        "--lake",
        envvar=VARIABLE,
        help="Folder of the lake; by default the current one, or that of the project here.",
        metavar="PATH",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="The engine that does the work: auto, duckdb or spark. By default DuckDB does what "
        "is small enough and what it computes exactly as Spark does.",
        metavar="NAME",
        show_default=False,
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="The moment that current_date() and current_timestamp() tell, in UTC; by default now.",
        metavar="TIME",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for programs.")]


@contextmanager
def opened(
    lake: str | None,
    doing: str,
    create: bool = False,
    backend: str = "auto",
    functions: Mapping[str, Any] | None = None,
) -> Iterator["Keeper"]:
    """The keeper of a lake; Spark, where it is installed, is started when work needs it, and knows
    the user's functions. Failures are amounts."""
    place = lake if lake is not None else _current()
    library = _library()
    try:
        with _progress(doing) as say:

            def session() -> Any:
                say("starting Spark ...")
                started = library.local_session(os.environ.get(LOG_VARIABLE, os.devnull), functions)
                say(doing)
                return started

            spark = session if find_spec("pyspark") is not None else None
            yield library.Keeper(place, spark, create=create, backend=backend)
    except Exception as error:
        if not library.is_failure(error):
            raise
        tell(error)
        raise typer.Exit(FAILED) from None


def answer(
    as_json: bool, document: Callable[[], Any], page: Callable[[], "RenderableType"]
) -> None:
    """Print for programs or for people."""
    if as_json:
        write(json.dumps(document(), indent=2, default=str) + "\n")
    else:
        show(page())


def confirm(as_json: bool, document: dict[str, Any], text: str) -> None:
    """Print what was done, in a sentence."""
    from rich.text import Text

    answer(as_json, lambda: document, lambda: Text(text))


def find_lake(lake: str | None) -> str | None:
    """The lake that is named, or current: this folder, or that of the project in it; or None."""
    if lake is not None:
        return lake
    if Path(OWN).is_dir():
        return "."
    return _project_lake() if Path(PROJECT).is_file() else None


def _project_lake() -> str:
    from viewkeep.project.read import read_lake_place

    return read_lake_place(Path())


def _current() -> str:
    lake = find_lake(None)
    if lake is None:
        raise ViewkeepError(
            f"no lake: name it with --lake PATH or the environment variable {VARIABLE}, or go to "
            "its folder; `viewkeep init PATH` makes one"
        )
    return lake


def _library() -> Any:
    """The keeper, which needs libraries that not everyone has."""
    try:
        from viewkeep import keeper
    except ModuleNotFoundError as error:
        missing = ViewkeepError(
            f"the library {error.name} is not installed, which lakes need: "
            "pip install 'viewkeep[lake]' installs it"
        )
        tell(missing)
        raise typer.Exit(FAILED) from None
    return keeper


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[str], None]]:
    """A line that moves on terminals; elsewhere only what takes long is confirm."""
    if not sys.stderr.isatty():
        yield lambda text: write(f"{text}\n", stderr=True) if text != doing else None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None)

        def say(text: str) -> None:
            progress.update(task, description=escape(text))

        with _log_lines(say):
            yield say


@contextmanager
def _log_lines(say: Callable[[str], None]) -> Iterator[None]:
    """What the library logs about its work, such as the view that is refreshed, is said as well."""
    handler, logger = _SayingHandler(say), logging.getLogger("viewkeep")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(level, logging.INFO) if level else logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


class _SayingHandler(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())
