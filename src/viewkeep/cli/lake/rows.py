"""Files of rows (CSV with a header, JSON lines, Parquet), and tables declared by text or files."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from viewkeep.cli.source import read_file
from viewkeep.errors import ViewkeepError
from viewkeep.reading import Table, Tables

JSON_LINES = (".jsonl", ".ndjson")


class NewTable(NamedTuple):
    """A table to create: its columns, or rows that have them, and its constraints."""

    name: str
    data: Any
    constraints: dict[str, Any]
    rows: Any = None


def read_rows_file(name: str, table: Table) -> Any:
    """The rows of a file; values of text have the declared types, those of Parquet their own."""
    if name.lower().endswith(".parquet"):
        return _read_parquet(name)
    if name.lower().endswith(JSON_LINES):
        return list(_read_json_lines(name, table))
    from viewkeep.csv_input import CsvFile, read_declared

    file = CsvFile(name)
    try:
        with file.named_in_errors():
            return list(read_declared(file, table))
    finally:
        file.close()


def typed_row(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """A row of JSON; what JSON has no type for stands there as text: decimals, dates, times."""
    from viewkeep.csv_input import read_field

    fields = {field.name: field for field in table.columns if str(field.type) != "string"}
    return {
        name: read_field(fields[name])(value)
        if isinstance(value, str) and name in fields
        else value
        for name, value in row.items()
    }


def new_tables(
    name: str | None,
    columns: str | None,
    schema: str | None,
    rows: str | None,
    own_constraints: dict[str, Any],
) -> list[NewTable]:
    """The tables to create: from statements, a list of columns, or a Parquet file of rows."""
    if columns is None and schema is None:
        return [_table_from_rows(name, rows, own_constraints)]
    tables = _tables_from_text(name, columns, schema)
    if len(tables) > 1 and (rows is not None or any(own_constraints.values())):
        raise ViewkeepError("these options are for one table: name it")
    return [
        _table_from_columns(each, table, rows, own_constraints) for each, table in tables.items()
    ]


def _table_from_rows(
    name: str | None, rows: str | None, own_constraints: dict[str, Any]
) -> NewTable:
    if name is None:
        raise ViewkeepError("name the table, or give --schema FILE with CREATE TABLE statements")
    if rows is None or not rows.lower().endswith(".parquet"):
        raise ViewkeepError(
            f'table "{name}": its columns are not known; give them, as in '
            '--columns "id int, price double"'
        )
    return NewTable(name, _read_parquet(rows), own_constraints)


def _tables_from_text(name: str | None, columns: str | None, schema: str | None) -> Tables:
    from viewkeep.reading import read_tables

    if schema is None:
        if name is None:
            raise ViewkeepError("name the table that has these columns")
        return read_tables(f"CREATE TABLE `{name}` ({columns})")
    if columns is not None:
        raise ViewkeepError("give --columns or --schema, not both")
    source = read_file(schema)
    with source.named_in_errors():
        tables = read_tables(source.text)
    if name is not None and name not in tables:
        raise ViewkeepError(f'{schema}: there is no table "{name}" ({", ".join(tables)})')
    return tables if name is None else {name: tables[name]}


def _table_from_columns(
    name: str, table: Table, rows: str | None, own_constraints: dict[str, Any]
) -> NewTable:
    """A table with the constraints of its statement and of the options."""
    constraints = {
        "key": own_constraints["key"] or table.key,
        "foreign_keys": (*table.foreign_keys, *own_constraints["foreign_keys"]),
        "fds": (*table.fds, *own_constraints["fds"]),
        "static": table.static or own_constraints["static"],
    }
    columns = {field.name: field for field in table.columns}
    first_rows = None if rows is None else read_rows_file(rows, table)
    return NewTable(name, columns, constraints, first_rows)


def _read_json_lines(name: str, table: Table) -> Iterator[dict[str, Any]]:
    """A row for each line that is not empty."""
    source = read_file(name)
    with source.named_in_errors():
        for number, line in enumerate(source.text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_float=str)
            except (ValueError, RecursionError) as error:
                raise ViewkeepError(f"line {number} is no JSON: {error}") from None
            if not isinstance(row, dict):
                raise ViewkeepError(f'line {number}: expected a row, as in {{"id": 1}}')
            try:
                yield typed_row(row, table)
            except ViewkeepError as error:
                raise ViewkeepError(f"line {number}: {error}") from None


def _read_parquet(name: str) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        return pq.read_table(name)
    except FileNotFoundError:
        raise ViewkeepError(f'there is no file "{name}"') from None
    except (OSError, pa.ArrowException) as error:
        raise ViewkeepError(f'cannot read "{name}": {error}') from None
