"""One query in full: class, bounds, lower bound, strategy, picture, reasons, hints."""

from collections.abc import Iterator
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from viewkeep.analysis import Analysis
from viewkeep.analysis.exponents import order
from viewkeep.errors import ViewkeepError
from viewkeep.query.algebra import Node
from viewkeep.report.query.adaptive import adaptive_sections
from viewkeep.report.query.bounds import averaging_note, bounds_table, lower_bound_text
from viewkeep.report.query.costs import costs_table, update_costs
from viewkeep.report.query.hints import hints
from viewkeep.report.query.summary import first_obstacle, headline
from viewkeep.report.query.variable_order import order_tree
from viewkeep.report.query.verdicts import reasons, verdict_table
from viewkeep.report.script.page import DEFAULT, ScriptOptions, script_sections
from viewkeep.report.style import FAIR, grade, query_text, section

STRATEGIES = {
    "recompute": "Only the tables are kept, with indexes; results are joined when they are read, "
    "from the given inputs on.",
    "viewtree": "A tree of views along the variable order: a change climbs from its table to the "
    "root, and results are read from the root down.",
    "delta": "Nothing but the result is kept: a change is joined with the other tables.",
    "epsilon": "Values are split by how often they occur: light ones are precomputed, heavy ones "
    "(from N^eps rows on) are looked up. Each side is cheap where the other is not.",
}
"""What each strategy does, in a sentence."""


REPLACED_ROWS = (
    "The average holds when whole batches come and go. To replace a row that others refer to "
    "takes one step for each row that refers to it."
)
"""What bounds along foreign keys leave out (analysis/foreign_keys.py)."""


def analysis_page(analysis: Analysis, no_machine_code: str = "") -> Group:
    """All that the analysis says of a query, for people; and why it cannot be compiled."""
    bounds = analysis.bounds
    return Group(
        _query_title(analysis),
        section("Bounds", bounds_table(bounds), *averaging_note(bounds)),
        section("Lower bound", lower_bound_text(analysis)),
        *_update_costs_section(analysis),
        *_hints_section(analysis),
        section(f"Strategy: {analysis.strategy}", _strategy_text(analysis, no_machine_code)),
        *adaptive_sections(analysis),
        *_variable_order_section(analysis),
        *_rewritten_queries(analysis),
        section("Properties", verdict_table(analysis)),
    )


def algebra_page(
    name: str, tree: Node, reason: ViewkeepError, options: ScriptOptions = DEFAULT
) -> Group:
    """A valid view that is not a conjunctive query: why not, and its delta script."""
    why = str(reason).removeprefix("not a conjunctive query: ")
    verdict = Text.assemble(
        (name, "bold"), "\n", ("not a conjunctive query, so no bounds are given", FAIR)
    )
    return Group(
        Panel(verdict, border_style=FAIR),
        section("Why", Text(why)),
        *script_sections(tree, options),
    )


def _query_title(analysis: Analysis) -> Panel:
    style = grade(analysis.bounds)
    lines = [query_text(analysis.query), Text(headline(analysis), f"bold {style}")]
    cause = first_obstacle(analysis)
    if cause is not None:
        place = "in the fracture, " if analysis.query.inputs else ""
        lines.append(Text(f"because {place}{reasons(analysis)[cause.property]}"))
    return Panel(Group(*lines), border_style=style)


def _strategy_text(analysis: Analysis, no_machine_code: str) -> Text:
    strategy = STRATEGIES.get(analysis.strategy, "")
    engine = f"\nRuns on the reference engine: {no_machine_code}." if no_machine_code else ""
    return Text(f"{strategy}\nChosen because: {analysis.route.reason}.{engine}")


def _update_costs_section(analysis: Analysis) -> Iterator[RenderableType]:
    """Which tables are expensive to change: for those who ask why their view is slow."""
    costs = update_costs(analysis)
    if not any(cost.exponent for cost in costs):
        return
    body: list[RenderableType] = [costs_table(costs)]
    place = ""
    if analysis.strategy != "viewtree":
        place = " (in a plain view tree)"
    elif analysis.bounds.amortized:
        place = " (the worst, before averaging)"
        body += [Text(REPLACED_ROWS)] * (not analysis.query.constraints.insert_only)
    yield section(f"Cost of one change, per table{place}", *body)


def _variable_order_section(analysis: Analysis) -> Iterator[RenderableType]:
    """The order of the view tree that runs, or of the best there would be beside deltas; heavy
    and light parts have views of their own."""
    if analysis.strategy == "epsilon":
        return
    title = "Variable order"
    if analysis.strategy != "viewtree":
        worst = max(cost.exponent or Fraction(0) for cost in update_costs(analysis))
        title = f"Variable order of the best plain view tree (update {order(worst)})"
    yield section(title, order_tree(analysis))


def _rewritten_queries(analysis: Analysis) -> Iterator[RenderableType]:
    """The queries that some verdicts speak of."""
    if analysis.query.inputs:
        yield section("Fracture (inputs split)", query_text(analysis.fracture))
    if analysis.reduct.atoms != analysis.query.atoms or analysis.reduct.free != analysis.query.free:
        yield section("Reduct (under the dependencies)", query_text(analysis.reduct))


def _hints_section(analysis: Analysis) -> Iterator[RenderableType]:
    suggestions = hints(analysis)
    if suggestions:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for hint in suggestions:
            table.add_row(f"if {hint.condition}", Text(hint.costs, grade(hint.bounds)))
        yield section("What would help", table)
