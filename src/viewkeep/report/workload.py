"""Many queries at a glance: a line for each, and the cascades among them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from viewkeep.analysis import Analysis
from viewkeep.analysis.cascade import Cascade
from viewkeep.analysis.exponents import order
from viewkeep.errors import ParseError, ViewkeepError
from viewkeep.report.style import BAD, FAIR, GOOD, HEADING, grade, section
from viewkeep.report.summary import at_best, query_class

COLUMNS = ("query", "class", "update", "delay", "preprocessing", "strategy", "optimal")


@dataclass(frozen=True)
class Line:
    """One query of a workload: its cells, and what keeps the later ones from being known."""

    cells: tuple[str, ...]
    style: str
    problem: ViewkeepError | None = None


def analysis_line(analysis: Analysis) -> Line:
    """The class and the bounds; adaptive bounds at their best epsilon."""
    best = at_best(analysis.bounds)
    optimal = "yes" if analysis.optimal else "unknown" if analysis.lower_bound is None else "no"
    average = "*" if best.amortized else ""
    cells = (
        analysis.query.name,
        query_class(analysis),
        order(best.update) + average,
        order(best.delay),
        order(best.preprocessing),
        analysis.strategy,
        optimal,
    )
    return Line(cells, grade(analysis.bounds))


def unsupported_line(name: str, reason: ViewkeepError) -> Line:
    """A valid view that is not a conjunctive query."""
    return Line((name, "not conjunctive"), FAIR, reason)


def failed_line(name: str, error: ViewkeepError) -> Line:
    """A query that could not be read."""
    place = f", line {error.line}" if isinstance(error, ParseError) else ""
    return Line((name, f"error{place}"), BAD, error)


def workload_page(lines: Sequence[Line], cascades: Sequence[Cascade] = ()) -> Group:
    """The table, then who rides on whom, then what is wrong or not conjunctive."""
    parts: list[RenderableType] = [workload_table(lines), *_legend(lines)]
    if cascades:
        parts.append(section("Cascades", *map(_cascade, cascades)))
    problems = [_problem(line, line.problem) for line in lines if line.problem is not None]
    if problems:
        parts.append(section("Problems", *problems))
    return Group(*parts)


def workload_table(lines: Sequence[Line]) -> Table:
    """A line per query."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style=HEADING)
    for name in COLUMNS:
        # Names and classes may wrap where the screen is narrow; costs may not.
        table.add_column(name, overflow="fold", no_wrap=name not in ("query", "class"))
    for line in lines:
        missing = ("-",) * (len(COLUMNS) - len(line.cells))
        name, *others = (*line.cells, *missing)
        table.add_row(Text(name, "bold"), *(Text(cell, line.style) for cell in others))
    return table


def _legend(lines: Sequence[Line]) -> Iterator[Padding]:
    """What the star means, where there is one."""
    if any(cell.endswith("*") for line in lines for cell in line.cells[1:]):
        told = "* amortized, and at the best eps where the strategy is epsilon"
        yield Padding(Text(told, "dim"), (0, 0, 1, 0))


def _cascade(cascade: Cascade) -> Text:
    return Text.assemble(
        (cascade.rider, "bold"),
        " rides on ",
        (" and ".join(cascade.carriers), "bold"),
        (": constant update time and delay", GOOD),
        f" if {' and '.join(cascade.carriers)} is enumerated first\n  {cascade.rewriting}",
    )


def _problem(line: Line, problem: ViewkeepError) -> Text:
    return Text.assemble((line.cells[0], "bold"), ": ", (str(problem), line.style))
