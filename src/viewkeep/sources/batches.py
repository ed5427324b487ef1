"""Batches of streams as changes of a table, each exactly once by its number: a sink for
`writeStream.foreachBatch`.

A batch has the columns of the table and, if it is not all upserts, that of the operation; or, of
Debezium's envelopes, the column `value` (and perhaps `key`), as Spark's source of Kafka gives it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.errors import ArgumentError, SchemaError
from viewkeep.lake.apply import changeable_table
from viewkeep.lake.intake import IngestReport, TakenPart
from viewkeep.lake.lake import Lake
from viewkeep.sources.debezium import envelope_record, message_text
from viewkeep.sources.flat_records import row_records
from viewkeep.sources.ingest import DEBEZIUM, check_records
from viewkeep.sources.record import UPSERT, Record, operation_column
from viewkeep.sources.target import ReadPart, Target, TargetRound
from viewkeep.tables.spark_rows import frame_rows, is_spark_frame

QUERY_ID = "sql.streaming.queryId"
"""The property of a stream's thread in which Spark tells the query, the same after restarts."""
VALUE, KEY = "value", "key"


def open_sink(
    lake: Lake, name: str, records: str, query: str, after: Callable[[], object]
) -> "BatchSink":
    """A sink of a table for batches of one kind of records."""
    definition = changeable_table(lake.catalog.read(), name)
    target = Target(lake, definition, check_records(records) == DEBEZIUM)
    return BatchSink(target, query, after)


@dataclass(frozen=True)
class BatchSink:
    """Takes the batches of a stream into a table; `after` is called when a batch is in."""

    target: Target
    query: str
    after: Callable[[], object]

    def __call__(self, batch: Any, batch_id: int) -> None:
        """Take a batch in, unless it was; as `foreachBatch` calls it."""
        self.take_in(batch, batch_id)

    def take_in(self, batch: Any, batch_id: int) -> IngestReport:
        """Take a batch in, unless it was; the report."""
        name = f"stream {self.query or query_of(batch)}"
        records: tuple[Record, ...] | None = None

        def run(round_: TargetRound) -> IngestReport:
            nonlocal records
            if any(each.part == batch_id for each in round_.earlier_parts([name]).get(name, ())):
                if is_spark_frame(batch):  # the state of a stream is committed where rows are read
                    _arrow_table(batch)
                return round_.empty_report
            if records is None:
                records = tuple(self._records_of_batch(_arrow_table(batch)))
            part = TakenPart(name, batch_id, records=len(records))
            return round_.take_in([ReadPart(part, records)])

        report = self.target.run_round(run)
        self.after()
        return report

    def _records_of_batch(self, rows: pa.Table) -> Iterator[Record]:
        table = self.target.definition.table
        if not self.target.has_positions:
            column = operation_column(table)
            if column not in rows.column_names:
                rows = rows.append_column(column, pa.repeat(UPSERT, rows.num_rows))
            return row_records(rows, table)
        if VALUE not in rows.column_names:
            raise SchemaError(
                f'table "{self.target.definition.name}": the batch has no column "{VALUE}" with '
                f"envelopes ({', '.join(rows.column_names)})"
            )
        keys = rows[KEY].to_pylist() if KEY in rows.column_names else [None] * rows.num_rows
        pairs = zip(keys, rows[VALUE].to_pylist(), strict=True)
        lines = (message_text(key, value) for key, value in pairs)
        return (envelope_record(number, line, table) for number, line in enumerate(lines, 1))


def query_of(batch: Any) -> str:
    """The streaming query that a batch is of, as Spark names it."""
    context = getattr(getattr(batch, "sparkSession", None), "_sc", None)
    query = None if context is None else context.getLocalProperty(QUERY_ID)
    if not query:
        raise ArgumentError(
            "which query the batch is of is not known here; give the sink a name that stays: "
            'sink(..., query="orders from kafka")'
        )
    return str(query)


def _arrow_table(batch: Any) -> pa.Table:
    return frame_rows(batch) if is_spark_frame(batch) else pa.table(batch)
