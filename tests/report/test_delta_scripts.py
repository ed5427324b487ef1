"""Delta scripts for people: reviewed pages, readable names, pictures, restricted changes.

`UPDATE_GOLDEN=1 pytest` writes the golden files and docs/plots/device_cost.svg again.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console, Group
from typer.testing import CliRunner

from viewkeep.cli.main import app
from viewkeep.diffs.generate import generate
from viewkeep.diffs.show.script import show_lines, show_script
from viewkeep.errors import QueryError
from viewkeep.query.algebra import Node
from viewkeep.report.script.page import (
    ScriptOptions,
    delta_script,
    reads_by_change,
    script_json,
    script_sections,
)
from viewkeep.report.script.picture import plan_picture
from viewkeep.report.text import plain_text
from viewkeep.sql import parse_view, read_schema

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
PICTURE = ROOT / "docs" / "plots" / "device_cost.svg"
SVG = "{http://www.w3.org/2000/svg}"

SCHEMA = """
CREATE TABLE parts (pid INT PRIMARY KEY, price INT);
CREATE TABLE devices (did INT PRIMARY KEY, category STRING);
CREATE TABLE devices_parts (did INT, pid INT, PRIMARY KEY (did, pid));
"""
JOINED = (
    "FROM parts p JOIN devices_parts dp ON p.pid = dp.pid JOIN devices d ON dp.did = d.did "
    "WHERE d.category = 'phone'"
)
V = f"SELECT dp.did, p.pid, p.price {JOINED}"  # id_based_ivm, figure 1
COST = f"SELECT dp.did, SUM(p.price) AS cost {JOINED} GROUP BY dp.did"  # V' of figure 5
LEFT_OVER = (
    "SELECT pid FROM parts p WHERE NOT EXISTS (SELECT 1 FROM devices_parts dp "
    "WHERE dp.pid = p.pid) UNION ALL SELECT did FROM devices WHERE category = 'phone'"
)
PRICE = ScriptOptions(("parts.price",), full=True)

PAGES = {
    "parts_price": (V, PRICE),
    "cost_price": (COST, PRICE),
    "cost_price_tuple": (COST, replace(PRICE, tuple_based=True)),
    "cost": (COST, ScriptOptions()),
    "left_over": (LEFT_OVER, ScriptOptions()),
    "left_over_some": (LEFT_OVER, ScriptOptions(("devices_parts+", "devices.category"), full=True)),
}


def view(sql: str, schema: str = SCHEMA) -> Node:
    return parse_view(sql, read_schema(schema))


def page(sql: str, options: ScriptOptions, width: int = 80, ascii_only: bool = False) -> str:
    return plain_text(Group(*script_sections(view(sql), options)), width, ascii_only)


def check_golden(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_script_is_the_reviewed_one(name: str) -> None:
    check_golden(GOLDEN / f"script_{name}.txt", page(*PAGES[name]))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", PAGES)
def test_no_line_is_wider_than_the_screen_and_nothing_is_cut(name: str, width: int) -> None:
    text = page(*PAGES[name], width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize("name", PAGES)
def test_ascii_screens_get_words_for_symbols(name: str) -> None:
    text = page(*PAGES[name], ascii_only=True)
    assert text.isascii()
    assert "APPLY" not in text or "project[" in text


def test_no_name_that_only_viewkeep_knows_is_shown() -> None:
    for sql in (V, COST, LEFT_OVER):
        for generated in (generate(view(sql)), generate(view(sql), tuple_based=True)):
            assert "#" not in show_script(generated.script)
            assert "#" not in show_script(generated.composed)


def test_a_script_prints_itself() -> None:
    script = delta_script(view(V), PRICE).script
    assert str(script).splitlines() == [
        "Δu6.1 = σ[price_pre is not price_post] (Δu(parts))",  # noqa: RUF001 - as in the papers
        "APPLY u  Δu6.1 TO view",
    ]


def test_names_in_a_script_mean_the_same_relation_everywhere() -> None:
    """A subquery used twice is named, and each name that is used is defined."""
    script = generate(view(COST)).script
    for statement in script.statements:
        text = "\n".join(show_lines(statement))
        for number in range(1, 30):
            uses, defined = text.count(f"s{number} "), text.count(f"where s{number} =")
            assert defined == (uses > 0)


def test_an_update_of_prices_touches_no_base_table() -> None:
    [price] = reads_by_change(delta_script(view(COST), PRICE).script)
    assert price.tables == ()
    assert price.kept == ("cache_6", "view")
    assert "The script touches no base table." in page(COST, PRICE)


def test_tuple_based_diffs_read_tables_where_ids_do_not() -> None:
    [price] = reads_by_change(delta_script(view(V), replace(PRICE, tuple_based=True)).script)
    assert "devices_parts" in price.tables


def test_a_view_without_a_script_shows_its_operators_and_why() -> None:
    tree = view("SELECT a, m FROM r", "CREATE TABLE r (a INT, m MAP<INT, INT>)")
    text = plain_text(Group(*script_sections(tree, ScriptOptions())))
    assert "Scan r" in text
    assert 'No delta script: table "r" has no key, and values of "m", map<int,int>' in text
    assert script_json(tree, ScriptOptions())["script"] is None


# changes ---------------------------------------------------------------------------------------


def test_columns_that_conditions_tell_apart_are_updated_apart() -> None:
    schema = SCHEMA.replace("category STRING", "category STRING, colour STRING")
    options = ScriptOptions(("devices.category, devices.colour", "devices+"))
    shown = V.replace("p.price", "p.price, d.colour", 1)
    diffs = delta_script(view(shown, schema), options).script.diffs
    assert [(d.schema.kind, d.schema.changed) for d in diffs] == [
        ("insert", ("category", "colour")),
        ("update", ("category",)),
        ("update", ("colour",)),
    ]
    without = delta_script(view(V, schema), options).script
    assert [d.schema.changed for d in without.diffs if d.schema.kind == "update"] == [("category",)]


def test_a_table_of_which_no_row_is_shown_takes_no_diffs() -> None:
    sql = (
        "SELECT x FROM (SELECT pid AS x, price AS y FROM parts UNION ALL SELECT did, NULL "
        "FROM devices) WHERE y > 1"
    )
    options = ScriptOptions(("devices.category", "devices+", "parts+"))
    assert [d.table for d in delta_script(view(sql), options).script.diffs] == ["parts"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("part+", 'no table "part" in the view (parts, devices_parts, devices); did you mean'),
        ("parts.prize", 'column "prize" is not in parts (pid, price); did you mean "price"?'),
        ("parts.pid", "pid is in the key of parts, and a change of it is parts- and parts+"),
        ("parts", "write parts+ for inserts, parts- for deletes, parts.column for updates"),
        ("", "write"),
    ],
)
def test_changes_that_cannot_be_are_explained(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=r"--changes") as error:
        delta_script(view(V), ScriptOptions((text,)))
    assert says in str(error.value)


# pictures --------------------------------------------------------------------------------------


def picture(sql: str, name: str = "cost", schema: str = SCHEMA) -> ElementTree.Element:
    return ElementTree.fromstring(plan_picture(generate(view(sql, schema)), name))


def test_the_picture_in_the_documentation_is_the_one_drawn_now() -> None:
    check_golden(PICTURE, plan_picture(generate(view(COST)), "device_cost"))


@pytest.mark.parametrize("sql", [V, COST, LEFT_OVER])
def test_a_picture_has_a_box_for_every_operator_and_an_arrow_for_every_input(sql: str) -> None:
    generated, drawn = generate(view(sql)), picture(sql)
    assert len(drawn.findall(f"{SVG}g")) == len(generated.plan.nodes)
    assert len(drawn.findall(f"{SVG}line")) == len(generated.plan.nodes)  # a tree, and the view


def test_boxes_do_not_overlap() -> None:
    sql = f"{LEFT_OVER} UNION ALL SELECT d.did FROM devices d LEFT JOIN parts p ON d.did = p.pid"
    corners = [
        (float(box.get("x", 0)), float(box.get("y", 0)))
        for box in picture(sql).iter(f"{SVG}rect")
        if box.get("rx") == "4" and box.get("width") == "236"
    ]
    for i, (x, y) in enumerate(corners):
        assert all(abs(x - a) >= 236 or abs(y - b) >= 78 for a, b in corners[:i])


def test_arrows_without_diffs_have_no_label() -> None:
    generated = delta_script(view(COST), PRICE)
    drawn = ElementTree.fromstring(plan_picture(generated, "cost"))
    labels = [e.text for e in drawn.iter(f"{SVG}text") if "flow" in str(e.get("class"))]
    assert labels == ["Δu"] * 5


HOSTILE = "CREATE TABLE `<b>&\"'[red]` (`</text><script>` INT PRIMARY KEY, `a]]>#pre` INT)"
HOSTILE_VIEW = (
    "SELECT `a]]>#pre` AS `[bold]x`, COUNT(*) AS `n<!--` FROM `<b>&\"'[red]` "
    "WHERE `a]]>#pre` <> 1 GROUP BY `a]]>#pre` "
    "UNION ALL SELECT `</text><script>`, 1 FROM `<b>&\"'[red]`"
)


def test_hostile_names_are_escaped_in_pictures() -> None:
    drawn = picture(HOSTILE_VIEW, "<svg onload='x'>&\x00\x1b", HOSTILE)
    known = {"svg", "title", "style", "rect", "defs", "marker", "path", "line", "g", "text"}
    assert {element.tag.removeprefix(SVG) for element in drawn.iter()} <= known
    assert "<b>&\"'[red]" in "".join(drawn.itertext())


def test_hostile_names_are_not_taken_for_markup_on_a_terminal() -> None:
    console = Console(force_terminal=True, color_system=None, width=200, highlight=False)
    with console.capture() as capture:
        for part in script_sections(view(HOSTILE_VIEW, HOSTILE), ScriptOptions(full=True)):
            console.print(part)
    assert "<b>&\"'[red]" in capture.get()
    assert "[bold]x" in capture.get()


# the command -----------------------------------------------------------------------------------


@pytest.fixture
def explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("COLUMNS", "80")
    tables = tmp_path / "tables.sql"
    tables.write_text(SCHEMA)

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["explain", *arguments, "--schema", str(tables)])

    return call


def test_the_command_shows_the_script_of_a_view(explain: Callable[..., Any]) -> None:
    short = explain(LEFT_OVER)
    assert short.exit_code == 0
    assert "--script shows them" in short.output
    full = explain(LEFT_OVER, "--script", "--changes", "parts+")
    assert "Script before minimization" in full.output
    assert "APPLY +" in full.output
    assert "tuple-based" in explain(LEFT_OVER, "--tuple").output


def test_the_command_draws_a_picture(explain: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    assert explain(LEFT_OVER, "--svg", str(file)).exit_code == 0
    assert ElementTree.parse(file).getroot().tag == f"{SVG}svg"
    missing = explain(LEFT_OVER, "--svg", str(tmp_path / "none" / "plan.svg"))
    assert "cannot write" in str(missing.exception)


def test_json_has_the_script(explain: Callable[..., Any]) -> None:
    answer = json.loads(explain(LEFT_OVER, "--json", "--changes", "parts+").output)
    [query] = answer["queries"]
    assert query["status"] == "not_conjunctive"
    assert query["script_problem"] is None
    script = query["script"]
    assert [d["diff"] for d in script["diffs"]] == ["Δ+(parts)"]
    assert script["diffs"][0]["reads_tables"] == ["devices_parts"]
    assert script["statements"][-1]["kind"] == "apply"
    assert script["statements"][-1]["target"] == "view"
    assert [s["reads"] for s in script["statements"]].count(["devices_parts"]) == 1
    assert all(rule["blocking"] is False for rule in script["rules"])


def test_options_of_scripts_are_for_one_view_that_has_one(explain: Callable[..., Any]) -> None:
    several = explain(f"{LEFT_OVER}; {LEFT_OVER}", "--script")
    assert "are for one view, but the text has 2: Q1, Q2" in str(several.exception)
