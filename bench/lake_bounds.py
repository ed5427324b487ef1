"""Exponents of what views over tables keep and touch, fitted to counts on growing adversarial data.

    python -m bench.lake_bounds [--sizes 256 1024 4096] [--docs]

The delta scripts of lakes run in DuckDB, after one row of one table was inserted or deleted: index
look-ups, tuples and written rows are counted in the cost model of id_based_ivm (appendix A), the
rows of all caches beside them. The worst table and kind of change counts. Exponents are those of
the analysis for the conjunctive query of the view, which `explain` prints; the command fails where
a measured one is more than 0.1 above. The method is that of `bench.bounds`; see docs/bounds.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import ceil, isqrt
from pathlib import Path

import duckdb
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Lines

from bench.bounds import MARGIN, exponent
from viewkeep.analysis.exponents import Bounds
from viewkeep.analysis.routes import routes
from viewkeep.diffs.generate import generate
from viewkeep.diffs.id_plan import view_tree_plan
from viewkeep.diffs.model import DELETE, INSERT, post, pre
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.programs.heavy_light import generate_heavy_light
from viewkeep.diffs.programs.theory import query_of_view
from viewkeep.diffs.script import BaseDiff, Script
from viewkeep.execute.duckdb.run_in_connection import create, run_in_connection
from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

SIZES = (256, 1024, 4096)
KINDS = (INSERT, DELETE)
Row = tuple[int, ...]
Database = Mapping[str, Sequence[Row]]
ROUTES = {"viewtree": "viewtree", "tuple": "delta", "epsilon": "epsilon"}
"""What strategies of lakes are called by the analysis."""
EPSILON = 0.5
PAGE = Path(__file__).parents[1] / "docs" / "bounds.md"
HEADING, FENCE = "## Over tables", "```text\n"


@dataclass(frozen=True)
class LakeCase:
    """A view, how it is kept, tables of any size, and the rows of which each comes and goes."""

    title: str
    strategy: str
    sql: str
    tables: Mapping[str, Table]
    rows: Callable[[int], Database]
    visits: tuple[Row, ...]

    @property
    def view(self) -> Node:
        """The view as algebra."""
        return optimize(parse_view(self.sql, self.tables))


@dataclass(frozen=True)
class Counts:
    """The accesses of the worst single change, and the rows of all caches."""

    update: int
    space: int


@dataclass(frozen=True)
class LakeBound:
    """Exponents of a case, predicted and measured."""

    case: LakeCase
    predicted_update: float
    update: float
    predicted_space: float
    space: float

    @property
    def verdict(self) -> str:
        """Whether theory holds, and whether the data shows that it is tight."""
        pairs = ((self.update, self.predicted_update), (self.space, self.predicted_space))
        if any(measured > predicted + MARGIN for measured, predicted in pairs):
            return "above"
        return "holds" if self.update >= self.predicted_update - MARGIN else "below"


def measure(case: LakeCase, sizes: Sequence[int] = SIZES) -> LakeBound:
    """Fit the exponents of a case."""
    found = [worst_counts(case, size) for size in sizes]
    promised = promised_bounds(case)
    return LakeBound(
        case,
        float(promised.update),
        exponent(sizes, [each.update for each in found]),
        float(promised.space) if case.strategy != "tuple" else 0.0,
        exponent(sizes, [each.space for each in found]),
    )


def promised_bounds(case: LakeCase) -> Bounds:
    """The bounds of the analysis for the strategy of a case."""
    query = query_of_view(case.view)
    assert query is not None, case
    route = next(each for each in routes(query) if each.strategy == ROUTES[case.strategy])
    return route.bounds.at(EPSILON)


def worst_counts(case: LakeCase, size: int) -> Counts:
    """The most accesses over all tables and kinds of changes at one size."""
    data = case.rows(size)
    changes = product(case.tables, KINDS, case.visits)
    counts = [count_change(case, data, *change) for change in changes]
    return Counts(max(each.update for each in counts), max(each.space for each in counts))


def count_change(case: LakeCase, data: Database, table: str, kind: str, visit: Row) -> Counts:
    """The accesses of a refresh after one row of a table came or went, and the rows of caches."""
    script, others = script_of(case, table, kind), [row for row in data[table] if row != visit]
    before = {**data, table: others if kind == INSERT else [*others, visit]}
    with duckdb.connect() as connection:
        for name, rows in before.items():
            store_rows(connection, name, case.tables[name].names, rows)
        create(connection, script, {})
        kept = [f'SELECT count(*) FROM "{each.name}"' for each in script.caches]
        space = sum(connection.execute(each).fetchall()[0][0] for each in kept)
        connection.execute(f'ALTER TABLE "{table}" RENAME TO "{table} before"')
        after = [*others, visit] if kind == INSERT else others
        store_rows(connection, table, case.tables[table].names, after)
        [diff] = script.diffs
        store_rows(connection, diff.name, diff_columns(diff), [diff_row(case, table, diff, visit)])
        places = {(table, "pre"): f'"{table} before"'}
        report = run_in_connection(connection, script, places, count_accesses=True)
        return Counts(report.accesses or 0, space)


def store_rows(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    """A table of integers."""
    arrays = [pa.array(values, pa.int32()) for values in zip(*rows, strict=True)]
    connection.register("rows", pa.table(dict(zip(columns, arrays, strict=True))))
    connection.execute(f'CREATE TABLE "{name}" AS FROM rows')
    connection.unregister("rows")


def diff_columns(diff: BaseDiff) -> list[str]:
    """The columns of a diff of rows that come, or go."""
    schema = diff.schema
    return [*schema.ids, *map(pre, schema.before), *map(post, schema.after)]


def diff_row(case: LakeCase, table: str, diff: BaseDiff, visit: Row) -> Row:
    """The row that comes or goes, as a row of the diff."""
    values = dict(zip(case.tables[table].names, visit, strict=True))
    schema = diff.schema
    return tuple(values[name] for name in (*schema.ids, *schema.before, *schema.after))


@cache
def _script(strategy: str, view: Node, table: str, kind: str) -> Script:
    changes = {table: [(kind, frozenset[str]())]}
    if strategy == "epsilon":
        return generate_heavy_light(view, changes)
    plan = view_tree_plan(view) if strategy == "viewtree" else None
    return generate(view, changes, True, plan).script


def script_of(case: LakeCase, table: str, kind: str) -> Script:
    """The script for one kind of changes of one table."""
    return _script(case.strategy, case.view, table, kind)


# --- the cases ------------------------------------------------------------------------------------


def one_value(size: int) -> Database:
    """Tables in which all rows join with all others."""
    return {name: [(i, 0, i % 7) for i in range(size)] for name in "rst"}


def hubs(size: int) -> list[Row]:
    """Edges of which half lead from one hub to all vertices, and half from some hubs to others: to
    as many as there are hubs, the first among them."""
    some = isqrt(size) // 2
    out = [(0, v) for v in range(1, size // 2)]
    return out + [(u, v) for u in range(1, some) for v in range(some)]


def three_graphs(size: int) -> Database:
    """Hubs that lead to each other through all three tables."""
    edges = hubs(size)
    back = [(v, u) for u, v in edges]
    return {"r": edges, "s": edges, "t": back + edges[size // 2 :]}


def one_graph(size: int) -> Database:
    """A graph in which hubs have edges to and from all vertices."""
    edges = hubs(size // 2)
    return {"e": list(dict.fromkeys([*edges, *((v, u) for u, v in edges)]))}


def lists(size: int) -> Database:
    """For the cycle of four: `r(0, 0)` meets as many `c` in `s` as fit in, each with as many `d` in
    `t` as make it heavy, and all of these lead back."""
    degree = ceil(1.05 * (2 * size) ** (1 / 3))
    length = int(0.8 * size) // degree
    wide = [(c, d) for c in range(length) for d in range(degree)]
    spread = [(-1 - i, -1 - i) for i in range(size - len(wide) - length - degree)]
    back = [(d, 0) for d in range(degree)]
    return {"r": spread, "s": [(0, c) for c in range(length)], "t": wide, "u": back}


KEYED = {name: Table({"id": "int", "y": "int", "a": "int"}, key=["id"]) for name in "rst"}
EDGES = {name: Table({"x": "int", "y": "int"}, key=["x", "y"]) for name in "rst"}
STAR = "from r join s on r.y = s.y join t on s.y = t.y"
BY_KEY = f"select r.y, sum(r.a * s.a) as x, count(*) as n {STAR} group by r.y"
OF_ALL = f"select count(*) as n, sum(t.a) as x {STAR}"
TRIANGLES = "select count(*) as n from r join s on r.y = s.x join t on s.y = t.x and t.y = r.x"
OF_GRAPH = "select count(*) as n from e a join e b on a.y = b.x join e c on b.y = c.x and c.y = a.x"
FOUR_CYCLE = """select count(*) as n from r join s on r.y = s.x join t on s.y = t.x
    join u on t.y = u.x and u.y = r.x"""
GRAPH, HUBS = {"e": EDGES["r"]}, ((0, 0), (0, 1))
CYCLE = dict.fromkeys("rstu", EDGES["r"])
CASES = (
    LakeCase("q-hierarchical, groups", "viewtree", BY_KEY, KEYED, one_value, ((-1, 0, 3),)),
    LakeCase("q-hierarchical, of all", "viewtree", OF_ALL, KEYED, one_value, ((-1, 0, 3),)),
    LakeCase("triangles of three tables", "epsilon", TRIANGLES, EDGES, three_graphs, ((0, 0),)),
    LakeCase("triangles of three tables", "tuple", TRIANGLES, EDGES, three_graphs, ((0, 0),)),
    LakeCase("triangles of a graph", "epsilon", OF_GRAPH, GRAPH, one_graph, HUBS),
    LakeCase("triangles of a graph", "tuple", OF_GRAPH, GRAPH, one_graph, HUBS),
    LakeCase("cycles of four tables", "epsilon", FOUR_CYCLE, CYCLE, lists, ((0, 0),)),
)


def table_of(bounds: Sequence[LakeBound]) -> Lines:
    """What was measured: a line per case."""
    title = "Lakes: exponents of N, predicted -> measured"
    shown = Lines(title=title, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("case", "strategy", "rows touched", "rows kept", "verdict"):
        shown.add_column(column, no_wrap=True)
    for each in bounds:
        shown.add_row(each.case.title, each.case.strategy, *_cells(each), each.verdict)
    return shown


def _cells(bound: LakeBound) -> Iterator[str]:
    yield f"{bound.predicted_update:.2g} -> {bound.update:.2f}"
    yield f"{bound.predicted_space:.2g} -> {bound.space:.2f}"


def with_table(page: str, table: str) -> str:
    """The page with another table."""
    start, end = _place_of_table(page)
    return page[:start] + table + page[end:]


def table_in_page(page: str) -> str:
    """The table of the page."""
    return page[slice(*_place_of_table(page))]


def _place_of_table(page: str) -> tuple[int, int]:
    start = page.index(FENCE, page.index(HEADING)) + len(FENCE)
    return start, page.index("```", start)


def main() -> int:
    """Measure all cases; fail where a bound is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--docs", action="store_true", help="write the table to docs/bounds.md")
    given = parser.parse_args()
    found, console = [measure(case, given.sizes) for case in CASES], Console(width=100)
    with console.capture() as capture:
        console.print(table_of(found), highlight=False)
        sizes = ", ".join(map(str, given.sizes))
        console.print(f"sizes {sizes}; margin {MARGIN}\n", highlight=False)
        texts = dict.fromkeys(f"{c.title}: {' '.join(c.sql.split())}" for c in CASES)
        console.print("\n".join(texts), highlight=False)
    table = "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
    print(table, end="")
    if given.docs:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_table(page, table), encoding="utf-8")
    return int(any(each.verdict == "above" for each in found))


if __name__ == "__main__":
    sys.exit(main())
