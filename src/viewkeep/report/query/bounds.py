"""The bounds as a small table, and the lower bound as a sentence."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from rich.table import Table
from rich.text import Text

from viewkeep.analysis import Analysis, Bounds
from viewkeep.analysis.exponents import Exponent, order, value_at
from viewkeep.report.first_that_fits import FirstThatFits
from viewkeep.report.style import BAD, FAIR, GOOD

COSTS = ("preprocessing", "update", "delay", "space")
"""The fields of `Bounds` in the order in which people read them."""


def bounds_table(bounds: Bounds) -> FirstThatFits:
    """A line per cost in big-O; adaptive bounds also at epsilon 0, the best one and 1.

    Where the screen is narrow only the best one is shown, or none.
    """
    best = bounds.best_epsilon
    if best is None:
        return FirstThatFits(_bounds_at_points(bounds, []))
    choices: tuple[list[Fraction], ...] = (sorted({Fraction(0), best, Fraction(1)}), [best], [])
    return FirstThatFits(*(_bounds_at_points(bounds, points) for points in choices))


def _bounds_at_points(bounds: Bounds, points: Sequence[Fraction]) -> Table:
    best = bounds.best_epsilon
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.show_header = bool(points)
    exponents: dict[str, Exponent] = {name: getattr(bounds, name) for name in COSTS}
    formulas = {
        name: _exponent_in_colour(exponent, name, bounds.logarithmic)
        for name, exponent in exponents.items()
    }
    table.add_column(min_width=max(map(len, COSTS)))
    # A formula has blanks, and is broken there only if nothing else can be left out.
    table.add_column(min_width=max(map(len, formulas.values())) if points else None)
    for epsilon in points:
        table.add_column(f"{'best ' if epsilon == best else ''}eps = {epsilon}", no_wrap=True)
    for name, exponent in exponents.items():
        values = [
            _exponent_in_colour(value_at(exponent, epsilon), name, bounds.logarithmic)
            for epsilon in points
        ]
        table.add_row(name, formulas[name], *values)
    return table


def averaging_note(bounds: Bounds) -> Iterator[Text]:
    """What amortized means and where log N comes from, for bounds that have them."""
    if bounds.amortized:
        yield Text("Update time is amortized: an average over a sequence of changes.", "dim")
    if bounds.logarithmic:
        yield Text("The values of min and max are kept in order: hence log N.", "dim")


def lower_bound_text(analysis: Analysis) -> Text:
    """What no algorithm can beat, and whether the bounds reach it."""
    bound = analysis.lower_bound
    if bound is None:
        return Text(f"Unknown: {analysis.lower_bound_reason}.")
    if bound.conjecture is None:
        factor = ", but for log N" if analysis.bounds.logarithmic else ""
        return Text.assemble("Constant time cannot be beaten. ", ("Reached", GOOD), f"{factor}.")
    bound_text = (
        f"No algorithm has both update time O(N^({bound.update} - g)) and delay "
        f"O(N^({bound.delay} - g)) for any g > 0, unless the {bound.conjecture} conjecture fails "
        f"({bound.source}). "
    )
    if analysis.optimal:
        return Text.assemble(bound_text, ("Reached", GOOD), ".")
    return Text.assemble(
        bound_text, ("Not reached", FAIR), ": what lies between is not settled here."
    )


def _exponent_in_colour(exponent: Exponent, cost: str, logarithmic: bool) -> Text:
    """Linear preprocessing and space are as good as it gets; update and delay can be constant."""
    text = order(exponent, logarithmic and cost in ("preprocessing", "update"))
    if not isinstance(exponent, Fraction):
        return Text(text)
    good, fair = (0, Fraction(99, 100)) if cost in ("update", "delay") else (1, Fraction(3, 2))
    style = GOOD if exponent <= good else FAIR if exponent <= fair else BAD
    return Text(text, style)
