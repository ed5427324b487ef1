"""Changes of several tables in a folder, or in one JSON document."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from viewkeep.cli.lake.rows import JSON_LINES, read_rows_file, typed_row
from viewkeep.cli.source import read_file
from viewkeep.errors import ViewkeepError
from viewkeep.reading import Table

KINDS = ("inserts", "updates", "deletes", "upserts")
SUFFIXES = (".csv", ".parquet", *JSON_LINES)
Changes = dict[str, dict[str, Any]]
"""Rows by table and kind of change."""


def has_several_tables(name: str) -> bool:
    """Whether an argument is a folder or document of changes, and no table's name."""
    return name.lower().endswith(".json") or Path(name).is_dir()


def read_change_files(name: str, table: Callable[[str], Table]) -> Changes:
    """The changes of a folder or document; `table` tells the columns of a table."""
    return _read_folder(Path(name), table) if Path(name).is_dir() else _read_document(name, table)


def _read_folder(folder: Path, table: Callable[[str], Table]) -> Changes:
    """Files with names such as orders.inserts.csv."""
    changes: Changes = {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith((".", "_")):
            continue
        name, _, kind = file.stem.rpartition(".")
        if kind not in KINDS or file.suffix.lower() not in SUFFIXES:
            raise ViewkeepError(
                f'"{file}": its name does not tell what it is; name it TABLE.KIND.csv, '
                f"TABLE.KIND.jsonl or TABLE.KIND.parquet, where KIND is one of {', '.join(KINDS)}"
            )
        kinds = changes.setdefault(name, {})
        if kind in kinds:
            raise ViewkeepError(f'"{folder}" has two files of {kind} of "{name}"; leave one')
        kinds[kind] = read_rows_file(str(file), table(name))
    if not changes:
        raise ViewkeepError(f'"{folder}" has no files of changes, such as orders.inserts.csv')
    return changes


def _read_document(name: str, table: Callable[[str], Table]) -> Changes:
    """`{"orders": {"inserts": [{"id": 1, ...}, ...], "deletes": ...}, ...}`"""
    source = read_file(name)
    with source.named_in_errors():
        try:
            document = json.loads(source.text, parse_float=str)
        except ValueError as error:
            raise ViewkeepError(f"it is no JSON: {error}") from None
        if not isinstance(document, dict) or not all(map(_is_object, document.values())):
            raise ViewkeepError('expected {"table": {"inserts": [...], ...}, ...}')
        return {
            each: {
                kind: _document_rows(each, kind, rows, table(each)) for kind, rows in kinds.items()
            }
            for each, kinds in document.items()
        }


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _document_rows(name: str, kind: str, rows: Any, table: Table) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(map(_is_object, rows)):
        raise ViewkeepError(f'"{name}", {kind}: expected a list of rows, as in [{{"id": 1}}]')
    return [typed_row(row, table) for row in rows]
