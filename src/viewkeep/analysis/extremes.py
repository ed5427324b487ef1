"""What min, max and distinct values cost: values are kept in order, and some updates merge them.

A sum is one number however many rows it is over; the minimum of a group that also loses values
needs all of them. They are kept in ordered multisets, so that one value is added in O(log N). An
update of another atom that joins with a whole multiset, below a bound variable, adds all its values
to the next view: there the variables of the values count as if they were in the view's key.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from viewkeep.analysis.access_pattern import fracture
from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.analysis.exponents import Bounds, EpsilonExponent, Exponent, Linear
from viewkeep.analysis.shape import join_shape
from viewkeep.analysis.variable_order import BOUND, ZERO, JoinShape, VariableOrder
from viewkeep.query.aggregates import COUNT_DISTINCT, ORDERED
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import closure
from viewkeep.query.expressions import columns_of


@dataclass(frozen=True, slots=True)
class OrderedValues:
    """The values of such an aggregate: the atom that has them, and the variables they depend on."""

    atom: int
    variables: frozenset[str]


def ordered_values(query: ConjunctiveQuery) -> tuple[OrderedValues, ...]:
    """The values that are kept in order, in the names of the query's fracture.

    Inserts alone get by with the extreme value, which is a single one; to count distinct values
    takes all of them.
    """
    kept = (COUNT_DISTINCT,) if query.constraints.insert_only else ORDERED
    copies = fracture(query).atoms if query.inputs else query.atoms
    ordered = list[OrderedValues]()
    for aggregate in query.aggregates:
        if aggregate.function in kept and aggregate.argument is not None:
            names = columns_of(aggregate.argument)
            atom = next(i for i, each in enumerate(query.atoms) if names <= each.schema)
            pairs = zip(query.atoms[atom].variables, copies[atom].variables, strict=True)
            ordered.append(OrderedValues(atom, frozenset(c for v, c in pairs if v in names)))
    return tuple(dict.fromkeys(ordered))


def carried_variables(
    shape: JoinShape,
    variable: str,
    below: Collection[int],
    atom: int,
    values: tuple[OrderedValues, ...],
) -> frozenset[str]:
    """The variables of the multisets that an update of an atom adds to the view of a variable.

    Above free variables no payload goes; an update of the atom with the values brings one value.
    """
    if shape.levels[variable] != BOUND:
        return frozenset()
    own = (each.variables for each in values if each.atom in below and each.atom != atom)
    return frozenset().union(*own)


def merge_exponent(
    shape: JoinShape, roots: tuple[VariableOrder, ...], values: tuple[OrderedValues, ...]
) -> Fraction:
    """The exponent of the values that an update merges in a view tree, at worst."""
    worst = ZERO
    for node in (node for root in roots for node in root.walk()):
        below = shape.touching(frozenset(each.variable for each in node.walk()))
        rules = [rule for rule in shape.rules if rule.guard in below]
        edges = [closure(shape.atoms[i], rules) for i in below]
        for i in (i for i in below if shape.dynamic[i]):
            more = carried_variables(shape, node.variable, below, i, values)
            if more:
                bag = more.union(node.depends_on, (node.variable,))
                worst = max(worst, edge_cover(bag - closure(shape.atoms[i], rules), edges))
    return worst


def with_ordered_values(
    query: ConjunctiveQuery, strategy: str, bounds: Bounds, roots: tuple[VariableOrder, ...] | None
) -> Bounds:
    """The bounds of a route with what keeping the values of min and max in order adds.

    First-order deltas bring the values one by one, and so do the rows that foreign keys make wait.
    """
    values = ordered_values(query)
    if not values:
        return bounds
    shape = join_shape(query)
    update: Exponent = bounds.update
    if strategy == "viewtree" and roots is not None and isinstance(update, Fraction):
        update = max(update, merge_exponent(shape, roots, values))
    if strategy == "epsilon" and _meets_many(shape, values):
        update = _exponent_times_n(update)
    return replace(bounds, update=update, logarithmic=True)


def _meets_many(shape: JoinShape, values: tuple[OrderedValues, ...]) -> bool:
    """Whether an update of one atom leaves open the values that another one has."""
    return any(
        dynamic and i != each.atom and not each.variables <= closure(atom, shape.rules)
        for i, (atom, dynamic) in enumerate(zip(shape.atoms, shape.dynamic, strict=True))
        for each in values
    )


def _exponent_times_n(exponent: Exponent) -> Exponent:
    """The exponent of a cost that is paid for up to N values."""
    if isinstance(exponent, Fraction):
        return exponent + 1
    terms = tuple(Linear(term.constant + 1, term.slope) for term in exponent.terms)
    return EpsilonExponent(terms, exponent.largest)
