"""What Delta tables may use, and what of it cannot be read correctly here."""

from deltalake import DeltaTable

VECTORS = "deletionVectors"
"""The feature of tables whose files may have deleted rows."""
READABLE_FEATURES = frozenset({VECTORS, "timestampNtz", "vacuumProtocolCheck"})
"""Features of readers that are understood, or change nothing for readers."""


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
    return ""


def may_have_vectors(table: DeltaTable) -> bool:
    """Whether files of an open version may have deletion vectors."""
    return VECTORS in (table.protocol().reader_features or ())
