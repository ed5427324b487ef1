"""The adaptive strategy: which of its planners a query takes, and the thresholds asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from viewkeep.analysis.adaptive import find_shape
from viewkeep.analysis.delta_rank import delta_rank
from viewkeep.analysis.exponents import HALF
from viewkeep.analysis.routes import routes
from viewkeep.errors import QueryError, did_you_mean
from viewkeep.plan.adaptive.costs import with_costs
from viewkeep.plan.adaptive.counts import plan_heavy_light_count
from viewkeep.plan.adaptive.hierarchical import plan_hierarchical
from viewkeep.plan.adaptive.splits import Epsilon
from viewkeep.plan.adaptive.triangles import plan_triangles
from viewkeep.plan.program import Program, Split
from viewkeep.plan.tree import Leaf
from viewkeep.query.conjunctive import ConjunctiveQuery

SPACES = ("fast", "linear")
FIRST_ORDER, FACTORIZED = "first-order", "factorized"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the user asked for: exponents in [0, 1] or a preset, and how much space views take.

    Without a default, what is not named gets the best exponent, which the analysis tells.
    """

    default: float | None = None
    by_name: tuple[tuple[str, float], ...] = ()
    preset: str = ""
    space: str = "fast"

    @staticmethod
    def read(epsilon: Any, space: str = "fast") -> "Thresholds":
        """One number for all splits, one by relation or variable, or the name of a preset; None
        for the best one."""
        if space not in SPACES:
            hint = did_you_mean(str(space), SPACES)
            raise QueryError(f'space="{space}": expected one of {", ".join(SPACES)}{hint}')
        if isinstance(epsilon, str):
            if epsilon != FIRST_ORDER and epsilon.partition(":")[0] != FACTORIZED:
                raise QueryError(
                    f'epsilon="{epsilon}": expected a number between 0 and 1, one for each '
                    f'relation, or "{FIRST_ORDER}", "{FACTORIZED}", "{FACTORIZED}:<relation>"'
                )
            return Thresholds(preset=epsilon, space=space)
        if isinstance(epsilon, Mapping):
            by_name = tuple(
                (str(name), _epsilon_in_range(e, f" of {name}")) for name, e in epsilon.items()
            )
            return Thresholds(by_name=by_name, space=space)
        return Thresholds(None if epsilon is None else _epsilon_in_range(epsilon), space=space)


def _epsilon_in_range(epsilon: Any, place: str = "") -> float:
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not number or not 0 <= epsilon <= 1:
        raise QueryError(f"epsilon={epsilon}{place}: expected a number between 0 and 1")
    return float(epsilon)


def plan_epsilon(
    query: ConjunctiveQuery,
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    thresholds: Thresholds,
    notes: tuple[str, ...] = (),
) -> Program:
    """The program with heavy and light parts, or an error that says why there is none."""
    planner = _adaptive_planner(query, leaves, relations, thresholds.space == "linear")
    program = planner(_epsilon_of_splits(query, leaves, thresholds), notes)
    if program is None:
        raise QueryError(
            f"{query.name}: no split was found, of those tried, that keeps updates below O(N)"
        )
    _check_split_names(leaves, thresholds, program.splits)
    return program


Planner = Callable[[Epsilon, tuple[str, ...]], Program | None]


def _adaptive_planner(
    query: ConjunctiveQuery, leaves: Sequence[Leaf], relations: Sequence[str], linear: bool
) -> Planner:
    shape, rank = find_shape(query), delta_rank(query).value
    if query.inputs:
        raise QueryError(f"{query.name}: queries with given inputs have no heavy and light parts")
    if rank == 0:
        raise QueryError(f"{query.name} is q-hierarchical: constant time without heavy parts")
    if not query.free:
        return lambda epsilon, notes: plan_heavy_light_count(
            leaves, relations, epsilon, linear, notes
        )
    if linear:
        raise QueryError(f'{query.name}: space="linear" is for counts, not for lists of tuples')
    if rank is not None:
        return lambda epsilon, notes: with_costs(
            plan_hierarchical(query, leaves, relations, epsilon, notes)
        )
    if shape is None:
        raise QueryError(
            f"{query.name}: heavy and light parts are known for counts, for the list of all "
            "triangles and for hierarchical queries"
        )
    return lambda epsilon, notes: plan_triangles(leaves, relations, query.outputs, epsilon, notes)


def _epsilon_of_splits(
    query: ConjunctiveQuery, leaves: Sequence[Leaf], thresholds: Thresholds
) -> Epsilon:
    """The exponent for each split."""
    preset, _, fast = thresholds.preset.partition(":")
    if preset == FIRST_ORDER:
        return lambda variables, atoms: 1.0
    if preset == FACTORIZED:
        return _factorized_epsilon(query, leaves, fast or leaves[0].name)
    by_name, user_default = dict(thresholds.by_name), thresholds.default
    default = float(best_epsilon(query)) if user_default is None else user_default

    def epsilon(variables: tuple[str, ...], atoms: tuple[int, ...]) -> float:
        for name in _split_names(leaves, variables, atoms):
            if name in by_name:
                return by_name[name]
        return default

    return epsilon


def best_epsilon(query: ConjunctiveQuery) -> Fraction:
    """The exponent that makes the larger of update time and delay smallest, as `explain` tells it;
    1/2 where the bounds do not depend on it, or none are known.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(best_epsilon(parse("Q(a, c, d) = R(a, b) * S(b, c) * T(b, d)")))
    1/3
    """
    exponents = [
        route.bounds.best_epsilon for route in routes(query) if route.strategy == "epsilon"
    ]
    return next((best for best in exponents if best is not None), HALF)


def _factorized_epsilon(query: ConjunctiveQuery, leaves: Sequence[Leaf], fast: str) -> Epsilon:
    """Updates of one relation in constant time: what it meets is one view over all the others,
    the heavy part of the one that is split on its variables with the light parts of the rest."""
    shape = find_shape(query)
    if shape is None or not shape.name.startswith(("triangle", "Loomis")):
        raise QueryError(f'epsilon="{FACTORIZED}": for triangles and Loomis-Whitney queries only')
    by_name = {leaf.name: leaf for leaf in leaves}
    if fast not in by_name:
        hint = did_you_mean(fast, by_name)
        raise QueryError(f'epsilon="{FACTORIZED}:{fast}": no relation "{fast}"{hint}')
    fast_leaf = by_name[fast]

    def epsilon(variables: tuple[str, ...], atoms: tuple[int, ...]) -> float:
        return 0.0 if atoms != (fast_leaf.atom,) and set(variables) <= set(fast_leaf.key) else 1.0

    return epsilon


def _split_names(
    leaves: Sequence[Leaf], variables: tuple[str, ...], atoms: tuple[int, ...]
) -> tuple[str, ...]:
    """What a split may be called: its variables, or its relation if that is split alone."""
    leaf_names = tuple(leaf.name for leaf in leaves if (leaf.atom,) == atoms)
    relations = tuple(name.partition("#")[0] for name in leaf_names)
    return (", ".join(variables), *leaf_names, *relations)


def _check_split_names(
    leaves: Sequence[Leaf], thresholds: Thresholds, splits: Sequence[Split]
) -> None:
    names = [name for s in splits for name in _split_names(leaves, s.variables, s.atoms)]
    for name, _ in thresholds.by_name:
        if name not in names:
            hint = did_you_mean(name, names)
            listed = ", ".join(dict.fromkeys(names))
            raise QueryError(f'epsilon of "{name}": nothing of that name is split ({listed}){hint}')
