"""Payloads: the ring that a query's aggregates need, and how values are lifted into it.

Every lift is assigned to one atom that has its variables. A count stands beside every sum, so that
a group whose sum happens to be zero is still there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

from viewkeep.errors import QueryError, RingError
from viewkeep.query.aggregates import COUNT_DISTINCT, ORDERED, Aggregate, Term
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.evaluate.compile import compile_expression
from viewkeep.query.expressions import Expression, columns_of
from viewkeep.rings import (
    INTEGERS,
    MAX,
    MIN,
    MULTISETS,
    REALS,
    RELATIONAL,
    MatrixRing,
    ProductRing,
    Ring,
)
from viewkeep.rings.exact_float import ExactFloat
from viewkeep.rings.factorized import FACTORIZED
from viewkeep.rings.numbers import NUMBERS

Row = tuple[Any, ...]
RowLift = Callable[[Row], Any]
"""From the values of an atom's variables to a ring element."""


@dataclass(frozen=True)
class Payload:
    """The ring, the lifts per atom, and how a ring element becomes what the user asked for."""

    ring: Ring[Any]
    lifts: Mapping[int, tuple[RowLift, ...]]
    result: Callable[[Any], Any]
    standard: bool = True
    """Whether no lifting function is the user's own."""
    factors: Mapping[int, tuple[str, ...]] | None = None
    """For each atom, the variables whose values are its payload: their product. None where
    payloads are something else."""

    def of(self, atom: int, row: Row, multiplicity: int) -> Any:
        """The payload of a tuple of an atom that is there so many times."""
        element = self.ring.from_integer(multiplicity)
        for lift in self.lifts.get(atom, ()):
            element = self.ring.multiply(element, lift(row))
        return element


