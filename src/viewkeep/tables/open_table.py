"""The table at a place, of Delta or of Iceberg."""

from collections.abc import Mapping
from importlib import import_module

from viewkeep.tables.failures import StorageError
from viewkeep.tables.iceberg.place import SCHEME
from viewkeep.tables.log.delta import LakeTable


def open_table(uri: str, options: Mapping[str, str] | None, is_durable: bool) -> LakeTable:
    """A Delta table, or one of Iceberg where the place says so."""
    if not uri.startswith(SCHEME):
        return LakeTable(uri, options, is_durable)
    try:
        module = import_module("viewkeep.tables.iceberg.table")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("pyiceberg"):
            raise
        raise StorageError(
            f'{uri}: reading Iceberg needs pyiceberg: pip install "viewkeep[iceberg]"'
        ) from error
    table: LakeTable = module.IcebergTable(uri, options)
    return table
