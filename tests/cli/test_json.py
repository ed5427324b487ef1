"""The JSON layout: what docs/explain.md promises; tests/test_docs.py runs its example."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from typer.testing import CliRunner

from tests.strategies import queries
from viewkeep.analysis import analyze_query
from viewkeep.cli.main import app
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.report.as_json import analysis_json

DOCS = Path(__file__).parent.parent.parent / "docs" / "explain.md"
COST = {"exponent": str, "order": str, "value": float}
BOUNDS = {
    **dict.fromkeys(("preprocessing", "update", "delay", "space"), COST),
    "amortized": bool,
    "best_epsilon": (str, type(None)),
}
VERDICT = {
    "holds": bool,
    "because": str,
    "variables": [str],
    "atoms": [str],
    "value": (int, type(None)),
}
NODE: dict[str, Any] = {"variable": str, "kind": str, "depends_on": [str], "atoms": [str]}
NODE["children"] = [NODE]
ANALYZED = {
    "name": str,
    "status": str,
    "query": str,
    **{name: [str] for name in ("outputs", "inputs", "bound", "atoms")},
    "constraints": {
        **{name: [str] for name in ("fds", "keys", "foreign_keys", "degrees", "static")},
        "insert_only": bool,
    },
    "class": str,
    "summary": str,
    "strategy": {"name": str, "reason": str},
    "runs": str,
    "bounds": BOUNDS,
    "lower_bound": {
        **dict.fromkeys(("update", "delay", "conjecture"), (str, type(None))),
        "reason": str,
        "reached": bool,
    },
    "reduct": str,
    "fracture": str,
    "variable_order": [NODE],
    "update_costs": [{"atom": str, "exponent": (str, type(None)), "because": str}],
    "hints": [{"kind": str, "changes": [str], "text": str, "bounds": BOUNDS}],
}


def check(value: Any, layout: Any, place: str = "$") -> None:
    """Compare a value with its layout: types, one-element lists for lists, dicts with all keys."""
    if isinstance(layout, dict):
        assert set(value) == set(layout), place
        for key, part in layout.items():
            check(value[key], part, f"{place}.{key}")
    elif isinstance(layout, list):
        assert isinstance(value, list), place
        for index, item in enumerate(value):
            check(item, layout[0], f"{place}[{index}]")
    else:
        assert isinstance(value, layout), f"{place}: {value!r}"


@settings(max_examples=40, deadline=None)
@given(queries())
def test_every_query_has_the_documented_layout(query: ConjunctiveQuery) -> None:
    value = json.loads(json.dumps(analysis_json(analyze_query(query))))
    for verdict in value.pop("verdicts").values():
        check(verdict, VERDICT)
    check(value, ANALYZED)


def test_every_field_is_in_the_docs() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [
        name for name in ("verdicts", *ANALYZED, *VERDICT, *NODE) if f"`{name}`" not in text
    ] == []


def test_bounds_are_given_exactly_and_at_the_best_epsilon() -> None:
    arguments = ["explain", "Q() = R(a, b) * S(b, c) * T(c, a)", "--json"]
    [query] = json.loads(CliRunner().invoke(app, arguments).stdout)["queries"]
    assert query["bounds"]["update"] == {
        "exponent": "max(eps, 1 - eps)",
        "order": "O(N^max(eps, 1 - eps))",
        "value": 0.5,
    }
    assert query["bounds"]["best_epsilon"] == "1/2"
    assert query["lower_bound"]["conjecture"] == "OuMv"
    assert query["lower_bound"]["reached"] is True
    assert query["verdicts"]["hierarchical"]["variables"] == ["a", "b"]


def test_cascades_are_listed() -> None:
    queries = "Q1(a, b, c, d) = R(a, b) * S(b, c) * T(c, d); Q2(a, b, c) = R(a, b) * S(b, c)"
    document = json.loads(CliRunner().invoke(app, ["explain", queries, "--json"]).stdout)
    assert document["format"] == 1
    assert document["cascades"] == [
        {
            "rider": "Q1",
            "carriers": ["Q2"],
            "rewriting": "Q1(a, b, c, d) = Q2(a, b, c) * T(c, d)",
        }
    ]
