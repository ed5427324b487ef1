"""The views after the templates of TPC-DS, kept by scripts through changes of all their tables.

After every refresh the view and its caches equal their definitions, and DuckDB's answer to the
text itself, where the text has one answer.
"""

import os
from collections import Counter

import duckdb
import pytest

from bench.coverage import FOLDERS, read_queries, read_tables
from tests.diffs.harness import Bag, PlayedView, as_bag, expect, is_determined, plain
from tests.diffs.in_duckdb import tables_of
from tests.diffs.random_tables import as_arrow
from tests.tpcds.data import Data
from tests.transpile import to_duckdb
from viewkeep.errors import QueryError
from viewkeep.sql.parse import parse_view

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
TABLES = read_tables(FOLDERS["TPC-DS"])
QUERIES = read_queries(FOLDERS["TPC-DS"], plain=True)
IN_ENGINES = ("q47", "q53", "q57", "q63", "q89")
"""Averages of decimals in windows: Python, which runs the scripts here, leaves them to engines."""
CHOSEN = (
    [name for name in QUERIES if name not in IN_ENGINES]
    if LONG
    else ["q01", "q36", "q45", "q76", "q87", "q98"]
)
BATCHES = 6 if LONG else 3


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_views_equal_themselves_computed_anew(name: str) -> None:
    sql, seed = QUERIES[name], list(QUERIES).index(name)
    node = parse_view(sql, TABLES)
    data = Data(sql, tables_of(node, TABLES), seed)
    view = PlayedView(node, data.tables, {n: dict(rows) for n, rows in data.database.items()})
    text = to_duckdb(sql) if is_determined(node) else None
    for number in range(BATCHES):
        changes = data.change(6)
        try:
            view.refresh(changes, minimized=number % 2 == 0)
        except QueryError:  # the text has no answer, and DuckDB has none
            with pytest.raises(duckdb.InvalidInputException, match="More than one row"):
                in_duckdb(data, to_duckdb(sql))
            return
        view.check_kept()
        answer = None if text is None else in_duckdb(data, text)
        rows = plain(as_bag(view.visible()))
        if answer is None or (
            "ROLLUP" in sql and not rows
        ):  # whose total of no rows is no row here
            continue
        expect(f"{name}, to DuckDB", rows, answer)


def in_duckdb(data: Data, text: str) -> Bag | None:
    """DuckDB's answer, if it has one."""
    with duckdb.connect() as connection:
        for name, table in data.tables.items():
            connection.register(name, as_arrow(table, data.database[name].values()))
        try:
            return plain(Counter(connection.execute(text).fetchall()))
        except duckdb.BinderException as error:
            if "cannot be volatile" in str(error):  # it takes no error() inside a window
                return None
            raise
