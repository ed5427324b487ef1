"""Tables without a key whose Delta log tracks rows: bags as others, kept incrementally.

The log has base row IDs, files that were rewritten have the IDs of their rows in columns that are
not of the table; deltalake writes no such tables, so their commits are written here.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.keeper.lakes import rows
from viewkeep import Keeper

ROW_ID, ROW_VERSION = "_row-id-col-6f2c", "_row-commit-version-col-6f2c"
SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string())])
FIELDS = [
    {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "b", "type": "string", "nullable": True, "metadata": {}},
]
Row = tuple[Any, ...]


class TrackedTable:
    """A Delta table with row tracking, as Spark's connector writes it."""

    def __init__(self, place: Path, given: list[Row]) -> None:
        self.place, self._version, self._next_id = place, 0, 0
        self._files: dict[str, list[Row]] = {}
        (place / "_delta_log").mkdir(parents=True)
        features = ["rowTracking", "domainMetadata", "appendOnly", "invariants"]
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        metadata = {
            "id": "5f2d0c7e-6c1e-4a58-9d0a-0a8b8f6d7a11",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
            "partitionColumns": [],
            "configuration": {
                "delta.enableRowTracking": "true",
                "delta.rowTracking.materializedRowIdColumnName": ROW_ID,
                "delta.rowTracking.materializedRowCommitVersionColumnName": ROW_VERSION,
            },
            "createdTime": 0,
        }
        self._commit({"protocol": protocol}, {"metaData": metadata}, self._add(given))

    def append(self, given: list[Row]) -> None:
        """New rows in a new file."""
        self._commit(self._add(given))

    def replace(self, changes: dict[Row, list[Row]], changed: bool = True) -> None:
        """Every file anew, with other rows instead of some; the IDs of rows are in the files."""
        removed = [{"remove": self._removed(name, changed)} for name in self._files]
        kept = [new for row in self.rows for new in changes.get(row, [row])]
        self._files.clear()
        self._commit(*removed, self._add(kept, materialized=True, changed=changed))

    @property
    def rows(self) -> list[Row]:
        """The rows of the newest version."""
        return [row for given in self._files.values() for row in given]

    def _add(
        self, given: list[Row], materialized: bool = False, changed: bool = True
    ) -> dict[str, Any]:
        columns = list(zip(*given, strict=True)) or [(), ()]
        table = pa.Table.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )
        if materialized:
            for name in (ROW_ID, ROW_VERSION):
                table = table.append_column(name, pa.array(range(len(given)), pa.int64()))
        name = f"part-{self._version:05}.parquet"
        pq.write_table(table, self.place / name)
        self._files[name] = given
        base, self._next_id = self._next_id, self._next_id + len(given)
        return {
            "add": {
                "path": name,
                "partitionValues": {},
                "size": (self.place / name).stat().st_size,
                "modificationTime": 0,
                "dataChange": changed,
                "stats": json.dumps({"numRecords": len(given)}),
                "baseRowId": base,
                "defaultRowCommitVersion": self._version,
            }
        }

    def _removed(self, name: str, changed: bool) -> dict[str, Any]:
        return {"path": name, "deletionTimestamp": 0, "dataChange": changed, "baseRowId": 0}

    def _commit(self, *actions: dict[str, Any]) -> None:
        mark = json.dumps({"rowIdHighWaterMark": self._next_id - 1})
        domain = {"domain": "delta.rowTracking", "configuration": mark, "removed": False}
        path = self.place / "_delta_log" / f"{self._version:020}.json"
        lines = [*actions, {"domainMetadata": domain}]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self._version += 1


def check(keeper: Keeper, table: TrackedTable) -> None:
    """Both views are what the rows of the table say."""
    assert rows(keeper, "everything") == Counter(table.rows)
    counts = Counter(b for _, b in table.rows)
    sums = {b: sum(a for a, other in table.rows if other == b) for b in counts}
    assert rows(keeper, "counts") == Counter((b, n, sums[b]) for b, n in counts.items())


def test_a_table_with_row_tracking_is_kept_by_the_copies_of_its_rows(tmp_path: Path) -> None:
    table = TrackedTable(tmp_path / "log", [(1, "p"), (1, "p"), (2, "q")])
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.register_table("log", tmp_path / "log")
    keeper.create_view("everything", "SELECT a, b FROM log", policy="strict")
    counts = "SELECT b, count(*) AS n, sum(a) AS s FROM log GROUP BY b"
    keeper.create_view("counts", counts, policy="strict")
    check(keeper, table)
    steps = {
        "rows come": (lambda: table.append([(1, "p"), (3, "r")]), 2),
        "one changes": (lambda: table.replace({(3, "r"): [(4, "r")]}), 2),
        "one goes": (lambda: table.replace({(2, "q"): []}), 1),
        "files are compacted": (lambda: table.replace({}, changed=False), 0),
    }
    for step, (change, count) in steps.items():
        change()
        for report in keeper.refresh():
            assert report.strategy == "id" if count else not report.rows_changed, (step, report)
            assert sum(report.changes.values()) == count, (step, report)
        check(keeper, table)
    assert keeper.verify("everything").ok
