"""Values in notebooks: what is told, and that nothing of it is markup."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

import viewkeep as vk
from tests.page.lakes import COLUMN, HOSTILE, hostile_lake


class _Texts(HTMLParser):
    """The text of a piece of HTML, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags = "", set[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert [name for name, _ in attrs if name != "style"] == []

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def shown(value: object) -> str:
    """What a notebook shows of a value, as text."""
    told = _Texts(value._repr_html_())  # type: ignore[attr-defined]
    assert told.tags <= {"b", "i", "table", "tr", "th", "td", "pre"}
    return told.text


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> vk.Keeper:
    return hostile_lake(tmp_path_factory.mktemp("lake") / "shop")


def test_an_analysis_and_a_script(keeper: vk.Keeper) -> None:
    told = shown(vk.analyze(vk.parse("Q() = R(a, b) * S(b, c) * T(c, a)")))
    assert "O(N^3/2)" in told
    assert "cyclic core" in told
    assert "group-by" in shown(keeper.script("cost"))


def test_views_and_reports(keeper: vk.Keeper) -> None:
    [status], [view] = keeper.status("cost"), keeper.describe_views("cost")
    assert "1 of parts" in shown(status)
    assert HOSTILE in shown(view)
    assert COLUMN in shown(keeper.describe_views("names")[0])
    assert "id" in shown(keeper.history("cost")[0])
    assert "as its query gives" in shown(keeper.verify("cost"))
    assert "incremental (id)" in shown(keeper.plan("cost")[0])
    assert "names\n3\nfresh" in shown(keeper)


def test_a_live_view(keeper: vk.Keeper, tmp_path: Path) -> None:
    told = shown(keeper.live("names"))
    assert f"{HOSTILE}!" in told
    assert "NULL" in told
