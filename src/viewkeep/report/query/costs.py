"""What a change to each table costs, and which rows it has to touch.

The formula is that of `analysis/variable_order.py`: a change to R costs N^d, where d is the largest
rho*(bag(X) minus what R determines) over the variables X that R is below.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from rich.table import Table
from rich.text import Text

from viewkeep.analysis import Analysis, VariableOrder
from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.analysis.exponents import order
from viewkeep.analysis.extremes import OrderedValues, carried_variables, ordered_values
from viewkeep.analysis.shape import join_shape
from viewkeep.analysis.variable_order import JoinShape
from viewkeep.query.constraints import closure
from viewkeep.report.style import BAD, GOOD, RELATION


@dataclass(frozen=True, slots=True)
class UpdateCost:
    """The exponent of a change to one atom, and the view that causes it: what the change fixes of
    it and what it leaves open. `exponent` is None for static relations."""

    atom: str
    exponent: Fraction | None
    view: str = ""
    fixed: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    logarithmic: bool = False

    @property
    def order(self) -> str:
        """The cost in big-O notation; none for static relations."""
        return "-" if self.exponent is None else order(self.exponent, self.logarithmic)

    def __str__(self) -> str:
        if self.exponent is None:
            return "static: never changes"
        if not self.open:
            return "one row fixes all that its views depend on"
        every = f"every {self.open[0]}" if len(self.open) == 1 else f"all {', '.join(self.open)}"
        if not self.fixed:
            return f"one row can meet {every}"
        return f"one row fixes {', '.join(self.fixed)} but meets {every} joined with it"


def update_costs(analysis: Analysis) -> tuple[UpdateCost, ...]:
    """For every atom, what a change to it costs in the view tree of the variable order."""
    shape = join_shape(analysis.query)
    nodes = [node for root in analysis.variable_order for node in root.walk()]
    labels = [str(atom) for atom in analysis.fracture.atoms]
    values = ordered_values(analysis.query)
    return tuple(
        replace(
            max(_costs_of_atom(shape, nodes, i, label, values), key=_cost_rank),
            logarithmic=bool(values),
        )
        if shape.dynamic[i]
        else UpdateCost(label, None)
        for i, label in enumerate(labels)
    )


def _costs_of_atom(
    shape: JoinShape,
    nodes: list[VariableOrder],
    atom: int,
    label: str,
    values: tuple[OrderedValues, ...],
) -> Iterator[UpdateCost]:
    yield UpdateCost(label, Fraction(0))
    for node in nodes:
        subtree = {each.variable for each in node.walk()}
        below = [i for i, schema in enumerate(shape.atoms) if schema & subtree]
        if atom in below:
            # A view may use only those dependencies that are looked up below it.
            rules = [rule for rule in shape.rules if rule.guard in below]
            determined = closure(shape.atoms[atom], rules)
            bag = (*node.depends_on, node.variable)
            merged = carried_variables(shape, node.variable, below, atom, values)
            bag += tuple(v for v in shape.levels if v in merged and v not in bag)
            edges = [closure(shape.atoms[i], rules) for i in below]
            exponent = edge_cover(frozenset(bag) - determined, edges)
            fixed = tuple(v for v in bag if v in determined)
            undetermined = tuple(v for v in bag if v not in determined)
            yield UpdateCost(label, exponent, node.variable, fixed, undetermined)


def _cost_rank(cost: UpdateCost) -> tuple[Fraction, bool]:
    """The dearest view, and among such views one that the change fixes in part."""
    return cost.exponent or Fraction(0), bool(cost.fixed and cost.open)


def costs_table(costs: tuple[UpdateCost, ...]) -> Table:
    """A line per atom: what a change to it costs and why."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style=RELATION, no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for cost in costs:
        constant = not cost.exponent
        table.add_row(cost.atom, Text(cost.order, GOOD if constant else BAD), str(cost))
    return table
