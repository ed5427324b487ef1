"""The examples in the documentation print what the pages say."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from docs.live_pages import refreshed_live
from docs.make_examples import LIVE_PAGES, PAGES, ROOT, refreshed
from docs.make_strategies import FOLDER, pictures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == refreshed(text), "run `make docs`, and read what changed"


@pytest.mark.parametrize("page", LIVE_PAGES, ids=lambda page: page.name)
def test_examples_with_lakes_print_what_the_page_shows(spark: "SparkSession", page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == refreshed_live(text, ROOT / "examples"), "run `make docs`, and read what changed"


def test_every_page_with_examples_is_run() -> None:
    pages = [README, *ROOT.glob("docs/**/*.md")]
    example = re.compile(r"^```(python|console)$", re.MULTILINE)
    found = {page for page in pages if example.search(page.read_text(encoding="utf-8"))}
    assert found == {*PAGES, *LIVE_PAGES}


@pytest.mark.parametrize("page", [*PAGES, *LIVE_PAGES], ids=lambda page: page.name)
def test_no_example_ends_in_a_stack_trace(page: Path) -> None:
    assert "Traceback" not in page.read_text(encoding="utf-8")


def test_wrong_output_is_noticed() -> None:
    right = "```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n"
    assert refreshed(right) == right
    assert refreshed(right.replace("2", "3")) == right


def test_wrong_output_of_a_live_page_is_noticed() -> None:
    right = "```python\nx = 2\n```\n\n```python\nprint(x, '1.5 s')\n```\n\n```text\n2 1.5 s\n```\n"
    assert refreshed_live(right, ROOT / "examples") == right
    assert refreshed_live(right.replace("\n2 1", "\n3 1"), ROOT / "examples") == right
    other_time = right.replace("2 1.5 s", "2 99 s")
    assert refreshed_live(other_time, ROOT / "examples") == other_time
    command = '```console\n$ viewkeep explain "Q(a = R(a)"\n```\n'
    assert "(exit code 2)" in refreshed_live(command, ROOT / "examples")


def test_pictures_of_strategies_are_those_of_the_code() -> None:
    for name, text in pictures():
        file = FOLDER / f"{name}.svg"
        assert file.read_text("utf-8") == text, "run `make docs`, and look at what changed"
        assert file.name in (ROOT / "docs" / "strategies" / f"{name}.md").read_text("utf-8")


def test_files_of_a_page_are_there_for_its_commands() -> None:
    page = (
        "```sql\n-- t.sql\nCREATE TABLE t (x int);\n```\n"
        '```console\n$ viewkeep explain "SELECT y FROM t" --schema t.sql\n```\n'
    )
    assert 'error: column "y"' in refreshed(page)


def test_links_lead_somewhere() -> None:
    pages = [README, CONTRIBUTING, *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [README, CONTRIBUTING, WORKFLOW], ids=lambda page: page.name)
def test_every_task_that_is_named_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = r"(?:`|^|run: )make ([a-z-]*[a-z])\b"
    tasks = re.findall(named, page.read_text(encoding="utf-8"), re.MULTILINE)
    assert tasks
    for task in tasks:
        assert task == "bench" or re.search(rf"^{task}:.*##", makefile, re.MULTILINE), task


def test_every_file_that_newcomers_are_told_of_exists() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    files = re.findall(r"`([\w/.]+(?:/|\.(?:py|md|toml)))`", text)
    assert len(files) > 20
    for file in files:
        places = [ROOT / file, ROOT / "src" / "viewkeep" / file, ROOT / "tests" / "diffs" / file]
        assert any(each.exists() for each in places), file


def test_the_workflow_of_the_forge_is_yaml_with_jobs() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    assert {"test", "site", "wheel", "matrix"} == set(jobs)
    assert all(step.keys() & {"uses", "run"} for job in jobs.values() for step in job["steps"])


def test_the_readme_counts_tpch_as_its_page_does() -> None:
    counted = r"(\d+) of the 22.*?(\d+) (?:under|with) the primary\s+keys.*?(\d+) (?:under|with)"
    pages = [README, ROOT / "docs" / "tpch.md"]
    found = [re.search(counted, page.read_text(encoding="utf-8"), re.DOTALL) for page in pages]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].groups() == found[1].groups()
