"""What the page is made from: documents of a lake, and one file that draws them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import viewkeep as vk
from tests.cli.lakes import done, viewkeep
from tests.page.lakes import COLUMN, HOSTILE, hostile_lake
from viewkeep.page.documents import (
    answer_document,
    explanation_document,
    lake_document,
    report_document,
    table_document,
    view_document,
)
from viewkeep.page.html import content_policy, page_html


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> vk.Keeper:
    return hostile_lake(tmp_path_factory.mktemp("lake") / "shop")


def test_the_lake(keeper: vk.Keeper) -> None:
    document = lake_document(keeper, "/data/shop")
    assert (document["name"], len(document["tables"])) == ("shop", 2)
    views = {each["name"]: each for each in document["views"]}
    assert views["dear"]["reads"] == ("cost",)
    assert {name: each["status"]["fresh"] for name, each in views.items()} == {
        "cost": False,
        "dear": False,
        "names": True,
    }
    assert views["cost"]["status"]["behind"] == {"parts": 1}
    json.dumps(document, default=str)


def test_a_view(keeper: vk.Keeper) -> None:
    document = view_document(keeper, "cost")
    assert [each["version"] for each in document["history"]] == [1, 0]
    assert [each["from_scratch"] for each in document["history"]] == [False, True]
    assert document["analysis"]["class"]
    assert document["analysis"]["bounds"]["update"]["order"] == "O(N^eps)"
    assert "strategy  id" in document["explanation"]
    assert document["script"]
    assert document["picture"]
    assert [each["rows"] for each in document["caches"]] == [
        each.rows for each in keeper.caches("cost")
    ]
    assert document["rows"]["rows"] == [{"did": 1, "cost": 6}, {"did": 2, "cost": 5}]
    [change] = document["changes"]["changes"]
    assert (change["operation"], change["before"]["cost"], change["after"]["cost"]) == (
        "update",
        5,
        6,
    )


def test_a_table(keeper: vk.Keeper) -> None:
    document = table_document(keeper, "parts")
    assert (document["row_count"], len(document["rows"]["rows"])) == (3, 3)
    assert document["rows"]["rows"][0][COLUMN] == f"{HOSTILE}!"
    with pytest.raises(vk.ViewkeepError, match='no table "part"'):
        table_document(keeper, "part")


def test_the_playground_explains_and_answers(keeper: vk.Keeper) -> None:
    sql = "SELECT u.did, max(p.price) AS m FROM parts p JOIN uses u ON u.pid = p.pid GROUP BY u.did"
    document = explanation_document(keeper, sql)
    assert document["analysis"]["status"] == "analyzed"
    assert document["script"]
    triangle = explanation_document(keeper, "Q() = R(a, b) * S(b, c) * T(c, a)")
    assert triangle["analysis"]["class"] == "cyclic"
    assert answer_document(keeper, "SELECT did FROM dear ORDER BY did DESC")["rows"] == [
        {"did": 2},
        {"did": 1},
    ]
    for bad in ("SELECT nope FROM parts", "DROP TABLE parts", "SELECT 1 AS a; SELECT 2 AS b"):
        with pytest.raises(vk.ViewkeepError):
            answer_document(keeper, bad)


class _Elements(HTMLParser):
    """The elements of a page, with their attributes, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_a_report_is_one_file_without_markup_of_the_lake(keeper: vk.Keeper) -> None:
    page = page_html(report_document(keeper, "/data/shop"))
    elements = _Elements(page).elements
    assert [tag for tag, _ in elements].count("script") == 2
    assert not [tag for tag, _ in elements if tag in ("img", "b", "iframe", "object")]
    for _, attributes in elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert "src" not in attributes
    assert HOSTILE not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["table"]["parts"]["rows"]["rows"][0][COLUMN] == f"{HOSTILE}!"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = page_html()
    outside = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", page))
    assert outside == {"http://www.w3.org"}, "the name of SVG"
    assert "default-src 'none'" in content_policy()
    assert "unsafe" not in content_policy()
    script = page_html().rpartition("<script>")[2]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)


def test_a_report_without_rows_holds_nothing_of_the_tables(keeper: vk.Keeper) -> None:
    document = report_document(keeper, "/data/shop", rows=False)
    told = {name: each.pop("sql") for name, each in document["view"].items()}
    for each in (*document["lake"]["views"], *document["view"].values()):
        each.pop("sql", None)
    assert told["names"]
    assert HOSTILE not in json.dumps(document, default=str), "it stands in rows, and in one SQL"
    assert "window.hacked" not in page_html(document)


def test_the_command_writes_the_file(tmp_path: Path, keeper: vk.Keeper) -> None:
    lake = Path(keeper.describe_views("cost")[0].location).parent
    answer = done("report", "-o", tmp_path / "lake.html", "--lake", lake, "--json")
    assert answer.json["bytes"] == (tmp_path / "lake.html").stat().st_size
    refused = viewkeep("report", "-o", tmp_path / "none" / "lake.html", "--lake", lake)
    assert (refused.code, "cannot write" in refused.err) == (2, True)
