"""`viewkeep maintain`: load files, follow a file of changes, print the result or its changes."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.screen import show, write
from viewkeep.cli.source import read_argument, read_file
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from viewkeep.report.maintenance import Json, Summary
    from viewkeep.stream import Stream

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""

SHOWN_ROWS = 20
"""How many rows of a result people are shown unless they ask for more."""

Texts = list[str]


def maintain(
    query: Annotated[
        str,
        typer.Argument(
            help="A query, an SQL view, a file with one of them, or - for standard input.",
            show_default=False,
        ),
    ],
    load: Annotated[
        Texts | None,
        typer.Option(help="CSV file with the first rows of a relation.", metavar="R=FILE"),
    ] = None,
    updates: Annotated[
        str | None,
        typer.Option(
            help="CSV file of changes, with lines like R,+1,1,2; - is standard input.",
            metavar="FILE",
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            help="Print after every N updates: the result (else only at the end), or with "
            "--deltas what changed since (else after each).",
            metavar="N",
            min=1,
        ),
    ] = None,
    deltas: Annotated[
        bool, typer.Option("--deltas", help="Print the changes of the result instead.")
    ] = False,
    given: Annotated[
        Texts | None, typer.Option(help="Value of an input of the query.", metavar="a=1")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Rows of the result to print; 0 is all. By default 20, and all with --json.",
            metavar="N",
            min=0,
            show_default=False,
        ),
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="First print what runs: maps and triggers.")
    ] = False,
    strategy: Annotated[
        str, typer.Option(help="auto, recompute, delta, recursive or viewtree.", metavar="NAME")
    ] = "auto",
    output: Annotated[
        str, typer.Option(help="How the result is kept: factorized or list.", metavar="KIND")
    ] = "factorized",
    mode: Annotated[
        str,
        typer.Option(help="When updates are applied: eager or lazy (when read).", metavar="MODE"),
    ] = "eager",
    schema: Annotated[
        str | None,
        typer.Option(help="File of CREATE TABLE statements.", metavar="FILE"),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether files of rows start with a header. By default it is one if it names the "
            "columns.",
            show_default=False,
        ),
    ] = None,
    fd: Annotated[
        Texts | None,
        typer.Option(help="Functional dependency on variables.", metavar='"x -> y"'),
    ] = None,
    key: Annotated[Texts | None, typer.Option(help="Key of a relation.", metavar='"C.id"')] = None,
    foreign_key: Annotated[
        Texts | None, typer.Option(help="Foreign key.", metavar='"M.c -> C.id"')
    ] = None,
    degree: Annotated[
        Texts | None, typer.Option(help="Bounded degree.", metavar='"S: x -> y <= 3"')
    ] = None,
    static: Annotated[
        Texts | None, typer.Option(help="Relation that never changes.", metavar="T")
    ] = None,
    insert_only: Annotated[
        bool, typer.Option("--insert-only", help="Rows are never deleted.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, an object per line.")] = False,
) -> None:
    """Keep the result of a query fresh while changes come in.

    Results go to standard output, progress and the summary to standard error. Options with a
    relation, a constraint or an input may be repeated.

    **Examples**, to be run where examples/ is

    - viewkeep maintain "Q(a, c) = R(a, b) * S(b, c)" --load R=examples/maintain/r.csv
      --load S=examples/maintain/s.csv --updates examples/maintain/changes.csv

    - viewkeep maintain "Q(a; count(), sum(c)) = R(a, b) * S(b, c)" --updates
      examples/maintain/changes.csv --deltas

    - viewkeep maintain "Q(c | a) = R(a, b) * S(b, c)" --given a=1 --updates
      examples/maintain/changes.csv --every 3

    - viewkeep maintain examples/maintain/cost.sql --schema examples/maintain/tables.sql
      --load parts=examples/maintain/parts.csv --updates examples/maintain/orders.csv
    """
    _check_standard_input(query, updates, load or ())
    constraints = {
        "fds": fd or (),
        "keys": key or (),
        "foreign_keys": foreign_key or (),
        "degrees": degree or (),
        "static": static or (),
        "insert_only": insert_only,
    }
    choice = {"strategy": strategy, "output": output, "mode": mode}
    stream = _open(query, schema, {**choice, **constraints})
    inputs = _inputs(given or ())
    printer = _Printer(stream, inputs, deltas, limit, quiet, as_json)
    printer.check()
    printer.start(program)
    sources = [_pair(each, "--load", "R=FILE") for each in load or ()]
    _run(stream, printer, sources, header, updates, every)


def _run(
    stream: "Stream",
    printer: "_Printer",
    sources: list[tuple[str, str]],
    header: bool | None,
    updates: str | None,
    every: int | None,
) -> None:
    """Load, follow, print; what was done is told also after Ctrl-C."""
    try:
        with printer.progress(every):
            stream.load(sources, header)
            if printer.deltas:
                stream.watch()
                every = every or 1
            points = [0] if updates is None else stream.follow(updates, every)
            
    except KeyboardInterrupt:
        printer.summary(interrupted=True)
        raise typer.Exit(INTERRUPTED) from None
    printer.summary()
