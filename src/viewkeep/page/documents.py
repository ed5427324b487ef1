"""What the page shows, as JSON values: a lake, a view, a table, the answer of the playground.

Whatever cannot be told of one thing is an `error` in its place, so that the rest is shown.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from viewkeep.errors import ViewkeepError
from viewkeep.explain import AnalyzedQuery, Outcome, explain
from viewkeep.lake_reader import LakeReader
from viewkeep.query.algebra import Node
from viewkeep.reading import FailedStatement, UnclassifiedView, is_sql, read_view
from viewkeep.report.lake.answer import answer_json
from viewkeep.report.lake.freshness import status_json
from viewkeep.report.lake.row_changes import row_changes_json
from viewkeep.report.query.as_json import analysis_json, failed_json, unsupported_json
from viewkeep.report.script.page import DEFAULT, PAGE, delta_script, script_lines
from viewkeep.report.script.picture import plan_picture

Json = dict[str, Any]
ROWS, CHANGES, VERSIONS = 50, 50, 5
"""The rows and the changes that are shown, and the versions that changes are looked for in."""
HISTORY = 400
"""The refreshes that charts show."""
MOST_ROWS = 500
"""The rows that the playground shows."""
LARGE = 60
"""The most operators that a picture shows."""
_REPORT = ("version", "at", "strategy", "reason", "rows", "rows_changed", "seconds", "error")


def lake_document(keeper: LakeReader, name: str) -> Json:
    """The tables and views of a lake, and how fresh they are."""
    statuses = {each["name"]: _brief_status(each) for each in _statuses(keeper)}
    return {
        "name": _short_name(name),
        "place": name,
        "at": int(time.time() * 1000),
        "tables": [asdict(each) for each in keeper.describe_tables()],
        "views": [
            {**asdict(each), "status": statuses[each.name]} for each in keeper.describe_views()
        ],
    }


def _short_name(place: str) -> str:
    """What people call a lake: its folder, or that above one that is called lake.

    >>> _short_name("/data/shop"), _short_name("/home/ada/shop/lake"), _short_name("/")
    ('shop', 'shop', '/')
    """
    *above, last = [part for part in place.split("/") if part] or [place]
    return above[-1] if last == "lake" and above else last


def view_document(keeper: LakeReader, name: str, rows: bool = True) -> Json:
    """One view: how it is kept, its history, its analysis; its rows and its last changes, unless
    `rows` is false."""
    [view], [status] = keeper.describe_views(name), _statuses(keeper, name)
    history = _part_or_problem(lambda: keeper.history(name, HISTORY + 1), [])
    balance = status.get("balance") or {}
    return {
        **asdict(view),
        "status": _brief_status(status),
        "history": [_report(each) for each in history[:HISTORY]],
        "more_history": len(history) > HISTORY,
        "explanation": _part_or_problem(
            lambda: keeper.explain(name, script=False), "", as_text=True
        ),
        "caches": [asdict(each) for each in _part_or_problem(lambda: keeper.caches(name), [])],
        "heavy": [str(each) for each in balance.get("heavy", ())] if rows else [],
        "picture": _part_or_problem(lambda: _picture(keeper.operators(name), name), ""),
        **_script(lambda: str(keeper.script(name))),
        "analysis": _analysis(keeper, view.sql),
        **_rows_and_changes(keeper, name, rows),
    }


def table_document(keeper: LakeReader, name: str, rows: bool = True) -> Json:
    """One base table; with its first rows and its last changes, unless `rows` is false."""
    keeper.table(name)  # an error, if there is none
    [table] = [each for each in keeper.describe_tables() if each.name == name]
    about = asdict(table)
    about["row_count"] = about.pop("rows")
    return {**about, **_rows_and_changes(keeper, name, rows)}


def explanation_document(keeper: LakeReader, text: str) -> Json:
    """What could be kept of a query over the lake, in SQL, or over any relations, in the notation;
    nothing is run."""
    [outcome, *others] = explain(text, keeper.readable if is_sql(text) else None).outcomes
    if others:
        raise ViewkeepError("one query at a time")
    return {"analysis": _outcome_json(outcome), **_script(lambda: _script_of(keeper, text))}


def answer_document(keeper: LakeReader, text: str, seconds: float | None = None) -> Json:
    """The first rows of a query that a user wants to see; it is ended after so many `seconds`."""
    return _answer(keeper.query(text, MOST_ROWS + 1, timeout=seconds), MOST_ROWS)


def report_document(keeper: LakeReader, name: str, rows: bool = True) -> Json:
    """All of it, for a file that needs no server; without `rows`, nothing of what tables hold."""
    return {
        "lake": lake_document(keeper, name),
        "view": {each: view_document(keeper, each, rows) for each in keeper.views},
        "table": {each: table_document(keeper, each, rows) for each in keeper.tables},
    }


# --- parts ----------------------------------------------------------------------------------------


def _statuses(keeper: LakeReader, *names: str) -> list[Json]:
    statuses: list[Json] = status_json(keeper.status(*names))["views"]
    return statuses


def _brief_status(status: Json) -> Json:
    """A status without what only the next refresh reads."""
    last = status["last"]
    return {**status, "last": None if last is None else {n: last[n] for n in _LAST}}


_LAST = (*_REPORT, "from_scratch")


def _report(report: Any) -> Json:
    about = {name: getattr(report, name) for name in _REPORT}
    return about | {
        "changes": dict(report.changes),
        "from_scratch": report.from_scratch or report.strategy == "recompute",
        "backend": report.backend,
        "expected": report.expected_seconds,
    }


def _part_or_problem(part: Callable[[], Any], otherwise: Any, as_text: bool = False) -> Any:
    """A part of a document; what is wrong with it, if that is to be said in its place."""
    try:
        return part()
    except ViewkeepError as error:
        return str(error) if as_text else otherwise


def _picture(tree: Node, name: str) -> str:
    """The plan as an image, in base64: what views and columns are called cannot leave it."""
    generated = delta_script(tree, DEFAULT)
    if len(generated.plan.nodes) > LARGE:
        return ""
    return b64encode(plan_picture(generated, name).encode()).decode()


def _script(told: Callable[[], str]) -> Json:
    try:
        return {"script": told(), "script_problem": ""}
    except ViewkeepError as error:
        return {"script": "", "script_problem": str(error)}


def _script_of(keeper: LakeReader, text: str) -> str:
    generated = delta_script(read_view(text, keeper.readable), DEFAULT)
    return "\n".join(script_lines(generated.script, PAGE))


def _analysis(keeper: LakeReader, sql: str) -> Json | None:
    try:
        [outcome] = explain(sql, keeper.readable).outcomes
    except (ViewkeepError, ValueError):  # SQL that only Spark reads, or several statements
        return None
    return _outcome_json(outcome)


def _outcome_json(outcome: Outcome) -> Json:
    match outcome:
        case AnalyzedQuery(_, analysis):
            return analysis_json(analysis)
        case UnclassifiedView(name, tree, reason):
            return unsupported_json(name, tree, reason)
        case FailedStatement(name, error):
            return failed_json(name, error)


def _rows_and_changes(keeper: LakeReader, name: str, with_rows: bool) -> Json:
    if not with_rows:
        left_out = {"error": "left out of this report (--no-rows)"}
        return {"rows": left_out, "changes": left_out}
    return {"rows": _rows(keeper, name), "changes": _changes(keeper, name)}


def _rows(keeper: LakeReader, name: str) -> Json:
    quoted = name.replace("`", "``")
    try:
        return _answer(keeper.query(f"SELECT * FROM `{quoted}`", ROWS + 1, "duckdb"), ROWS)
    except ViewkeepError as error:
        return {"error": str(error)}


def _answer(table: Any, most: int) -> Json:
    columns = {field.name: str(field.type) for field in table.schema}
    rows: list[Mapping[str, Any]] = table.slice(0, most).to_pylist()
    return answer_json(columns, rows, table.num_rows > most)


def _changes(keeper: LakeReader, name: str) -> Json:
    try:
        newest = keeper.version(name)
        table = keeper.changes(name, max(0, newest - VERSIONS), newest, "duckdb")
        last = table.slice(max(0, table.num_rows - CHANGES)).to_pylist()
    except ViewkeepError as error:
        return {"error": str(error)}
    document = row_changes_json(name, newest, reversed(last))
    return {**document, "more": table.num_rows > CHANGES}