def plan_payload(
    query: ConjunctiveQuery,
    ring: Ring[Any] | None = None,
    lifts: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Payload:
    """Counts by default, the query's aggregates where it has some, or a ring of the user's."""
    if ring is not None:
        if query.aggregates:
            raise QueryError(f"query {query.name}: give either aggregates in the head or a ring")
        ring_lifts = lifts if lifts is not None else _standard_lifts(query, ring)
        variable_lifts = _variable_lifts(query, ring_lifts)
        factors = _numeric_factors(query, ring, ring_lifts)
        return Payload(ring, variable_lifts, lambda element: element, lifts is None, factors)
    if lifts:
        raise QueryError(f"query {query.name}: lifts need a ring")
    if not query.aggregates:
        return Payload(INTEGERS, {}, lambda element: element)
    return _aggregate_payload(query)


def _standard_lifts(query: ConjunctiveQuery, ring: Ring[Any]) -> Mapping[str, Callable[[Any], Any]]:
    """Rings of named variables lift these; relational payloads keep all that is summed away."""
    if isinstance(ring, MatrixRing):
        return {variable: ring.lift(variable) for variable in ring.variables}
    if ring in (RELATIONAL, FACTORIZED):
        return {variable: ring.lift(variable) for variable in query.bound}
    return {}


def _variable_lifts(
    query: ConjunctiveQuery, lifts: Mapping[str, Callable[[Any], Any]]
) -> dict[int, tuple[RowLift, ...]]:
    lifts_of: dict[int, tuple[RowLift, ...]] = {}
    for variable, lift in lifts.items():
        if variable not in query.variables:
            raise QueryError(f'query {query.name}: no variable "{variable}" to lift')
        atom = min(query.atoms_of[variable])
        position = distinct_variables(query.atoms[atom].variables).index(variable)
        lifts_of[atom] = (*lifts_of.get(atom, ()), _lift_at(position, lift))
    return lifts_of


def _numeric_factors(
    query: ConjunctiveQuery, ring: Ring[Any], lifts: Mapping[str, Callable[[Any], Any]]
) -> dict[int, tuple[str, ...]] | None:
    """The variables that `int` and `float` lift into numbers: their values as they are."""
    if ring not in (INTEGERS, REALS) or not all(lift in (int, float) for lift in lifts.values()):
        return None
    variables_of: dict[int, tuple[str, ...]] = {}
    for variable in lifts:
        atom = min(query.atoms_of[variable])
        variables_of[atom] = (*variables_of.get(atom, ()), variable)
    return variables_of


def _lift_at(position: int, lift: Callable[[Any], Any]) -> RowLift:
    return lambda row: lift(row[position])


def distinct_variables(variables: Sequence[str]) -> tuple[str, ...]:
    """Each variable once, in order."""
    return tuple(dict.fromkeys(variables))


# --- aggregates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Component:
    """One factor of the product ring: its ring and what of each atom is lifted into it."""

    ring: Ring[Any]
    lifts: tuple[tuple[int, RowLift], ...]


def _aggregate_payload(query: ConjunctiveQuery) -> Payload:
    components: list[Component] = [Component(INTEGERS, ())]
    readers: list[Callable[[Row], Any]] = []
    for aggregate in query.aggregates:
        _check_not_null(query, aggregate)
        start = len(components)
        added = list(_aggregate_components(query, aggregate))
        components += added
        readers.append(_aggregate_reader(query, aggregate, start, start + len(added)))
    ring = ProductRing(*(component.ring for component in components))
    lifts = {
        atom: (_product_lift(components, atom),)
        for atom in {atom for component in components for atom, _ in component.lifts}
    }
    return Payload(ring, lifts, lambda element: tuple([read(element) for read in readers]))


def _check_not_null(query: ConjunctiveQuery, aggregate: Aggregate) -> None:
    """Refuse an argument with a constant part that is NULL: no row takes part."""
    for each in (constant for term in aggregate.terms for constant in term.constants):
        if compile_expression(each, ())(()) is None:
            raise QueryError(
                f"query {query.name}: {aggregate} is of NULL in every row; leave it out, or keep "
                "the view in a lake (vk.Keeper)"
            )


def _aggregate_components(query: ConjunctiveQuery, aggregate: Aggregate) -> list[Component]:
    """A component per term, and last the number of rows in which the argument is not null."""
    if aggregate.argument is None:
        return []
    if aggregate.function in ORDERED:
        return [_ordered_component(query, aggregate)]
    row_count = Component(INTEGERS, tuple(_presence_lift(query, lift) for lift in aggregate.lifts))
    if aggregate.function == "count":
        return [row_count]
    return [*(_sum_component(query, term, aggregate.lifts) for term in aggregate.terms), row_count]


def _sum_component(
    query: ConjunctiveQuery, term: Term, all_lifts: tuple[Expression, ...]
) -> Component:
    """The lifts of a term; where any lift of the argument is null, the term is nothing."""
    lifts = [_numeric_lift(query, expression) for expression in term.lifts]
    lifts += [_presence_lift(query, each) for each in all_lifts if each not in term.lifts]
    factor = prod(each for each in _term_constants(query, term) if isinstance(each, int))
    if factor != 1:
        lifts.append((0, lambda row: factor))
    return Component(NUMBERS, tuple(lifts))


def _term_scale(query: ConjunctiveQuery, term: Term) -> Any:
    """The constants of a term that are not whole. They are multiplied when a sum is read: only
    then it is known whether they are decimals or, with columns of floats, floats."""
    broken = [each for each in _term_constants(query, term) if not isinstance(each, int)]
    return reduce(NUMBERS.multiply, broken, 1)


def _term_constants(query: ConjunctiveQuery, term: Term) -> list[Any]:
    return [
        _number_of_lift(query, each, compile_expression(each, ())(())) for each in term.constants
    ]


def _presence_lift(query: ConjunctiveQuery, expression: Expression) -> tuple[int, RowLift]:
    atom, lift = _lift_on_atom(query, expression)
    return atom, lambda row: int(lift(row) is not None)


def _numeric_lift(query: ConjunctiveQuery, expression: Expression) -> tuple[int, RowLift]:
    atom, lift = _lift_on_atom(query, expression)

    def lifted(row: Row) -> Any:
        value = lift(row)
        return 0 if value is None else _number_of_lift(query, expression, value)

    return atom, lifted


def _number_of_lift(query: ConjunctiveQuery, expression: Expression, value: Any) -> Any:
    try:
        return NUMBERS.from_value(value)
    except RingError as error:
        raise QueryError(f"query {query.name}: {expression} cannot be summed: {error}") from None


def _lift_on_atom(query: ConjunctiveQuery, expression: Expression) -> tuple[int, RowLift]:
    """The first atom that has all the variables, and the expression over its values."""
    names = columns_of(expression)
    atom = next(i for i, each in enumerate(query.atoms) if names <= each.schema)
    return atom, compile_expression(expression, distinct_variables(query.atoms[atom].variables))


def _ordered_component(query: ConjunctiveQuery, aggregate: Aggregate) -> Component:
    """The values in order, with their counts; inserts alone get by with the extreme one."""
    assert aggregate.argument is not None
    atom, lift = _lift_on_atom(query, aggregate.argument)
    if query.constraints.insert_only and aggregate.function != COUNT_DISTINCT:
        return Component(MIN if aggregate.function == "min" else MAX, ((atom, lift),))
    return Component(MULTISETS, ((atom, lambda row: MULTISETS.lift(lift(row))),))


def _product_lift(components: Sequence[Component], atom: int) -> RowLift:
    columns = [
        (component.ring, [lift for i, lift in component.lifts if i == atom])
        for component in components
    ]

    def lifted(row: Row) -> Row:
        elements = []
        for ring, lifts in columns:
            element = ring.one
            for lift in lifts:
                element = ring.multiply(element, lift(row))
            elements.append(element)
        return tuple(elements)

    return lifted


def _aggregate_reader(
    query: ConjunctiveQuery, aggregate: Aggregate, start: int, end: int
) -> Callable[[Row], Any]:
    match aggregate.function:
        case "count":
            place = start if aggregate.argument is not None else 0
            return lambda element: element[place]
        case "sum":
            scales = tuple(_term_scale(query, term) for term in aggregate.terms)
            return lambda element: _sum_or_null(element[start : end - 1], scales, element[end - 1])
        case "avg":
            scales = tuple(_term_scale(query, term) for term in aggregate.terms)
            return lambda element: (
                _total_of_terms(element[start : end - 1], scales) / element[end - 1]
                if element[end - 1]
                else None
            )
        case "count_distinct":
            return lambda element: element[start].distinct
        case _ if query.constraints.insert_only:
            return lambda element: element[start]
        case "min":
            return lambda element: element[start].minimum
        case _:
            return lambda element: element[start].maximum


def _total_of_terms(terms: Row, scales: Row) -> Any:
    """The sum of the terms, each times its scale; a float among them makes it one, as in SQL."""
    if any(isinstance(each, ExactFloat) for each in (*terms, *scales)):
        terms, scales = tuple(map(_scaled_float, terms)), tuple(map(_scaled_float, scales))
    products = [NUMBERS.multiply(*pair) for pair in zip(terms, scales, strict=True)]
    return NUMBERS.to_value(reduce(NUMBERS.add, products))


def _scaled_float(number: Any) -> Any:
    """A decimal or a fraction as the float next to it; whole numbers go with floats as they are."""
    is_exact = isinstance(number, ExactFloat | int)
    return number if is_exact else ExactFloat.of(float(number))


def _sum_or_null(terms: Row, scales: Row, row_count: int) -> Any:
    """The total, or None where no value is there to be summed."""
    total = _total_of_terms(terms, scales)
    return total if total or row_count else None
