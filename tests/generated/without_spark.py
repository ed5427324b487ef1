"""Lakes without Spark: the driver refreshes small lakes alone, and Python fills the views.

A refresh of a few rows mostly looks up what it needs by itself. Only computing a view from
scratch always takes Spark; here Python does it, so that hundreds of lakes go through the keeper,
its caches and its commits in the time that Spark takes for one. What needs Spark after all raises
`NeedsSparkError`, and is left to lakes with Spark.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.diffs.interpret import Relations, Rows, evaluate
from tests.generated.cases import Case
from tests.generated.lakes import failures_in_lake
from tests.generated.runners import recomputed
from viewkeep.execute.spark.frames import Builder
from viewkeep.lake import Pins
from viewkeep.lake.view import View
from viewkeep.query.algebra import Node
from viewkeep.query.evaluate.casts import cast_to
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.delta import DataFile
from viewkeep.tables.parquet import Folder


class NeedsSparkError(BaseException):
    """Work for Spark; no error of a view, which a keeper would report as such."""


class NoSpark:
    """A session, its settings and its context in one, that can compute nothing."""

    def __init__(self) -> None:
        self.sparkContext = self.conf = self
        self.newSession = self.statusTracker = lambda: self
        self.defaultParallelism = 1
        self.get = self.getLocalProperty = lambda _: "1"
        self.set = self.setLocalProperty = lambda _name, _value: None
        self.getJobIdsForGroup = lambda _: []

    def __getattr__(self, name: str) -> Any:
        raise NeedsSparkError(name)


def _computed(self: View, inputs: Pins) -> tuple[dict[str, int], list[DataFile]]:
    """What `View._computed` does, by Python."""
    relations: dict[Any, Rows] = {}
    for name, source in self.sources.items():
        snapshot = source.table.snapshot(inputs[name])
        fields = [f for f in snapshot.fields if f.name in source.declared.names]
        found = Folder(source.table).read(snapshot.files, fields)
        relations[name, "post"] = to_rows(found.select(list(source.declared.names)))
    versions = {}
    for kept in self.script.caches if self.is_incremental else ():
        relations[kept.name] = _rows(kept.definition, relations)
        rows = to_arrow(kept.definition.schema, relations[kept.name])
        table = self.cache_table(kept)
        files = [Folder(table).write(rows)] if rows.num_rows else []
        versions[kept.name] = self.replace_cache(kept, table, files)
    definition = self.script.view.definition if self.is_incremental else self.node
    stored = to_arrow(definition.schema, _rows(definition, relations))
    public = self.layout.to_public(stored)
    return versions, [Folder(self.table).write(public)] if public.num_rows else []


def _rows(node: Node, relations: Relations) -> Rows:
    """The rows of a query, with quotients rounded to the digits that their types have."""
    casts = [cast_to(f.type) if f.type.name == "decimal" else None for f in node.schema]
    return [
        tuple(
            value if cast is None or value is None else cast(value)
            for cast, value in zip(casts, row, strict=True)
        )
        for row in evaluate(node, relations)
    ]


@contextmanager
def without_spark() -> Iterator[Any]:
    """What starts a session that does nothing, while Python computes views."""
    with patch.object(View, "_computed", _computed), patch.object(Builder, "frame", _no_frame):
        yield NoSpark


def _no_frame(self: Builder, node: Node) -> None:
    raise NeedsSparkError("a query")


def run_without_spark(case: Case, place: Path) -> bool:
    """Whether a case went through to its end without Spark; its first failure is raised."""
    recomputed(case, 0)
    with without_spark() as session:
        try:
            failures = failures_in_lake(session, case, place)
        except NeedsSparkError:
            return False
    for failure in failures.values():
        raise failure
    return True
