"""The tables and figures of the papers, printed value beside measured: docs/papers.md.

    python -m bench.papers [--full] [--sections lecture survey tpch]

`make papers` runs it in some minutes; `--full` takes the sizes that the papers print, which takes
hours and tens of gigabytes. What the papers print is data of the sections (`_paper_*.py`).
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bench import _paper_lecture, _paper_survey, _paper_tpch
from bench._paper_page import NOT, PARTLY, REPRODUCED, Section, Show, markdown
from bench._paper_survey import SurveySizes
from bench._paper_tpch import TpchSizes
from bench.corners import Shop

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
TITLE = "The papers, reproduced"


@dataclass(frozen=True)
class Sizes:
    """How much each section measures."""

    title: str
    lecture: tuple[int, ...]
    survey: SurveySizes
    tpch: TpchSizes


USUAL = Sizes(
    "the usual sizes",
    lecture=(500, 1000, 2000),
    survey=SurveySizes((500, 1000, 2000), None, Shop(), (1_000, 10_000, 100_000)),
    tpch=TpchSizes(0.01, 15, 2),
)
FULL = Sizes(
    "the papers' sizes",
    lecture=(500, 1000, 2000, 4000, 8000),
    survey=SurveySizes(
        (500, 1000, 2000, 4000, 8000),
        None,
        Shop(places=40, zips=20, days=60, products=100, batch=1000),
        (1_000, 10_000, 100_000, 1_000_000),
    ),
    tpch=TpchSizes(1.0, 1500, 2),
)
TINY = Sizes(
    "sizes of a test",
    lecture=(60, 120),
    survey=SurveySizes((40, 80), (64, 256), Shop(2, 3, 4, 5, 20), (50, 100)),
    tpch=TpchSizes(0.001, 2, 1, ("q06",)),
)

MakeSection = Callable[[Sizes, Show], Section]
SECTIONS: Mapping[str, MakeSection] = {
    "lecture": lambda sizes, show: _paper_lecture.section(sizes.lecture, show),
    "survey": lambda sizes, show: _paper_survey.section(sizes.survey, show),
    "tpch": lambda sizes, show: _paper_tpch.section(sizes.tpch, show),
}
"""The order of the page."""

TEXT = (
    "Written by `{command}` at {title}; do not edit. Each claim of the papers behind Viewkeep "
    f"that can be tried is **{REPRODUCED}** (it comes out as printed), **{PARTLY}** (some of it "
    f"does, or only the direction) or **{NOT}**. Counts of steps and accesses, exponents and "
    "values do not depend on the machine. Seconds are those of one machine ({machine}, {cores} "
    "cores) at the sizes given with each table: compare their ratios, never the seconds "
    "themselves, with those of a paper."
)


@dataclass
class Progress:
    """Lines on the screen, each with the seconds since the start."""

    start: float = field(default_factory=perf_counter)

    def __call__(self, line: str) -> None:
        print(f"{perf_counter() - self.start:7.1f} s  {line}", file=sys.stderr, flush=True)


def page(sizes: Sizes, names: Sequence[str], show: Show, command: str = "make papers") -> str:
    """The page, with the sections of these names."""
    sections = [SECTIONS[name](sizes, show) for name in names]
    text = TEXT.format(
        command=command, title=sizes.title, machine=platform.machine(), cores=os.cpu_count()
    )
    return markdown(TITLE, text, sections)


def main(given: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.papers", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--full", action="store_true", help="the sizes that the papers print")
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the page is tried")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("-o", "--output", type=Path, default=PAGE, help="docs/papers.md")
    chosen = parser.parse_args(given)
    sizes = FULL if chosen.full else TINY if chosen.tiny else USUAL
    command = "make papers" if not chosen.full else "python -m bench.papers --full"
    progress = Progress()
    text = page(sizes, chosen.sections, progress, command)
    chosen.output.write_text(text, encoding="utf-8")
    progress(f"{chosen.output} is there")


if __name__ == "__main__":
    main()
