"""Makes docs/functions.md: every function of Spark, how views that call it are kept, and where.

All of it comes from the lists that Viewkeep itself reads.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from viewkeep.diffs.rules.group import EXACT
from viewkeep.execute.duckdb import exact
from viewkeep.query.clock import CALLS
from viewkeep.query.types.functions import FUNCTIONS, NON_DETERMINISTIC, SYNONYMS
from viewkeep.query.windows import WINDOW_FUNCTIONS
from viewkeep.sql.blocks.clauses import AGGREGATE_NAMES, ANY_VALUE
from viewkeep.sql.blocks.generators import GENERATORS
from viewkeep.sql.expressions.composed import COMPOSED
from viewkeep.sql.spark_functions import (
    SCALAR_FUNCTIONS,
    SPARK_AGGREGATES,
    SPARK_FUNCTIONS,
    SPARK_GENERATORS,
    SPARK_WINDOWS,
    TIME_WINDOWS,
)

PAGE = Path(__file__).resolve().parent / "functions.md"

BOTH, ONLY_SPARK = "DuckDB or Spark", "Spark"
BY_ROW, BY_GROUP, BY_PARTITION = "by row", "by group", "by partition"
BY_BOUND = "between two bounds"
SECTIONS: Mapping[str, str] = {
    "scalar": "Functions of a row",
    "aggregate": "Aggregates",
    "window": "Window functions",
    "rows": "Functions that make rows, and windows of time",
    "clock": "The clock of the refresh",
    "refused": "Refused: no stable answer",
}
_EVERYWHERE = next(each.default for each in fields(exact.Entry) if each.name == "applies")

HEAD = """\
# Functions

Every function that Spark 4.3 lists, and how a view that calls it is kept. `make docs` makes this
page from the lists that Viewkeep itself reads.

- **by row**: computed for rows that change. **from differences**: sums and counts follow from what
  came and went. **by group**, **by partition**: computed again for the groups or partitions that
  changes touch ([affected keys](scripts.md)). **between two bounds**: in conditions, for the rows
  that a bound passes when the clock moves ([as of](keeper.md)). **as a whole**: the view is
  computed anew by Spark when its inputs change.
- **DuckDB or Spark**: both compute the same, so an embedded lake may use it. **Spark**: the lake
  needs a session; the type is the one that Spark gives. Where a reason stands in brackets, DuckDB
  differs for some arguments only, and is used for the others.
- Operators, `CASE`, `CAST`, `LIKE`, `ILIKE`, `RLIKE` (patterns that all engines read
  alike), `IN`, `BETWEEN`, `EXTRACT`, `TRIM`, `POSITION`, `TRY_CAST`, `||`,
  `&`, `|`, `^`, `~` are computed by row, by both, and so are elements of arrays and maps; other
  patterns, lambda functions, and any of them over types that only Spark converts, by row,
  by Spark. Of the functions of arrays, both compute `split` where the pattern is a text, and
  `array_join` where the separator is a literal.
- Logarithms, powers and trigonometric functions are Spark's: their last digit differs between the
  mathematics of Java and of C. `sqrt`, `degrees` and `radians` are rounded alike everywhere.
- Functions of your own, in Python or SQL, are computed by row, by Spark, if the view declares them
  deterministic: `create_view(..., functions=["f"])`; aggregates, by group, if it names them:
  `aggregates=["f"]`.
- DISTINCT and FILTER may stand with every aggregate that is kept by group. Where Spark's answer
  depends on the order of rows, views [choose by value](scripts.md).
"""

_SYNTAX = ("date_part", "datepart", "extract", "if", "position", "struct")
"""Functions that the algebra has by other names, as far as it knows their arguments."""


@dataclass(frozen=True)
class FunctionLine:
    """A function, how views that call it are kept, and which engine computes it."""

    name: str
    kind: str
    kept: str
    engine: str


def lines() -> list[FunctionLine]:
    """All functions of Spark, by name."""
    return sorted(_lines(), key=lambda line: line.name)


def page() -> str:
    """The whole page."""
    every = lines()
    sections = [_section(title, [e for e in every if e.kind == k]) for k, title in SECTIONS.items()]
    return "\n".join([HEAD, *sections])


def _lines() -> Iterator[FunctionLine]:
    for name in SPARK_FUNCTIONS:
        if name in CALLS:
            yield FunctionLine(name, "clock", BY_BOUND, BOTH)
        elif name in NON_DETERMINISTIC:
            yield FunctionLine(name, "refused", "refused", "")
        elif name in AGGREGATE_NAMES:
            yield _aggregate(name, AGGREGATE_NAMES[name])
        elif name in SPARK_AGGREGATES:
            yield FunctionLine(name, "aggregate", "as a whole", ONLY_SPARK)
        elif name in WINDOW_FUNCTIONS:
            yield FunctionLine(name, "window", BY_PARTITION, BOTH)
        elif name in SPARK_WINDOWS:
            yield FunctionLine(name, "window", "as a whole", ONLY_SPARK)
        elif name in GENERATORS:
            yield FunctionLine(name, "rows", BY_ROW, BOTH)
        elif name == "range":
            yield FunctionLine(name, "rows", "constant rows", BOTH)
        elif name in SPARK_GENERATORS | TIME_WINDOWS:
            yield FunctionLine(name, "rows", "as a whole", ONLY_SPARK)
        else:
            yield _scalar(name)


def _scalar(name: str) -> FunctionLine:
    known = SYNONYMS.get(name, name)
    assert name in SCALAR_FUNCTIONS
    engine = _engine(exact.FUNCTIONS.get(known)) if _is_known(known) else ONLY_SPARK
    return FunctionLine(name, "scalar", BY_ROW, engine)


def _is_known(name: str) -> bool:
    return name in FUNCTIONS or name in COMPOSED or name in _SYNTAX


def _aggregate(name: str, known: str) -> FunctionLine:
    if known == ANY_VALUE:
        kept = "by group, where all rows of a group agree; else refused"
        return FunctionLine(name, "aggregate", kept, BOTH)
    kept = BY_GROUP
    if known in (*EXACT, "count_if"):
        kept = (
            "from differences"
            if known in ("count", "count_if")
            else ("from differences; of floating-point numbers by group")
        )
    return FunctionLine(name, "aggregate", kept, _engine(exact.AGGREGATES.get(known)))


def _engine(entry: exact.Entry | None) -> str:
    if entry is None:
        return BOTH
    if entry.applies is _EVERYWHERE:
        return f"{ONLY_SPARK}: {entry.reason}"
    return f"{BOTH} ({entry.reason})"


def _section(title: str, listed: Iterable[FunctionLine]) -> str:
    rows = [f"| `{each.name}` | {each.kept} | {each.engine} |" for each in listed]
    return "\n".join(
        [f"## {title}\n", "| function | kept | computed by |", "|---|---|---|", *rows, ""]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
