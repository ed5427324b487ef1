"""TPC-H: the survey's counts of hierarchical queries, and refreshes of all 22 queries."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench._paper_page import Claim, Section, Show, counted, graded_claim, table
from docs.make_tpch import (
    SURVEY,
    Totals,
    by_definition,
    by_study,
    read_queries,
    read_tables,
    second_reading,
    totals,
)

TITLE = "TPC-H: the classification and the refreshes"
TEXT = (
    "The survey (section 4.4) counts hierarchical queries among the 22 of TPC-H, from a study of "
    "2009 that does not name them; [the classification](tpch.md) has every query. No paper here "
    "prints times of refreshes of TPC-H; the last table has ours, beside recomputation by the same "
    "engine."
)
NAMES = (
    ("Boolean, hierarchical", "boolean"),
    ("Boolean, more under dependencies", "boolean_gain"),
    ("non-Boolean, hierarchical", "other"),
    ("non-Boolean, more under dependencies", "other_gain"),
)
WHY = {
    "boolean": "8 without Q13 and Q22, which are not conjunctive, and with Q16's NOT IN as a join",
    "other": "the study does not name the queries; no reading that was tried gives 13",
}


def readings() -> dict[str, Totals]:
    """The totals by each way to count that is tried."""
    tables = read_tables()
    queries = read_queries(tables)
    second = second_reading(queries, tables)
    return {
        "definition 4.2, primary keys": totals(queries, by_definition),
        "the study's notion, primary keys": totals(queries, by_study),
        "and unique names": totals(queries, by_study, names=True),
        "and another reading of Q13, Q16, Q22": totals(second, by_study, names=True),
    }


def count_claims() -> Iterator[Claim]:
    """The four totals, by definition 4.2 and by the reading that comes closest."""
    found = list(readings().values())
    for title, name in NAMES:
        printed = getattr(SURVEY, name)
        counts = [getattr(each, name) for each in found]
        yield graded_claim(
            "section 4.4",
            title,
            str(printed),
            ", ".join(map(str, counts)),
            holds=[counts[0] == printed, counts[-1] == printed],
            why=WHY.get(name, ""),
        )


def readings_note() -> str:
    """What the counts stand for."""
    listed = "; ".join(f"{i}. {title}" for i, title in enumerate(readings(), 1))
    return f"The counts, in this order, are by: {listed}."


@dataclass(frozen=True)
class TpchSizes:
    """The scale factor, orders per refresh, rounds, and which queries."""

    scale: float
    changes: int
    rounds: int
    queries: Sequence[str] | None = None


def refresh_table(sizes: TpchSizes, show: Show) -> str:
    """Per kind of change: refreshes that are incremental, and their ratio to recomputation."""
    from bench.tpch import EMBEDDED, QUERIES, Lake, Measured, measured

    given = Namespace(scale=sizes.scale, changes=sizes.changes, backend=EMBEDDED, data=None)
    with TemporaryDirectory(prefix="viewkeep-papers-") as folder:
        lake = Lake(None, Path(folder), given)
        queries = lake.create_views(list(sizes.queries or QUERIES), show)
        by_kind: dict[str, list[Measured]] = {}
        for each in measured(lake, queries, sizes.rounds, show):
            by_kind.setdefault(each.kind, []).append(each)
        for query in queries:
            lake.check(query)
    rows = []
    for kind, found in by_kind.items():
        kept = [each for each in found if each.way == "incremental"]
        ratios = [1 / each.ratio for each in kept]
        spread = f"{min(ratios):.1f} to {max(ratios):.1f}" if ratios else "-"
        middle = f"{median(ratios):.1f}" if ratios else "-"
        rows.append([kind, str(len(found)), str(len(kept)), middle, spread])
    header = ["changes", "queries", "incremental", "times faster, median", "from, to"]
    note = (
        f"Refreshes at scale factor {sizes.scale:g}, {sizes.changes} orders, embedded: seconds of "
        "recomputation over those of the refresh, medians of "
        f"{counted(sizes.rounds, 'round')}; all rows are compared. At a small scale recomputation "
        "costs little, and the keeper chooses it often; [figures](tpch_figures.md) has a larger "
        "one."
    )
    return f"{note}\n\n{table(header, rows, 4)}"


def section(sizes: TpchSizes, show: Show) -> Section:
    """The counts, and the refreshes."""
    show("TPC-H: classification")
    claims = list(count_claims())
    return Section(TITLE, TEXT, claims, [readings_note(), refresh_table(sizes, show)])
