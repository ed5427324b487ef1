"""The ID-based paper on Spark: V and V' over Parquet files, by every strategy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from bench._paper_idivm import default_devices
from bench._paper_page import Claim, Section, Show, counted, graded_claim, table
from bench._spark_devices import Cost, Kept, Lake, measure
from bench.idivm import RECOMPUTE, STRATEGIES
from viewkeep.execute.spark.session import session

TITLE = "The ID-based paper on Spark"
TEXT = (
    "`id_based_ivm`, figures 11 and 12, on Spark over Parquet files: the part of a refresh that "
    "computes changes, by each strategy. Every job of Spark has a fixed cost, which is most of a "
    "refresh at small sizes."
)
FIXED_COST = "the fixed cost of jobs is most of a refresh at this size"
Costs = Mapping[str, Cost]


@dataclass(frozen=True)
class SparkSizes:
    """Rows of parts and of devices, changes, and rounds."""

    parts: int
    changes: int = 200
    rounds: int = 3


def spark_costs(spark: SparkSession, sizes: SparkSizes, show: Show) -> dict[tuple[str, str], Costs]:
    """By kind of change and view, what every strategy takes."""
    data = default_devices(sizes.parts)
    found: dict[tuple[str, str], Costs] = {}
    with TemporaryDirectory(prefix="viewkeep-papers-") as folder:
        show(f"Spark: tables, {data.uses:,} rows of devices_parts")
        lake = Lake(spark, data, Path(folder))
        views = {"V": data.view(False), "V'": data.view(True)}
        keeps = [Kept(name, title, view) for title, view in views.items() for name in STRATEGIES]
        for kept in keeps:
            show(f"Spark: fill {kept.title} by {kept.strategy}")
            kept.create(lake)
        for changes, title, costs in measure(lake, keeps, sizes.changes, sizes.rounds):
            show(f"Spark: {changes.title}, {title}")
            found[changes.title, title] = costs
    return found


def spark_claims(found: Mapping[tuple[str, str], Costs]) -> Iterator[Claim]:
    """Tuple-based over ID-based, in seconds."""
    for (changes, title), costs in found.items():
        ratio = costs["tuple"].seconds / costs["id"].seconds
        if (changes, title) not in PRINTED:
            continue
        place, printed = PRINTED[changes, title]
        holds = [ratio >= 3.5, ratio > 1] if printed != "1" else [0.67 < ratio < 1.5]
        yield graded_claim(
            place,
            f"speed-up of ID-based over tuple-based on Spark, {changes}, {title}: seconds",
            printed,
            f"{ratio:.1f}",
            holds=holds,
            why="" if all(holds) else FIXED_COST,
        )


PRINTED = {
    ("price updates", "V'"): ("figure 12", "4 to 5"),
    ("inserts", "V"): ("section 6.1", "1"),
}
"""Where the paper tells the ratio, and what it is."""


def spark_table(found: Mapping[tuple[str, str], Costs], sizes: SparkSizes) -> str:
    """Seconds and jobs."""
    names = (*STRATEGIES, RECOMPUTE)
    rows = (
        [f"{changes}, {title}", *(f"{costs[n].seconds:.2f} ({costs[n].jobs:g})" for n in names)]
        for (changes, title), costs in found.items()
    )
    note = (
        f"Seconds (and jobs of Spark), medians of {counted(sizes.rounds, 'round')}; "
        f"{sizes.parts:,} parts and devices, fanout 10, {sizes.changes} changes."
    )
    return f"{note}\n\n{table(['changes', *names], rows, len(names))}"


def section(sizes: SparkSizes, show: Show, spark: SparkSession | None = None) -> Section:
    """The table, by a session that is given or one of its own."""
    own = None if spark else session(name="viewkeep bench", spark__driver__memory="4g")
    try:
        found = spark_costs(spark or own, sizes, show)
    finally:
        if own is not None:
            own.stop()
    return Section(TITLE, TEXT, list(spark_claims(found)), [spark_table(found, sizes)])
