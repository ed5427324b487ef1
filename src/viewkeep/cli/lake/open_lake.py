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

from viewkeep.cli.screen import print_error, show, write
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
def open_keeper(
    lake: str | None,
    activity: str,
    create: bool = False,
    backend: str = "auto",
    functions: Mapping[str, Any] | None = None,
) -> Iterator["Keeper"]:
    """The keeper of a lake; Spark, where it is installed, is started when work needs it, and knows
    the user's functions. A failure of the lake is printed and ends the command."""
    place = lake if lake is not None else _current_lake()
    keeper_module = _keeper_module()
    try:
        with _progress_line(activity) as show_activity:

            def session() -> Any:
                show_activity("starting Spark ...")
                spark_session = keeper_module.local_session(
                    os.environ.get(LOG_VARIABLE, os.devnull), functions
                )
                show_activity(activity)
                return spark_session

            spark = session if find_spec("pyspark") is not None else None
            yield keeper_module.Keeper(place, spark, create=create, backend=backend)
    except Exception as error:
        if not keeper_module.is_failure(error):
            raise
        print_error(error)
        raise typer.Exit(FAILED) from None


def print_answer(
    as_json: bool, document: Callable[[], Any], page: Callable[[], "RenderableType"]
) -> None:
    """Print a JSON document, or a page for people."""
    if as_json:
        write(json.dumps(document(), indent=2, default=str) + "\n")
    else:
        show(page())


def print_confirmation(as_json: bool, document: dict[str, Any], text: str) -> None:
    """Print what was done, in a sentence."""
    from rich.text import Text

    print_answer(as_json, lambda: document, lambda: Text(text))


def find_lake(lake: str | None) -> str | None:
    """The lake of the option, else this folder, else that of its project; None if there is none."""
    if lake is not None:
        return lake
    if Path(OWN).is_dir():
        return "."
    return _project_lake() if Path(PROJECT).is_file() else None


def _project_lake() -> str:
    from viewkeep.project.read import read_lake_place

    return read_lake_place(Path())


def _current_lake() -> str:
    lake = find_lake(None)
    if lake is None:
        raise ViewkeepError(
            f"no lake: name it with --lake PATH or the environment variable {VARIABLE}, or go to "
            "its folder; `viewkeep init PATH` makes one"
        )
    return lake


def _keeper_module() -> Any:
    """The keeper, which needs libraries that not everyone has."""
    try:
        from viewkeep import keeper
    except ModuleNotFoundError as error:
        missing = ViewkeepError(
            f"the library {error.name} is not installed, which lakes need: "
            "pip install 'viewkeep[lake]' installs it"
        )
        print_error(missing)
        raise typer.Exit(FAILED) from None
    return keeper


@contextmanager
def _progress_line(activity: str) -> Iterator[Callable[[str], None]]:
    """A line that moves on terminals; elsewhere only slow activities are printed."""
    if not sys.stderr.isatty():
        yield lambda text: write(f"{text}\n", stderr=True) if text != activity else None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(activity, total=None)

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
