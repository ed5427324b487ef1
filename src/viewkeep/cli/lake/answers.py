"""`viewkeep read` and `viewkeep query`: rows of tables and views, and of queries over them."""

from typing import Annotated, Any

import typer

from viewkeep.cli.lake.names import complete_name
from viewkeep.cli.lake.open_lake import AsJson, EngineName, LakePath, open_keeper, print_answer
from viewkeep.cli.screen import write
from viewkeep.cli.source import read_argument
from viewkeep.errors import ViewkeepError

Limit = Annotated[
    int | None,
    typer.Option(
        help="Rows to show; 0 is all. By default 20, and all with --json and --csv.",
        metavar="N",
        min=0,
        show_default=False,
    ),
]
AsCsv = Annotated[bool, typer.Option("--csv", metavar="", help="Print CSV with a header.")]
SHOWN = 20
"""The rows that people see if they do not say how many."""


def read(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a table or view.", autocompletion=complete_name, show_default=False
        ),
    ],
    version: Annotated[
        int | None,
        typer.Option(
            help="An older version; by default the newest.", metavar="N", show_default=False
        ),
    ] = None,
    limit: Limit = None,
    lake: LakePath = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the rows of a table or view as it is stored.

    **Examples**

    ```text
    viewkeep read cost

    viewkeep read cost --version 3 --limit 0 --json
    ```
    """
    most = _row_limit(limit, as_json, as_csv)
    with open_keeper(lake, "reading ...") as keeper:
        rows = keeper.read(name, version, backend="duckdb")
    _show_rows(rows, most, as_json, as_csv)


def query(
    sql: Annotated[
        str,
        typer.Argument(
            help="A SELECT, a file with it, or - for standard input.", show_default=False
        ),
    ],
    limit: Limit = None,
    lake: LakePath = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    backend: EngineName = "auto",
) -> None:
    """Run a query over the tables and views of the lake, as they are now; nothing is changed.

    SQL means what it means in a view, and ORDER BY is the order of the rows. DuckDB runs it, in
    this process; what only Spark computes goes there, where it is installed.

    **Examples**

    ```text
    viewkeep query "SELECT * FROM cost ORDER BY cost DESC LIMIT 10"

    viewkeep query "SELECT count(*) FROM orders" --json

    viewkeep query report.sql --csv > report.csv
    ```
    """
    most, source = _row_limit(limit, as_json, as_csv), read_argument(sql)
    with open_keeper(lake, "running ...", backend=backend) as keeper, source.named_in_errors():
        rows = keeper.query(source.text, None if most is None else most + 1)
    _show_rows(rows, most, as_json, as_csv)


def _row_limit(limit: int | None, as_json: bool, as_csv: bool) -> int | None:
    """The most rows that are shown; None for all."""
    if as_json and as_csv:
        raise ViewkeepError("give --json or --csv, not both")
    if limit is None:
        return None if as_json or as_csv else SHOWN
    return limit or None


def _show_rows(table: Any, most: int | None, as_json: bool, as_csv: bool) -> None:
    from viewkeep.report.lake.answer import answer_csv, answer_json, answer_page

    columns = {field.name: str(field.type) for field in table.schema}
    shown = table if most is None else table.slice(0, most)
    rows, has_more = shown.to_pylist(), table.num_rows > shown.num_rows
    if as_csv:
        write(answer_csv(list(columns), rows))
        return
    print_answer(
        as_json,
        lambda: answer_json(columns, rows, has_more),
        lambda: answer_page(columns, rows, has_more),
    )
