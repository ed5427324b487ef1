"""Which SQL is kept, and how: the queries of TPC-H and a view after each template of TPC-DS.

    python -m bench.coverage            prints two tables
    python -m bench.coverage --docs     writes docs/coverage.md
    python -m bench.coverage --plain    without the last ORDER BY and LIMIT of the texts

TPC-H stands as the specification writes it (examples/tpch), the views after TPC-DS in bench/tpcds:
the same tables, joins, operators and nesting. Nothing is run.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from viewkeep.diffs.decide import decide
from viewkeep.errors import UnsupportedError, ViewkeepError
from viewkeep.query.tables import Table
from viewkeep.sql.parse import parse_view
from viewkeep.sql.schema import read_schema
from viewkeep.sql.verbatim import read_verbatim

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
FOLDERS = {"TPC-H": ROOT / "examples" / "tpch", "TPC-DS": ROOT / "bench" / "tpcds"}
_LAST_ORDER = re.compile(r"\n(ORDER BY [^()]*|LIMIT \d+)$")


@dataclass(frozen=True)
class Line:
    """How one query is kept: by which strategy, and why; an empty strategy is a refusal."""

    query: str
    strategy: str
    reason: str

    @property
    def is_incremental(self) -> bool:
        """Whether changes are brought in."""
        return self.strategy not in ("", "recompute")


def read_tables(folder: Path) -> dict[str, Table]:
    """The tables of a benchmark."""
    return read_schema((folder / "schema.sql").read_text())


def read_queries(folder: Path, plain: bool = False) -> dict[str, str]:
    """The texts of a benchmark, by name; `plain` ones without the last ORDER BY and LIMIT."""
    texts = {path.stem: path.read_text().rstrip() for path in sorted(folder.glob("q*.sql"))}
    return {name: _LAST_ORDER.sub("", text) if plain else text for name, text in texts.items()}


def coverage(queries: Mapping[str, str], tables: Mapping[str, Table]) -> list[Line]:
    """How each query is kept under the policy `auto`."""
    return [_line(name, sql, tables) for name, sql in queries.items()]


def _line(name: str, sql: str, tables: Mapping[str, Table]) -> Line:
    try:
        decision = decide(parse_view(sql, tables))
    except UnsupportedError as refusal:
        reason = refusal.problem.removesuffix(" is not supported in a view")
        read_verbatim(sql, tables, refusal)  # an error for what has no stable answer
        return Line(name, "recompute", reason)
    except ViewkeepError as error:
        return Line(name, "", str(error).split("\n")[0])
    return Line(name, decision.strategy, decision.reason)


def summary(lines: Iterable[Line]) -> str:
    """The totals, and why views are recomputed."""
    lines = list(lines)
    accepted = [line for line in lines if line.strategy]
    kept = [line for line in lines if line.is_incremental]
    total = f"{len(lines)} queries: {len(accepted)} accepted, {len(kept)} incremental"
    reasons = Counter(line.reason for line in accepted if not line.is_incremental).most_common()
    return "\n".join([total, *(f"- {count} times: {reason}" for reason, count in reasons)])


def table(lines: Iterable[Line]) -> str:
    """One row for each query, in Markdown."""
    rows = [f"| {x.query} | {x.strategy or 'refused'} | {x.reason} |" for x in lines]
    return "\n".join(["| query | strategy | why |", "|---|---|---|", *rows])


def page(plain: bool = False) -> str:
    """The page of the docs."""
    parts = [
        "# Which SQL is kept, and how",
        "The 22 queries of TPC-H in the form of the specification (`examples/tpch`), and a view "
        "after each of the 99\ntemplates of TPC-DS (`bench/tpcds`: the same tables, joins, "
        "operators and nesting). `make coverage` makes this page.",
    ]
    for name, folder in FOLDERS.items():
        lines = coverage(read_queries(folder, plain), read_tables(folder))
        parts += [f"## {name}", summary(lines), table(lines)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Print the tables, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--docs", action="store_true", help="write docs/coverage.md")
    parser.add_argument("--plain", action="store_true", help="without the last ORDER BY, LIMIT")
    arguments = parser.parse_args()
    text = page(arguments.plain)
    if arguments.docs:
        PAGE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
