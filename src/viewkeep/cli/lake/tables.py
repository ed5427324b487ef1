"""`viewkeep init`, `viewkeep table` and `viewkeep apply`: a lake, its tables, and their changes."""

from collections.abc import Mapping, Sized
from typing import Annotated

import typer

from viewkeep.cli.command import Command, group
from viewkeep.cli.lake.names import complete_table
from viewkeep.cli.lake.open_lake import (
    AsJson,
    LakePath,
    open_keeper,
    print_answer,
    print_confirmation,
)
from viewkeep.cli.options import (
    ColumnForeignKeys,
    KeyColumns,
    SchemaFile,
    Static,
    TableDependencies,
)
from viewkeep.errors import ViewkeepError

app = group(help="Make, register, alter, list and drop the base tables of a lake.")

Name = Annotated[
    str,
    typer.Argument(
        help="Name of the table.",
        autocompletion=complete_table,
        show_default=False,
    ),
]


def init(
    path: Annotated[str, typer.Argument(help="Folder of the new lake.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a lake: a folder for tables and views.

    **Example**

    ```text
    viewkeep init /data/lake
    ```
    """
    with open_keeper(path, "making the lake ...", create=True) as keeper:
        tables, views = len(keeper.tables), len(keeper.views)
    has = f"it has {tables} tables and {views} views" if tables or views else "it is empty"
    print_confirmation(
        as_json, {"lake": path, "tables": tables, "views": views}, f"{path} is a lake; {has}"
    )


@app.command("create", cls=Command)
def create_table(
    name: Annotated[
        str | None,
        typer.Argument(help="Name; with --schema, all tables without it.", show_default=False),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns with their types, as in SQL.", metavar='"id int, ..."'),
    ] = None,
    schema: SchemaFile = None,
    rows: Annotated[
        str | None,
        typer.Option(help="First rows: a file of CSV, JSON lines or Parquet.", metavar="FILE"),
    ] = None,
    key: KeyColumns = None,
    foreign_key: ColumnForeignKeys = None,
    fd: TableDependencies = None,
    static: Static = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Make tables that `viewkeep apply` changes.

    Columns come from --columns, from CREATE TABLE statements (--schema), or from a Parquet file
    (--rows). The first line of a CSV file names its columns. Every table needs a key.

    **Examples**

    ```text
    viewkeep table create parts --columns "pid int, price decimal(10,2)" --key pid

    viewkeep table create parts --columns "pid int primary key, price int" \\
      --rows parts.csv

    viewkeep table create orders --rows orders.parquet --key order_id

    viewkeep table create --schema tables.sql
    ```
    """
    from viewkeep.cli.lake.rows import new_tables

    constraints = {
        "key": key or (),
        "foreign_keys": foreign_key or (),
        "fds": fd or (),
        "static": static,
    }
    with open_keeper(lake, "writing ...") as keeper:
        tables = new_tables(name, columns, schema, rows, constraints)
        for each in tables:
            keeper.create_table(each.name, each.data, rows=each.rows, **each.constraints)
    names = [each.name for each in tables]
    print_confirmation(as_json, {"created": names}, f"created {', '.join(names)}")


@app.command(cls=Command)
def register(
    name: Name,
    location: Annotated[
        str,
        typer.Argument(
            help="Folder or URI of a Delta table, or its name in a catalog of Spark.",
            show_default=False,
        ),
    ],
    key: KeyColumns = None,
    foreign_key: ColumnForeignKeys = None,
    fd: TableDependencies = None,
    static: Static = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="In place of a table that is registered under the name."),
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Make a Delta table that others write known to the lake.

    Its key is checked once, now, and trusted from then on. Rows of a table without a key are told
    apart by all columns that a view reads, and by the number of the copy. Columns that its writers
    add, widen or drop are seen by the next refresh; --replace is for another key or place.

    **Examples**

    ```text
    viewkeep table register orders /data/warehouse/orders --key order_id

    viewkeep table register orders /data/archive/orders --key order_id --replace
    ```
    """
    constraints = (key or (), foreign_key or (), fd or (), static)
    with open_keeper(lake, "reading ...") as keeper:
        keeper.register_table(name, location, *constraints, replace=replace)
    print_confirmation(as_json, {"registered": name}, f"registered {name}")


@app.command("alter", cls=Command)
def alter_table(
    name: Name,
    add: Annotated[
        list[str] | None,
        typer.Option(help="A new column with its type.", metavar='"NAME TYPE"'),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to drop.", metavar="NAME")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(help="A column and its new name.", metavar="OLD=NEW")
    ] = None,
    widen: Annotated[
        list[str] | None,
        typer.Option(help="A column and a wider type for it.", metavar='"NAME TYPE"'),
    ] = None,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Give a table other columns, in one commit.

    New columns are NULL in the rows that are there. Views go on with the columns that they were
    created over; those that read a column which is dropped or renamed stop, and are named; those
    that read a wider one are computed anew by the next refresh. Options may be given several times.

    **Examples**

    ```text
    viewkeep table alter parts --add "colour string" --widen "price bigint"

    viewkeep table alter parts --rename name=title --drop weight
    ```
    """
    with open_keeper(lake, "altering ...") as keeper:
        stopped = keeper.alter_table(
            name,
            add=_pairs(add, None, "NAME TYPE"),
            drop=drop or (),
            rename=_pairs(rename, "=", "OLD=NEW"),
            widen=_pairs(widen, None, "NAME TYPE"),
        )
    views = f"; these views read columns that are gone: {', '.join(stopped)}" if stopped else ""
    print_confirmation(as_json, {"altered": name, "stopped": stopped}, f"altered {name}{views}")


def _pairs(texts: list[str] | None, separator: str | None, form: str) -> dict[str, str]:
    """Names with what is given for them, from texts of one form."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        parts = [each.strip() for each in text.split(separator, 1)]
        if len(parts) != 2 or not all(parts):
            raise ViewkeepError(f'"{text}": expected {form}')
        if parts[0] in pairs:
            raise ViewkeepError(f'column "{parts[0]}" is given twice')
        pairs[parts[0]] = parts[1]
    return pairs


@app.command("list", cls=Command)
def list_tables(lake: LakePath = None, as_json: AsJson = False) -> None:
    """List the base tables.

    **Example**

    ```text
    viewkeep table list --lake /data/lake
    ```
    """
    from viewkeep.report.lake.definitions import tables_json, tables_page

    with open_keeper(lake, "reading ...") as keeper:
        tables = keeper.describe_tables()
    print_answer(as_json, lambda: tables_json(tables), lambda: tables_page(tables))


@app.command("drop", cls=Command)
def drop_table(name: Name, lake: LakePath = None, as_json: AsJson = False) -> None:
    """Forget a table; its folder stays, and can be registered.

    **Example**

    ```text
    viewkeep table drop parts
    ```
    """
    with open_keeper(lake, "dropping ...") as keeper:
        keeper.drop_table(name)
    print_confirmation(as_json, {"dropped": name}, f"dropped {name}; its folder is still there")


def apply(
    table: Annotated[
        str,
        typer.Argument(
            help="Name of the table; or a folder or JSON file with changes of several.",
            metavar="TABLE|CHANGES",
            show_default=False,
        ),
    ],
    inserts: Annotated[str | None, typer.Option(help="File of whole rows.", metavar="FILE")] = None,
    updates: Annotated[
        str | None,
        typer.Option(help="File with the key and any of the other columns.", metavar="FILE"),
    ] = None,
    deletes: Annotated[
        str | None, typer.Option(help="File with the key columns.", metavar="FILE")
    ] = None,
    upserts: Annotated[
        str | None,
        typer.Option(help="File of whole rows, new or in the place of old ones.", metavar="FILE"),
    ] = None,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Change a table: deletes, then updates, then inserts, all of it or nothing.

    Upserts are inserted, or put in the place of the rows that have their keys.

    Files are CSV, whose first line names the columns, JSON lines (.jsonl) or Parquet; - is CSV from
    standard input.
    Several tables change together, and views see all of it or nothing: CHANGES is a folder with
    files such as orders.inserts.csv and lines.updates.parquet, or a JSON file.

    **Examples**

    ```text
    viewkeep apply parts --updates prices.csv

    viewkeep apply parts --inserts new.parquet --deletes gone.csv

    viewkeep apply todays_changes/

    echo '{"parts": {"deletes": [{"pid": 7}]}, "uses": {"deletes": [{"pid": 7}]}}' > gone.json
    viewkeep apply gone.json
    ```
    """
    from viewkeep.cli.lake.change_files import has_several_tables

    options = {"inserts": inserts, "updates": updates, "deletes": deletes, "upserts": upserts}
    files = {kind: file for kind, file in options.items() if file is not None}
    if not files and has_several_tables(table):
        _apply_transaction(table, lake, as_json)
        return
    if not files:
        raise ViewkeepError(
            "nothing to apply: give --inserts, --updates, --deletes or --upserts, or a folder of "
            "changes"
        )
    if list(files.values()).count("-") > 1:
        raise ViewkeepError("standard input (-) can be read only once")
    _apply_to_table(table, files, lake, as_json)


def _apply_to_table(table: str, files: Mapping[str, str], lake: str | None, as_json: bool) -> None:
    from viewkeep.cli.lake.rows import read_rows_file

    with open_keeper(lake, "applying ...") as keeper:
        definition = keeper.table(table)
        rows_by_kind = {kind: read_rows_file(file, definition) for kind, file in files.items()}
        version = keeper.apply(table, **rows_by_kind)
    document = {"table": table, "version": version, **_row_counts(rows_by_kind)}
    print_confirmation(
        as_json, document, f"{_amounts_text(rows_by_kind)}: {table} is at version {version}"
    )


def _apply_transaction(place: str, lake: str | None, as_json: bool) -> None:
    from viewkeep.cli.lake.change_files import read_change_files

    with open_keeper(lake, "applying ...") as keeper:
        changes = read_change_files(place, keeper.table)
        versions = keeper.transaction(changes)
    tables = [
        {"table": name, "version": version, **_row_counts(changes[name])}
        for name, version in versions.items()
    ]
    lines = [
        f"{_amounts_text(changes[name])}: {name} is at version {version}"
        for name, version in versions.items()
    ]
    print_confirmation(as_json, {"tables": tables}, "\n".join(lines))


def _row_counts(rows_by_kind: Mapping[str, Sized]) -> dict[str, int]:
    return {kind: len(rows) for kind, rows in rows_by_kind.items()}


def _amounts_text(rows_by_kind: Mapping[str, Sized]) -> str:
    from viewkeep.report.live.maintenance import count_text

    counts = _row_counts(rows_by_kind)
    return ", ".join(count_text(count, kind.removesuffix("s")) for kind, count in counts.items())
