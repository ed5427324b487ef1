"""The documentation as a site: every page has its place, every link leads somewhere."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s#]+)(#[^)\s]*)?\)")


def test_every_page_has_its_place_in_the_site() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    placed = re.findall(r"[\w/]+\.md\b", settings.partition("nav:")[2].partition("nav:")[2])
    assert sorted(placed) == sorted(
        ["index.md", *(page.relative_to(DOCS).as_posix() for page in PAGES)]
    )


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = [match[1] for match in _LINK.finditer(page.read_text(encoding="utf-8"))]
    here = [each for each in targets if "://" not in each and "=" not in each]
    assert [each for each in here if not (page.parent / each).exists()] == []


@pytest.mark.skipif("VIEWKEEP_LONG" not in os.environ, reason="the long form builds the site")
def test_the_site_is_built_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: make setup")
    import subprocess
    import sys

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    for page in tmp_path.glob("*.html"):
        outside = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="https?://[^"]*"', page.read_text()
        )
        assert outside == [], page.name
