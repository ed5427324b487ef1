"""Pages and JSON about lakes, from values alone."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from time import time

import pytest

from viewkeep.lake import RefreshReport, Verification
from viewkeep.lake.descriptions import TableDescription, ViewDescription
from viewkeep.lake.views.balance import Balance, HeavyValues
from viewkeep.lake.views.status import ViewStatus, speed_up
from viewkeep.report.lake.definitions import tables_json, tables_page, view_page, views_page
from viewkeep.report.lake.freshness import created_text, status_json, status_page
from viewkeep.report.lake.refreshes import (
    history_json,
    history_page,
    refresh_json,
    refresh_page,
)
from viewkeep.report.lake.verification import verification_json, verification_page
from viewkeep.report.text import plain_text

REFRESH = RefreshReport(
    *("cost", "id"),
    changes={"parts": 1200, "uses": 3},
    rows_changed=40,
    rows=5000,
    jobs=2,
    seconds=0.42,
    before={"parts": 1},
    after={"parts": 2},
    version=7,
    at=1_700_000_000_000,
)
ANEW = replace(
    REFRESH,
    strategy="recompute",
    reason="as asked",
    seconds=21.0,
    version=6,
    from_scratch=True,
)
FIRST = replace(ANEW, strategy="id", seconds=84.0, before={}, version=0)
NONE = RefreshReport("dear", "none", "nothing changed", rows=12)
FAILED = RefreshReport("broken", "none", error="its table is gone")
FRESH = ViewStatus("cost", 5000, "id", "auto", last=REFRESH, speed_up=50.0)
BEHIND = replace(FRESH, name="dear", behind={"parts": 7, "uses": 1}, waiting=400.0)
UNKNOWN = replace(FRESH, name="dark", behind={"parts": 7, "stock": None}, waiting=3.0)
BROKEN = ViewStatus("broken", 0, "id", "auto", problem="its table is gone")
VIEW = ViewDescription(
    *("cost", "SELECT did, sum(price) AS cost FROM uses JOIN parts USING (pid) GROUP BY did"),
    *("/lake/cost", ("uses", "parts"), ("dear",), {"did": "int not null", "cost": "bigint"}),
    *(("did",), "auto", "auto", True),
)
TABLE = TableDescription(
    *("parts", True, "/lake/parts", {"pid": "int not null", "price": "int"}, ("pid",)),
    readers=("cost",),
    version=3,
    rows=1_000_000,
    size=12_345_678,
)


def test_a_refresh() -> None:
    page = plain_text(refresh_page([ANEW, NONE, FAILED]), 100)
    assert page.splitlines()[1:] == [
        " view    strategy       changes              changed   rows  jobs  seconds",
        " ─────────────────────────────────────────────────────────────────────────",
        " cost    recompute      parts 1,200, uses 3      all  5,000     2   21.0 s",
        " dear    nothing to do  -                          0     12     0   0.00 s",
        " broken  failed         -                          0      0     0   0.00 s",
        "",
        "cost was computed anew: as asked",
        "broken: its table is gone",
    ]


def test_a_speed_up_compares_refreshes_with_refreshes() -> None:
    """The first computation starts Spark, compiles and reads files for the first time."""
    assert speed_up([REFRESH, FIRST]) is None
    assert speed_up([REFRESH, replace(FIRST, strategy="recompute")]) is None
    assert speed_up([ANEW, FIRST]) is None
    assert speed_up([REFRESH, ANEW, FIRST]) == pytest.approx(50.0)
    assert speed_up([ANEW, REFRESH, FIRST]) == pytest.approx(50.0)


def test_the_first_version_is_told_with_all_its_rows() -> None:
    page = plain_text(history_page("cost", [REFRESH, FIRST]), 100)
    first = next(line for line in page.splitlines() if line.lstrip().startswith("0 "))
    assert " id " in first
    assert " all " in first


def test_a_history() -> None:
    page = plain_text(history_page("cost", [REFRESH, ANEW], 3), 100)
    assert "7  2023-11-14 22:13  id " in page
    assert page.endswith("and 3 older: --limit 0 shows all\n")


def test_a_history_tells_what_was_expected() -> None:
    expected = {"incremental": 0.3, "recompute": 20.0}
    reports = [replace(each, expected=expected) for each in (REFRESH, ANEW)]
    page = plain_text(history_page("cost", [*reports, FIRST]), 100)
    ends = [line.split()[-4:] for line in page.splitlines() if "2023" in line]
    assert ends == [
        ["0.42", "s", "0.30", "s"],
        ["21.0", "s", "20.0", "s"],
        ["5,000", "84.0", "s", "-"],
    ]
    assert history_json("cost", reports)["refreshes"][0]["expected"] == expected


def test_reports_of_other_releases_are_read() -> None:
    notes = {**REFRESH.notes(), "what_comes_later": 1}
    assert RefreshReport.from_notes(notes, 7, REFRESH.at) == REFRESH
    del notes["expected"]
    assert RefreshReport.from_notes(notes, 7, REFRESH.at).expected_seconds is None


def test_refreshes_for_programs() -> None:
    document = json.loads(json.dumps(refresh_json([REFRESH, FAILED])))
    assert document["format"] == 1
    assert document["refreshes"][0]["changes"] == {"parts": 1200, "uses": 3}
    assert document["refreshes"][1]["error"] == "its table is gone"


def test_freshness_in_words() -> None:
    just_now = replace(REFRESH, at=int(time() * 1000))
    page = plain_text(status_page([replace(FRESH, last=just_now), BEHIND, UNKNOWN, BROKEN]), 110)
    lines = {line.split()[0]: line for line in page.splitlines() if line.strip()}
    fresh = "cost 5,000 fresh - now id 0.42 s 50.0x"
    assert " ".join(lines["cost"].split()) == fresh
    assert "8 behind     7 min" in lines["dear"]
    assert "7+ behind   3.00 s" in lines["dark"]
    assert lines["broken"].split() == ["broken", "0", "broken", "-", "-", "-", "-", "-"]
    assert lines["broken:"] == "broken: its table is gone"


def test_freshness_for_programs() -> None:
    views = json.loads(json.dumps(status_json([FRESH, UNKNOWN, BROKEN])))["views"]
    assert [each["fresh"] for each in views] == [True, False, False]
    assert views[1]["behind"] == {"parts": 7, "stock": None}
    assert views[2]["problem"] == "its table is gone"
    assert views[2]["last"] is None


def test_advice_in_words() -> None:
    status = replace(FRESH, advice='repair("cost") takes it')
    lines = plain_text(status_page([status, BEHIND]), 100).splitlines()
    assert lines[-1] == 'cost: repair("cost") takes it'
    assert [each["advice"] for each in status_json([status, BEHIND])["views"]] == [
        'repair("cost") takes it',
        None,
    ]
    assert 'advice     repair("cost") takes it' in plain_text(view_page(VIEW, status, None), 100)


def test_heavy_values_in_words() -> None:
    heavy = HeavyValues("a.src", (11.0,), 7, (((0,), 19),))
    status = replace(FRESH, balance=Balance(117, 121, 3, 1, (heavy,)))
    lines = plain_text(status_page([status, BEHIND]), 100).splitlines()
    assert lines[-2:] == [
        "cost: 117 tuples, thresholds from M = 121; values moved: 3, thresholds changed: 1",
        "  heavy a.src: 7 with degrees from 11.0 on: 0 (19), ...",
    ]
    page = plain_text(view_page(VIEW, status, None), 100)
    assert "balance    117 tuples" in page
    assert "heavy      a.src: 7 with degrees" in page


def test_a_new_view_tells_how_it_is_kept() -> None:
    assert plain_text(created_text(ANEW, FRESH), 100) == (
        "cost: 5,000 rows, computed in 21.0 s; kept by strategy id (as asked)\n"
    )


def test_rows_that_differ() -> None:
    missing = [(1, Decimal("1.50"), date(2026, 1, 2), None)]
    wrong = Verification(
        *("cost", 10, 1, 25, missing, [(2, Decimal(0), None, "a")] * 20),
        columns=("did", "cost", "day", "name"),
        seconds=1.5,
    )
    right = Verification("dear", 3, 0, 0, seconds=0.25)
    page = plain_text(verification_page([right, wrong]), 100)
    assert "dear     3  as its query gives" in page
    assert "cost    10  WRONG: 1 row missing, 25 rows too many" in page
    assert "missing   1    1.50  2026-01-02  NULL" in page
    assert "and 5 rows more" in page
    assert "`viewkeep view repair cost`" in page
    document = json.loads(json.dumps(verification_json([right, wrong])))
    assert [each["ok"] for each in document["views"]] == [True, False]
    assert document["views"][1]["missing"] == [[1, "1.50", "2026-01-02", None]]


def test_definitions() -> None:
    gone = replace(TABLE, name="gone", rows=None, size=None, version=None, problem="no folder")
    page = plain_text(tables_page([TABLE, gone]), 110)
    assert (
        " parts  1,000,000  12.3 MB        3  Viewkeep    pid  pid int not null, price int" in page
    )
    assert page.endswith("gone: no folder\n")
    assert json.loads(json.dumps(tables_json([TABLE])))["tables"][0]["rows"] == 1_000_000
    listed = plain_text(views_page([VIEW, replace(VIEW, name="half", ready=False)]), 110)
    assert "half (unfinished)" in listed


def test_a_view_in_full() -> None:
    page = plain_text(view_page(VIEW, FRESH, [(1, 10), (2, None)]), 80)
    assert "strategy   id (asked for: auto), policy auto" in page
    assert "refreshed  version 7, id in 0.42 s, 50.0x faster than anew" in page
    assert "SELECT did, sum(price) AS cost FROM uses JOIN parts" in page
    assert page.rstrip().endswith("did  cost\n  1    10\n  2    NULL")
    assert "First rows" not in plain_text(view_page(VIEW, FRESH, None), 80)
    assert "no rows" in plain_text(view_page(VIEW, FRESH, []), 80)


@pytest.mark.parametrize("page", [refresh_page, status_page, verification_page, tables_page])
def test_an_empty_lake_has_pages_too(page: object) -> None:
    assert callable(page)
    assert plain_text(page([]), 80).startswith("no ")
