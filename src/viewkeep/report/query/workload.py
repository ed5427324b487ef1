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
from viewkeep.errors import ParseError, ViewkeepError
from viewkeep.report.first_that_fits import FirstThatFits
from viewkeep.report.query.summary import at_best, query_class
from viewkeep.report.style import BAD, FAIR, GOOD, HEADING, grade, section

COLUMNS = ("query", "class", "update", "delay", "preprocessing", "strategy", "optimal")

LEFT_OUT_FIRST = ("optimal", "preprocessing", "strategy", "delay")
"""What a narrow screen can do without, the least important first."""


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
        best.order("update") + average,
        best.order("delay"),
        best.order("preprocessing"),
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
    parts: list[RenderableType] = [workload_table(lines), *_mark_legend(lines)]
    if cascades:
        parts.append(section("Cascades", *map(_cascade_text, cascades)))
    problems = [_problem_text(line, line.problem) for line in lines if line.problem is not None]
    if problems:
        parts.append(section("Problems", *problems))
    return Group(*parts)


def workload_table(lines: Sequence[Line]) -> FirstThatFits:
    """A line per query, with as many columns as the screen has room for."""
    choices = [LEFT_OUT_FIRST[:count] for count in range(len(LEFT_OUT_FIRST) + 1)]
    tables = [_workload_columns(lines, left_out, ("class",)) for left_out in choices]
    # Names are broken only where nothing more can be left out.
    return FirstThatFits(*tables, _workload_columns(lines, LEFT_OUT_FIRST, ("query", "class")))


def _workload_columns(
    lines: Sequence[Line], left_out: Sequence[str], wrapped: Sequence[str]
) -> Group:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style=HEADING)
    numbers = [i for i, name in enumerate(COLUMNS) if name not in left_out]
    words = [word for line in lines for word in line.cells[1].split()]
    for i in numbers:
        table.add_column(COLUMNS[i], overflow="fold", no_wrap=COLUMNS[i] not in wrapped)
    table.columns[1].min_width = max(map(len, words), default=None)
    for line in lines:
        cells = line.cells + ("-",) * (len(COLUMNS) - len(line.cells))
        styles = ("bold", *[line.style] * (len(COLUMNS) - 1))
        table.add_row(*(Text(cells[i], styles[i]) for i in numbers))
    note = f"Left out on this narrow screen: {', '.join(n for n in COLUMNS if n in left_out)}\n"
    return Group(table, *([Text(note, "dim")] if left_out else []))


def _mark_legend(lines: Sequence[Line]) -> Iterator[Padding]:
    """What the mark means, where there is one."""
    if any(cell.endswith("*") for line in lines for cell in line.cells[1:]):
        note = "* amortized, and at the best eps where the strategy is epsilon"
        yield Padding(Text(note, "dim"), (0, 0, 1, 0))


def _cascade_text(cascade: Cascade) -> Text:
    """The survey (4.2) promises amortized updates if both are enumerated, the carriers first."""
    carriers = " and ".join(cascade.carriers)
    return Text.assemble(
        (cascade.rider, "bold"),
        " rides on ",
        (carriers, "bold"),
        (": amortized constant update time and constant delay", GOOD),
        f", if {carriers} {'is' if len(cascade.carriers) == 1 else 'are'} enumerated first\n"
        f"  {cascade.rewriting}",
    )


def _problem_text(line: Line, problem: ViewkeepError) -> Text:
    return Text.assemble((line.cells[0], "bold"), ": ", (str(problem), line.style))
