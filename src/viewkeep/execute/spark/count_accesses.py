"""Accesses of the statements of a run: all sizes that the cost model asks for, by one job."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.diffs.accesses import count_accesses
from viewkeep.diffs.model import INSERT
from viewkeep.diffs.script import Compute, Materialized
from viewkeep.execute.spark.apply_diff import Part, apply_diff, rows_of_insert, target_rows
from viewkeep.execute.spark.frames import FrameBuilder
from viewkeep.execute.spark.versions import union
from viewkeep.query.algebra import Leaf, Node, Scan
from viewkeep.query.expressions import back_quote


def compute_accesses(
    computes: Iterable[Compute], materialized: Iterable[str], builder: FrameBuilder
) -> dict[str, int]:
    """The accesses of queries; they are sums of sizes, so the sizes can be counted later."""
    names, sizes = set(materialized), dict[str, list[DataFrame]]()

    def is_kept(leaf: Leaf) -> bool:
        return isinstance(leaf, Scan) or leaf.name in names

    for statement in computes:
        frames: list[DataFrame] = []

        def size(node: Node, frames: list[DataFrame] = frames) -> int:
            frames.append(builder.frame(node))
            return 0

        count_accesses(statement.query, is_kept, size)
        sizes[statement.name] = frames
    return _access_counts(sizes)


def apply_accesses(
    parts: Sequence[tuple[Materialized, Part]], olds: Mapping[str, DataFrame]
) -> dict[str, int]:
    """A look-up per diff tuple and an access per row changed; an insert looks nothing up."""
    states = dict(olds)
    sizes: dict[str, list[DataFrame]] = {}
    for target, part in parts:
        if part.diff.is_empty:
            sizes[part.name] = []
            continue
        rows = states[target.name]
        sizes[part.name] = [_rows_changed_by_part(rows, target, part), *_accesses_of_look_up(part)]
        states[target.name] = apply_diff(rows, target, part)
    return _access_counts(sizes)


def _rows_changed_by_part(rows: DataFrame, target: Materialized, part: Part) -> DataFrame:
    if part.schema.kind == INSERT:
        return rows_of_insert(target, part)
    return target_rows(rows, target, part)


def _accesses_of_look_up(part: Part) -> list[DataFrame]:
    if part.schema.kind == INSERT:
        return []
    ids = map(back_quote, part.schema.ids)
    return [part.diff.frame.selectExpr(*(list(ids) or ["1"])).distinct()]


def _access_counts(sizes: Mapping[str, list[DataFrame]]) -> dict[str, int]:
    """The rows of all frames of a name, summed."""
    numbered = list(sizes)
    count_frames = [
        frame.agg(F.count("*").alias("n")).selectExpr(f"{numbered.index(name)} AS i", "n")
        for name, frames in sizes.items()
        for frame in frames
    ]
    counts = dict.fromkeys(numbered, 0)
    for row in union(count_frames).collect() if count_frames else ():
        counts[numbered[row["i"]]] += row["n"]
    return counts
