"""The tables and figures of the papers, printed value beside measured: docs/papers.md.

    python -m bench.papers [--full] [--spark] [--sections idivm survey triangles lecture tpch]

`make papers` runs it in some minutes; `--full` takes the sizes that the papers print, which takes
hours and tens of gigabytes; `--spark` adds the ID-based paper on Spark. What the papers print is
data of the sections (`_paper_*.py`).
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bench import _paper_idivm, _paper_lecture, _paper_survey, _paper_tpch, _paper_triangles
from bench._paper_idivm import IdivmSizes
from bench._paper_page import NOT, PARTLY, REPRODUCED, Section, Show, markdown
from bench._paper_survey import SurveySizes
from bench._paper_tpch import TpchSizes
from bench._paper_triangles import TriangleSizes
from bench._social import SocialMedia
from bench.corners import Shop

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
TITLE = "The papers, reproduced"
SPARK = "spark"


@dataclass(frozen=True)
class Sizes:
    """How much each section measures."""

    title: str
    idivm: IdivmSizes
    triangles: TriangleSizes
    lecture: tuple[int, ...]
    survey: SurveySizes
    tpch: TpchSizes
    spark: tuple[int, int, int]
    """Parts, changes, rounds."""


USUAL = Sizes(
    "the usual sizes",
    idivm=IdivmSizes(100_000, 2, SocialMedia(users=10_000, friends=50)),
    triangles=TriangleSizes(
        (0.0, 0.25, 0.5, 0.75, 1.0),
        (1000, 4000, 16000),
        (4000, 8000, 16000, 32000),
        (512, 2048, 8192),
        (1024, 4096, 16384),
    ),
    lecture=(500, 1000, 2000),
    survey=SurveySizes((500, 1000, 2000), None, Shop(), (1_000, 10_000, 100_000)),
    tpch=TpchSizes(0.01, 15, 2),
    spark=(100_000, 200, 3),
)
FULL = Sizes(
    "the papers' sizes",
    idivm=IdivmSizes(5_000_000, 3, SocialMedia()),
    triangles=TriangleSizes(
        tuple(i / 8 for i in range(9)),
        (1000, 4000, 16000, 64000),
        (1000, 2000, 4000, 8000, 16000, 32000, 64000),
        (512, 2048, 8192, 32768),
        None,
    ),
    lecture=(500, 1000, 2000, 4000, 8000),
    survey=SurveySizes(
        (500, 1000, 2000, 4000, 8000),
        None,
        Shop(places=40, zips=20, days=60, products=100, batch=1000),
        (1_000, 10_000, 100_000, 1_000_000),
    ),
    tpch=TpchSizes(1.0, 1500, 2),
    spark=(5_000_000, 200, 3),
)
TINY = Sizes(
    "sizes of a test, at which exponents and seconds mean little",
    idivm=IdivmSizes(500, 1, SocialMedia(100, 5, 10, 5, 10), 20, 500, 1),
    triangles=TriangleSizes((0.0, 0.5), (60, 240), (200, 400), (64, 256), (64, 256)),
    lecture=(60, 120),
    survey=SurveySizes((40, 80), (64, 256), Shop(2, 3, 4, 5, 20), (50, 100)),
    tpch=TpchSizes(0.001, 2, 1, ("q06",)),
    spark=(300, 20, 1),
)


def spark_section(sizes: Sizes, show: Show) -> Section:
    """The ID-based paper on Spark, which is not needed otherwise."""
    from bench import _paper_spark

    return _paper_spark.section(_paper_spark.SparkSizes(*sizes.spark), show)


MakeSection = Callable[[Sizes, Show], Section]
SECTIONS: Mapping[str, MakeSection] = {
    "idivm": lambda sizes, show: _paper_idivm.section(sizes.idivm, show),
    SPARK: spark_section,
    "survey": lambda sizes, show: _paper_survey.section(sizes.survey, show),
    "triangles": lambda sizes, show: _paper_triangles.section(sizes.triangles, show),
    "lecture": lambda sizes, show: _paper_lecture.section(sizes.lecture, show),
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
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="the sizes that the papers print")
    size.add_argument("--tiny", action="store_true", help="sizes at which only the page is tried")
    parser.add_argument("--spark", action="store_true", help="also the ID-based paper on Spark")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), help="only these")
    parser.add_argument("-o", "--output", type=Path, default=PAGE, help="docs/papers.md")
    chosen = parser.parse_args(given)
    sizes = FULL if chosen.full else TINY if chosen.tiny else USUAL
    flags = [f"--{name}" for name in ("full", "tiny", "spark") if getattr(chosen, name)]
    command = f"make papers PAPERS='{' '.join(flags)}'" if flags else "make papers"
    names = chosen.sections or [name for name in SECTIONS if chosen.spark or name != SPARK]
    progress = Progress()
    text = page(sizes, names, progress, command)
    chosen.output.write_text(text, encoding="utf-8")
    progress(f"{chosen.output} is there")


if __name__ == "__main__":
    main()
