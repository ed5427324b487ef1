"""The page of the papers: its maker runs at tiny sizes, and what is exact comes out as printed."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyspark", reason="bench.tpch knows both engines")
pytest.importorskip("duckdb")

import duckdb

from bench import papers
from bench._paper_idivm import (
    PRINTED_SECONDS,
    PRINTED_SPEED_UPS,
    example_claims,
    figure_12,
    figure_claims,
    point_costs,
    social_costs,
    speed_up,
)
from bench._paper_lecture import (
    class_claims,
    delta_claims,
    evaluation_claims,
    factor_claims,
    reduction_claims,
    rewriting_claims,
    triangle_claims,
    union_claims,
)
from bench._paper_page import NOT, PARTLY, REPRODUCED, Claim, Section, markdown
from bench._paper_survey import EXAMPLES, cascade_claim
from bench._paper_tpch import count_claims
from bench._paper_triangles import analysis_claims
from bench._social import QUERIES, SocialMedia

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXACT: dict[str, Sequence[Claim]] = {
    "factors": list(factor_claims()),
    "evaluation": list(evaluation_claims()),
    "triangle": list(triangle_claims("figure 2")),
    "delta": list(delta_claims()),
    "reduction": list(reduction_claims("section 3.4", [(2, 1), (1, 2), (3, 3)])),
    "classes": list(class_claims()),
    "rewriting": list(rewriting_claims()),
    "union": list(union_claims()),
    "diffs": list(example_claims()),
    "triangle bounds": list(analysis_claims()),
    "survey": [*(example.claim() for example in EXAMPLES), cascade_claim()],
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_claims_are_reproduced(name: str) -> None:
    wrong = [claim for claim in EXACT[name] if claim.verdict != REPRODUCED]
    assert not wrong
    assert EXACT[name]


def test_the_counts_of_tpch() -> None:
    found = {claim.statement: (claim.measured, claim.verdict) for claim in count_claims()}
    assert found == {
        "Boolean, hierarchical": ("11, 11, 11, 8", PARTLY),
        "Boolean, more under dependencies": ("4, 4, 4, 4", REPRODUCED),
        "non-Boolean, hierarchical": ("11, 14, 14, 12", NOT),
        "non-Boolean, more under dependencies": ("4, 2, 4, 4", REPRODUCED),
    }


def test_figure_12_by_accesses() -> None:
    """Accesses are exact, so that they are tested; seconds are not."""
    found = point_costs(figure_12(500, 1), 1, _ignore)
    claims = [claim for claim in figure_claims(found) if "accesses" in claim.statement]
    assert [claim.statement for claim in claims if claim.verdict == NOT] == []
    assert len(claims) == 8


def test_every_social_view_is_kept_and_read_less_by_ids() -> None:
    """`social_costs` compares the views of all scripts with recomputation."""
    found = social_costs(SocialMedia(100, 5, 10, 5, 10), 20, 1, _ignore)
    assert list(found) == list(QUERIES) == list(PRINTED_SPEED_UPS) == list(PRINTED_SECONDS)
    assert {query for query, costs in found.items() if speed_up(costs) <= 1} <= {"Q*1"}


@pytest.mark.parametrize("query", [name for name, forms in QUERIES.items() if len(forms) > 1])
def test_both_forms_of_a_social_view_have_the_same_rows(query: str) -> None:
    with duckdb.connect() as connection:
        SocialMedia(100, 5, 10, 5, 10).load(connection)
        first, second = (sorted(connection.sql(sql).fetchall()) for sql in QUERIES[query])
    assert first == second
    assert first


def _ignore(_: str) -> None:
    """In place of a progress bar."""


@pytest.mark.parametrize("name", [name for name in papers.SECTIONS if name != papers.SPARK])
def test_every_section_is_made(name: str, tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    papers.main(["--tiny", "--sections", name, "-o", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The papers, reproduced\n")
    assert "**reproduced**" in text
    for line in text.splitlines():  # a table has as many cells in each line
        assert not line.startswith("|") or line.endswith("|"), line


@pytest.mark.slow
@pytest.mark.skipif("VIEWKEEP_LONG" not in os.environ, reason="the long form fills views on Spark")
def test_the_section_on_spark(spark: "SparkSession") -> None:
    """`measure` compares all strategies with recomputation."""
    from bench._paper_spark import SparkSizes, section

    found = section(SparkSizes(300, 20, 1), _ignore, spark)
    assert [claim.place for claim in found.claims] == ["figure 12", "section 6.1"]
    assert found.details[0].count("\n| ") == 7


def test_the_summary_counts_verdicts() -> None:
    claims = [Claim("here", "x", "1", "1", verdict) for verdict in (REPRODUCED, PARTLY, PARTLY)]
    text = markdown("t", "", [Section("one", "", claims), Section("two", "", claims[:1])])
    assert "| one | 1 | 2 | 0 |" in text
    assert "| all | 2 | 2 | 0 |" in text
    assert text.count("**partly**") == 2
