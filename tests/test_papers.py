"""The page of the papers: its maker runs at tiny sizes, and what is exact comes out as printed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyspark", reason="bench.tpch knows both engines")

from bench import papers
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

EXACT: dict[str, Sequence[Claim]] = {
    "factors": list(factor_claims()),
    "evaluation": list(evaluation_claims()),
    "triangle": list(triangle_claims("figure 2")),
    "delta": list(delta_claims()),
    "reduction": list(reduction_claims("section 3.4", [(2, 1), (1, 2), (3, 3)])),
    "classes": list(class_claims()),
    "rewriting": list(rewriting_claims()),
    "union": list(union_claims()),
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


@pytest.mark.parametrize("name", papers.SECTIONS)
def test_every_section_is_made(name: str, tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    papers.main(["--tiny", "--sections", name, "-o", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The papers, reproduced\n")
    assert "**reproduced**" in text
    for line in text.splitlines():  # a table has as many cells in each line
        assert not line.startswith("|") or line.endswith("|"), line


def test_the_summary_counts_verdicts() -> None:
    claims = [Claim("here", "x", "1", "1", verdict) for verdict in (REPRODUCED, PARTLY, PARTLY)]
    text = markdown("t", "", [Section("one", "", claims), Section("two", "", claims[:1])])
    assert "| one | 1 | 2 | 0 |" in text
    assert "| all | 2 | 2 | 0 |" in text
    assert text.count("**partly**") == 2
