"""`viewkeep maintain`: load files, follow a file of changes, print the result or its changes."""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.options import (
    Degrees,
    Dependencies,
    ForeignKeys,
    InsertOnly,
    Keys,
    SchemaFile,
    StaticRelations,
    Texts,
    named_value,
)
from viewkeep.cli.query.printer import Printer
from viewkeep.cli.screen import show, write
from viewkeep.cli.source import read_argument, read_file
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from viewkeep.reading import Tables
    from viewkeep.stream import Stream

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""


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
        bool, typer.Option("--deltas", metavar="", help="Print the changes of the result instead.")
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
        bool,
        typer.Option("--program", metavar="", help="First print what runs: maps and triggers."),
    ] = False,
    strategy: Annotated[
        str,
        typer.Option(
            help="auto, recompute, delta, recursive, viewtree or epsilon.", metavar="NAME"
        ),
    ] = "auto",
    epsilon: Annotated[
        str | None,
        typer.Option(
            help="With the strategy epsilon, values are heavy from N^E rows on: a number E "
            "between 0 and 1, one for each relation as in R=0.3,S=0.5, or first-order, factorized, "
            "factorized:R; by default the best one, as explain tells it.",
            metavar="E",
        ),
    ] = None,
    space: Annotated[
        str,
        typer.Option(
            help="With the strategy epsilon, for counts: fast, or linear for views of linear size.",
            metavar="KIND",
        ),
    ] = "fast",
    output: Annotated[
        str, typer.Option(help="How the result is kept: factorized or list.", metavar="KIND")
    ] = "factorized",
    mode: Annotated[
        str,
        typer.Option(help="When updates are applied: eager or lazy (when read).", metavar="MODE"),
    ] = "eager",
    schema: SchemaFile = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            metavar="",
            help="Whether files of rows start with a header. By default it is one if it names the "
            "columns.",
            show_default=False,
        ),
    ] = None,
    fd: Dependencies = None,
    key: Keys = None,
    foreign_key: ForeignKeys = None,
    degree: Degrees = None,
    static: StaticRelations = None,
    insert_only: InsertOnly = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="Print no progress and no summary.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print JSON, an object per line.")
    ] = False,
) -> None:
    """Keep the result of a query fresh while changes come in.

    Results go to standard output, progress and the summary to standard error. Options with a
    relation, a constraint or an input may be repeated.

    **Examples**, after `cd examples/maintain`

    ```text
    viewkeep maintain "Q(a, c) = R(a, b) * S(b, c)" \\
      --load R=r.csv --load S=s.csv --updates changes.csv

    viewkeep maintain "Q(a; count(), sum(c)) = R(a, b) * S(b, c)" \\
      --load R=r.csv --load S=s.csv --updates changes.csv --deltas

    viewkeep maintain "Q(c | a) = R(a, b) * S(b, c)" --given a=1 \\
      --updates changes.csv --every 2

    viewkeep maintain cost.sql --schema tables.sql --load parts=parts.csv \\
      --load devices_parts=devices_parts.csv --updates parts_changes.csv

    viewkeep maintain "Q() = R(a, b) * S(b, c)" --program \\
      --updates - < changes.csv
    ```
    """
    sources = [named_value(each, "--load R=FILE") for each in load or ()]
    _check_standard_input(query, updates, *(name for _, name in sources))
    stream = _open_stream(
        query,
        schema,
        strategy=strategy,
        epsilon=None if epsilon is None else _read_epsilon(epsilon),
        space=space,
        output=output,
        mode=mode,
        fds=fd or (),
        keys=key or (),
        foreign_keys=foreign_key or (),
        degrees=degree or (),
        static=static or (),
        insert_only=insert_only,
    )
    printer = Printer(stream, _input_values(given or ()), deltas, every, limit, quiet, as_json)
    try:
        with printer.progress():
            stream.load(sources, header)
            printer.start(program)
            for count in [0] if updates is None else stream.follow(updates, printer.every):
                printer.show(count)
    except KeyboardInterrupt:
        printer.summary(interrupted=True)
        raise typer.Exit(INTERRUPTED) from None
    _print_summary(stream, printer, quiet, as_json)


def _open_stream(query: str, schema: str | None, **options: Any) -> "Stream":
    """Read the query and plan it. Imports are here to keep `--help` fast."""
    from viewkeep.maintainer import maintain as plan
    from viewkeep.reading import read_query, read_tables, with_created_tables
    from viewkeep.stream import Stream

    tables: Tables = {}
    if schema is not None:
        schema_source = read_file(schema)
        with schema_source.named_in_errors():
            tables = read_tables(schema_source.text)
    source = read_argument(query)
    with source.named_in_errors():
        tables = with_created_tables(source.text, tables)
        parsed = read_query(source.text, tables)
    # The summary tells steps, which the reference engine counts.
    return Stream(plan(parsed, engine="reference", **options), tables)


def _read_epsilon(text: str) -> float | dict[str, float] | str:
    """A number, a number by name, or a preset, which the planner checks.

    A name goes up to its `=`, since a split on two variables is called `a, b`.
    """
    number = _number_or_none(text)
    if number is not None:
        return number
    if "=" not in text:
        return text
    pairs = re.findall(r"([^=]+)=([^=,]*)(?:,|$)", text)
    exponents = {name.strip(): _number_or_none(value) for name, value in pairs}
    if None in exponents.values() or "".join(f"{n}={v}," for n, v in pairs) != f"{text},":
        raise ViewkeepError(f'"{text}": expected names and numbers, as in --epsilon R=0.3,S=0.5')
    return {name: value for name, value in exponents.items() if value is not None}


def _number_or_none(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _print_summary(stream: "Stream", printer: Printer, quiet: bool, as_json: bool) -> None:
    """Print the summary and the heavy values: of JSON the summary is the last line."""
    from viewkeep.report.live.heavy import heavy_json, heavy_section

    live = stream.live
    partitions = () if quiet else live.partitions()
    if partitions and as_json:
        write(json.dumps(heavy_json(live.program, partitions), ensure_ascii=False) + "\n")
    printer.summary()
    if partitions and not as_json:
        show(heavy_section(live.program, partitions), stderr=True)


def _input_values(texts: Sequence[str]) -> dict[str, Any]:
    from viewkeep.csv_input import read_value

    pairs = [named_value(each, "--given a=1") for each in texts]
    return {name: read_value(value) for name, value in pairs}


def _check_standard_input(*names: str | None) -> None:
    if names.count("-") > 1:
        raise ViewkeepError("standard input (-) can be read only once")
