"""The ways to maintain a query, each with its bounds; the cheapest is the strategy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from viewkeep.analysis.access_pattern import tractable_access_pattern
from viewkeep.analysis.adaptive import find_shape
from viewkeep.analysis.delta_rank import delta_rank
from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.analysis.exponents import HALF, Bounds, Linear, in_epsilon, value_at
from viewkeep.analysis.extremes import with_ordered_values
from viewkeep.analysis.foreign_keys import foreign_key_join
from viewkeep.analysis.insert_only import insert_only
from viewkeep.analysis.order_search import best_order, best_width
from viewkeep.analysis.q_hierarchical import q_hierarchical
from viewkeep.analysis.reduct import reduct_q_hierarchical
from viewkeep.analysis.shape import join_shape
from viewkeep.analysis.variable_order import BOUND, INPUT, JoinShape, OrderCost
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import closure, dependencies

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class Route:
    """A strategy, what it costs, why it applies, and the variable order where it has one."""

    strategy: str
    bounds: Bounds
    reason: str
    order: OrderCost | None = None


def best_route(query: ConjunctiveQuery) -> Route:
    """The cheapest route: by the worst of update time and delay, then by their sum, then by
    preprocessing and space; the simpler strategy where all are equal."""
    return min(routes(query), key=cost_of)


def routes(query: ConjunctiveQuery) -> Iterator[Route]:
    """Every route that applies, simplest first."""
    for route in _routes_of_query(query):
        roots = None if route.order is None else route.order.roots
        bounds = with_ordered_values(query, route.strategy, route.bounds, roots)
        merged = value_at(bounds.update, HALF) > value_at(route.bounds.update, HALF)
        reason = f"{route.reason}; {_MERGED}" if merged else route.reason
        yield replace(route, bounds=bounds, reason=reason)


_MERGED = "updates merge the ordered values of a min or max"


def _routes_of_query(query: ConjunctiveQuery) -> Iterator[Route]:
    """The routes with the bounds of payloads that are single numbers."""
    shape = join_shape(query)
    yield _view_tree_route(query, shape)
    yield _first_order_route(query, shape)
    yield from _join_of_inputs_route(query)
    if query.constraints.insert_only and (verdict := insert_only(query)):
        yield Route("viewtree", _CONSTANT_AMORTIZED, f"inserts only: {verdict.because}")
    if verdict := foreign_key_join(query):
        yield Route("viewtree", _CONSTANT_AMORTIZED, f"foreign keys: {verdict.because}")
    yield from _adaptive_routes(query, shape)


_CONSTANT_AMORTIZED = Bounds(ONE, ZERO, ZERO, ONE, amortized=True)


def cost_of(route: Route) -> tuple[Fraction, ...]:
    """What routes are ranked by."""
    best = route.bounds.best_epsilon
    bounds = route.bounds.at(HALF if best is None else best)
    update, delay, preprocessing, space = (
        value_at(exponent, HALF)
        for exponent in (bounds.update, bounds.delay, bounds.preprocessing, bounds.space)
    )
    amortized = Fraction(bounds.amortized)
    return max(update, delay), update + delay, amortized, preprocessing, space


def _view_tree_route(query: ConjunctiveQuery, shape: JoinShape) -> Route:
    best = best_order(shape)
    size = max(best.width, ONE)
    bounds = Bounds(preprocessing=size, update=best.update, delay=ZERO, space=size)
    return Route("viewtree", bounds, _why_view_tree(query, best), best)


def _why_view_tree(query: ConjunctiveQuery, best: OrderCost) -> str:
    """The property that a view tree with constant updates rests on."""
    if best.update > 0:
        reason = "outside the constant-time classes, this view tree has the cheapest worst update"
        return reason if best.exact else f"{reason} of those that were tried, not of all"
    if q_hierarchical(query):
        return "q-hierarchical"
    if query.inputs and tractable_access_pattern(query):
        return "tractable access pattern"
    if reduct_q_hierarchical(query):
        return "the reduct under functional dependencies is q-hierarchical"
    means = [
        word
        for word, used in (
            ("static relations", query.constraints.static),
            ("bounded degrees", query.constraints.degrees),
            ("dependencies", dependencies(query)),
            ("given inputs", query.inputs),
        )
        if used
    ]
    return f"{' and '.join(means)}: every dynamic atom determines the views above it"


def _first_order_route(query: ConjunctiveQuery, shape: JoinShape) -> Route:
    """Delta queries by a worst-case optimal join, the output kept as a list."""
    edges = [closure(atom, shape.rules) for atom in shape.atoms]
    everything = frozenset(shape.levels)
    free = frozenset(v for v, level in shape.levels.items() if level != BOUND)
    changing = [edge for edge, dynamic in zip(edges, shape.dynamic, strict=True) if dynamic]
    update = max((edge_cover(everything - edge, edges) for edge in changing), default=ZERO)
    preprocessing = max(min(edge_cover(everything, edges), best_width(shape)), ONE)
    space = max(edge_cover(free, edges), ONE)
    bounds = Bounds(max(preprocessing, space), update, ZERO, space)
    return Route("delta", bounds, "first-order deltas with a worst-case optimal join")


def _join_of_inputs_route(query: ConjunctiveQuery) -> Iterator[Route]:
    """A worst-case optimal join of what the given inputs leave, where that takes O(N): nothing but
    the relations is kept, while views over pairs of values that may be asked for take O(N^2)."""
    if not query.inputs:
        return
    rules = dependencies(query)
    edges = [closure(atom.schema, rules) for atom in query.atoms]
    joined = edge_cover(frozenset(query.variables) - closure(query.inputs, rules), edges)
    if joined <= ONE:
        bounds = Bounds(ONE, ZERO, max(joined, ZERO), ONE)
        yield Route("recompute", bounds, "a worst-case optimal join of what meets the inputs")


def _adaptive_routes(query: ConjunctiveQuery, shape: JoinShape) -> Iterator[Route]:
    adaptive = find_shape(query)
    if adaptive is not None:
        yield Route("epsilon", adaptive.bounds, f"{adaptive.name}: heavy and light parts")
    rank = delta_rank(query).value
    if rank and not any(level == INPUT for level in shape.levels.values()):
        yield Route("epsilon", _hierarchical_bounds(query, rank), f"delta_{rank}-hierarchical")


def _hierarchical_bounds(query: ConjunctiveQuery, rank: int) -> Bounds:
    """Preprocessing N^(1 + (w - 1) eps), update N^(rank eps), delay N^(1 - eps), where w is the
    static width without constraints (ivm_lecture, part 3; w is 1 or 2 for rank 1)."""
    width = max(best_width(replace(JoinShape.of(query), rules=())), ONE)
    growth = in_epsilon(Linear(1, width - 1))
    return Bounds(
        growth, in_epsilon(Linear(0, rank)), in_epsilon(Linear(1, -1)), growth, amortized=True
    )
