"""What Delta tables may use, and what of it cannot be read correctly here."""

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

READABLE_FEATURES = frozenset({"deletionVectors", "timestampNtz", "vacuumProtocolCheck"})
"""Features of readers that change nothing for tables that pass the other checks."""


def unreadable(table: DeltaTable) -> str:
    """Why a version cannot be read correctly, and what to do; empty if it can."""
    features = set(table.protocol().reader_features or ())
    unknown = sorted(features - READABLE_FEATURES)
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        unknown = ["columnMapping"]
    if unknown:
        return (
            f"the table uses {', '.join(unknown)}, which cannot be read here; "
            "copy it into a table without, or switch it off"
        )
    if "deletionVectors" in features and _has_vectors(table):
        return (
            "some files have deletionVectors, which cannot be read here; "
            "purge them (REORG TABLE ... APPLY (PURGE)) and switch them off"
        )
    return ""


def _has_vectors(table: DeltaTable) -> bool:
    try:
        return bool(pa.table(table.deletion_vectors()).num_rows)
    except DeltaError:  # there are some, and they do not fit the files
        return True
