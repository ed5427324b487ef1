"""`viewkeep ingest` and `viewkeep quarantine`: files of changes, and records that did not fit."""

from typing import Annotated

import typer

from viewkeep.cli.lake.names import complete_table
from viewkeep.cli.lake.open_lake import (
    AsJson,
    LakePath,
    open_keeper,
    print_answer,
    print_confirmation,
)

TableName = Annotated[
    str,
    typer.Argument(
        help="Name of the table.",
        autocompletion=complete_table,
        show_default=False,
    ),
]


def ingest(
    table: TableName,
    folder: Annotated[
        str, typer.Argument(help="Folder of change files.", metavar="FOLDER", show_default=False)
    ],
    records: Annotated[
        str,
        typer.Option(help="changes, or debezium for its envelopes.", metavar="KIND"),
    ] = "changes",
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Take files of changes into a table, each of them exactly once.

    Files are CSV (the first line names the columns), JSON lines or Parquet, in the order of their
    names. A record has an operation (op: insert, update, upsert or delete), the key and values. A
    file that is not whole yet waits, and so do those after it; records that do not fit go to
    quarantine. `viewkeep watch --ingest TABLE=FOLDER` goes on taking files in.

    **Examples**

    ```text
    viewkeep ingest orders /data/incoming/orders

    viewkeep ingest orders /data/kafka/orders --records debezium --json
    ```
    """
    from viewkeep.report.lake.intake import ingest_json, ingest_text

    with open_keeper(lake, "reading ...") as keeper:
        report = keeper.ingest(table, folder, records)
    print_confirmation(as_json, ingest_json(report), ingest_text(report))


def quarantine(
    table: TableName,
    clear: Annotated[
        bool, typer.Option("--clear", metavar="", help="Forget the records that are there.")
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """List records of sources that did not fit a table: the file, the line and the reason.

    **Examples**

    ```text
    viewkeep quarantine orders

    viewkeep quarantine orders --clear
    ```
    """
    from viewkeep.report.lake.intake import quarantine_json, quarantine_page

    with open_keeper(lake, "reading ...") as keeper:
        if clear:
            count = keeper.clear_quarantine(table)
            print_confirmation(
                as_json, {"table": table, "cleared": count}, f"forgot {count} records"
            )
            return
        records = keeper.quarantine(table, backend="duckdb").to_pylist()
    print_answer(
        as_json, lambda: quarantine_json(table, records), lambda: quarantine_page(table, records)
    )
