"""Up to which version of each table all transactions are settled: done, or taken back.

`vacuum` stores it as the rows of `_viewkeep/transactions` before it removes old decisions from the
log of that table: a part of a transaction whose decision is gone is done if its version is settled.
Tables are told by their identities, since a name may be given to a new one.
"""

from collections.abc import Mapping

from viewkeep.query.types.data_types import BIGINT, STRING, Field
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import ConflictError, LakeTable, Snapshot

FIELDS = (Field("table", STRING, nullable=False), Field("version", BIGINT, nullable=False))
NOTES = {"change": "settled versions"}
TRIES = 20


def settled_versions(decisions: LakeTable) -> dict[str, int]:
    """The versions that the last vacuum stored, by the identities of tables."""
    snapshot = decisions.snapshot()
    if not snapshot.files:
        return {}
    return dict(to_rows(ParquetFolder(decisions).read(snapshot.files, FIELDS)))


def store_settled_versions(
    decisions: LakeTable, start: Snapshot, versions: Mapping[str, int]
) -> bool:
    """Store versions that were looked up after `start`, whoever decides meanwhile; False if another
    vacuum has stored others since."""
    new = ParquetFolder(decisions).write(to_arrow(FIELDS, list(versions.items())))
    for _ in range(TRIES):
        newest = decisions.snapshot()
        if newest.identities != start.identities:
            return False
        try:
            decisions.replace(newest.version, FIELDS, [new], NOTES)
        except ConflictError:
            continue
        return True
    return False
