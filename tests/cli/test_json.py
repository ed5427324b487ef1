"""The JSON layout: what docs/explain.md promises; tests/test_docs.py runs its example."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from typer.main import get_command
from typer.testing import CliRunner

from tests.strategies import queries
from viewkeep.analysis import analyze_query
from viewkeep.cli.main import app
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.report.query.as_json import analysis_json

DOCS = Path(__file__).parent.parent.parent / "docs" / "explain.md"
COST = {"exponent": str, "order": str, "value": float}
BOUNDS = {
    **dict.fromkeys(("preprocessing", "update", "delay", "space"), COST),
    "amortized": bool,
    "logarithmic": bool,
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
    "engine": {"name": str, "reason": (str, type(None))},
    "bounds": BOUNDS,
    "lower_bound": {
        **dict.fromkeys(("update", "delay", "conjecture"), (str, type(None))),
        "reason": str,
        "reached": bool,
    },
    "reduct": str,
    "fracture": str,
    "variable_order": [NODE],
    "heavy_light": (dict, type(None)),
    "update_costs": [{"atom": str, "exponent": (str, type(None)), "because": str}],
    "hints": [{"kind": str, "changes": [str], "text": str, "bounds": BOUNDS}],
}
HEAVY_LIGHT = {
    "splits": [{"variables": [str], "relations": [str], "thresholds": [str]}],
    "views": [{"view": str, "definition": str, "size": (str, type(None))}],
    "deltas": [{"relation": str, "parts": [str], "delta": str, "cost": (str, type(None))}],
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
    assert value["runs"] == value["strategy"]["name"]
    if value["heavy_light"] is not None:
        assert value["runs"] == "epsilon"
        check(value["heavy_light"], HEAVY_LIGHT)


def test_every_field_is_in_the_docs() -> None:
    text = DOCS.read_text(encoding="utf-8")
    inner = [name for [each] in HEAVY_LIGHT.values() for name in each]
    names = ("verdicts", *ANALYZED, *VERDICT, *NODE, *HEAVY_LIGHT, *inner)
    assert [name for name in names if f"`{name}`" not in text] == []


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


def test_heavy_and_light_parts_are_told_with_exact_exponents() -> None:
    arguments = ["explain", "Q() = R(a, b) * S(b, c) * T(c, a)", "--json"]
    [query] = json.loads(CliRunner().invoke(app, arguments).stdout)["queries"]
    parts = query["heavy_light"]
    assert parts["splits"][1] == {"variables": ["b"], "relations": ["S"], "thresholds": ["eps"]}
    assert parts["views"][0] == {
        "view": "V_ST(b, a)",
        "definition": "sum_c S_h(b, c) * T_l(c, a)",
        "size": "min(1 + eps, 2 - eps)",
    }
    assert parts["deltas"][0] == {
        "relation": "R",
        "parts": ["R_h", "R_l"],
        "delta": "dQ_*hh = dR_*(a, b) * sum_c S_h(b, c) * T_h(c, a)",
        "cost": "1 - eps",
    }


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


def test_every_command_that_prints_has_json() -> None:
    """`serve` prints an address, and is a page itself."""
    commands = dict[str, Any]()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {"": command})
        commands |= {f"{name} {each}".strip(): one for each, one in inner.items()}
    without = [
        n for n, c in commands.items() if "--json" not in {o for p in c.params for o in p.opts}
    ]
    assert without == ["serve"]
