"""`viewkeep capture postgres`: tables of PostgreSQL, followed by tables of a lake."""

import json
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.command import Command, group
from viewkeep.cli.lake.open_lake import AsJson, LakePath, open_keeper, print_confirmation
from viewkeep.cli.lake.watch import stopped_by_signals
from viewkeep.cli.screen import write
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from viewkeep.keeper import Keeper

app = group(help="Follow tables of databases: what changes there changes tables of the lake.")


@app.command(cls=Command)
def postgres(
    dsn: Annotated[
        str,
        typer.Argument(
            help="Database, as postgresql://user@host/database. Give passwords in PGPASSWORD or "
            "~/.pgpass: other users of this machine see arguments.",
            metavar="DSN",
            show_default=False,
        ),
    ],
    tables: Annotated[
        list[str],
        typer.Argument(
            help="Tables, as orders, sales.orders, or orders=sales.orders with another name in "
            "the lake.",
            metavar="TABLE...",
            show_default=False,
        ),
    ],
    follow: Annotated[
        bool,
        typer.Option("--follow", metavar="", help="Go on until Ctrl-C or SIGTERM."),
    ] = False,
    every: Annotated[
        float, typer.Option(help="Look so often when following.", metavar="SECONDS", min=0.01)
    ] = 0.2,
    anew: Annotated[
        bool,
        typer.Option("--anew", metavar="", help="Read all rows again, whatever was read before."),
    ] = False,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove", metavar="", help="Remove the log and its triggers from the database."
        ),
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Take in what changed in tables of PostgreSQL, each change exactly once.

    The first time, triggers and a log of changed keys are made (in the schema viewkeep of the
    database), tables are made in the lake, and all rows are read; then those that changed. A
    transaction there is one here. Writers never wait. Rows with values that no type of the lake
    holds go to quarantine.

    **Examples**

    ```text
    viewkeep capture postgres postgresql://me@db/shop orders sales.lines

    viewkeep capture postgres postgresql://me@db/shop orders --follow --json

    viewkeep capture postgres postgresql://me@db/shop orders --remove
    ```
    """
    named = _names(tables)
    with open_keeper(lake, "reading ...") as keeper:
        if remove:
            gone = keeper.stop_capture(dsn, named)
            text = "\n".join(_removed_text(*each) for each in gone.items())
            print_confirmation(as_json, {"removed": gone}, text)
            return
        _run(keeper, dsn, named, anew, every if follow else None, as_json)


def _run(
    keeper: "Keeper",
    dsn: str,
    tables: dict[str, str],
    anew: bool,
    every: float | None,
    as_json: bool,
) -> None:
    stop, print_report = Event(), _print_report_json if as_json else _print_report
    with keeper.capture(dsn, tables, anew) as capture, stopped_by_signals(stop):
        for each in capture.catch_up():
            print_report(each)
        if every is not None:
            capture.follow(print_report, stop, every)


def _names(texts: list[str]) -> dict[str, str]:
    """Tables of the database by their names in the lake; the same name where none is given."""
    named = dict[str, str]()
    for text in texts:
        name, equals, source = text.partition("=")
        if not name or (equals and not source):
            raise ViewkeepError(f'"{text}" is no table; name one as orders, or orders=sales.orders')
        if name in named:
            raise ViewkeepError(f'"{name}" stands twice; leave one out')
        named[name] = source
    return named


def _print_report(report: Any) -> None:
    from viewkeep.report.lake.intake import capture_text

    write(f"{report.error or capture_text(report)}\n", stderr=bool(report.error))


def _print_report_json(report: Any) -> None:
    from viewkeep.report.lake.intake import capture_json

    write(json.dumps(capture_json(report), default=str) + "\n")


def _removed_text(name: str, is_gone: bool) -> str:
    if is_gone:
        return f"{name}: the log and its triggers are gone"
    return f"{name}: another lake follows the table; its log stays"
