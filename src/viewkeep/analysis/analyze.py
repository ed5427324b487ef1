"""The flow of the analysis: properties, the best route, the lower bound."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import overload

from viewkeep.analysis.access_pattern import fracture as find_fracture
from viewkeep.analysis.access_pattern import tractable_access_pattern
from viewkeep.analysis.adaptive import adaptive
from viewkeep.analysis.alpha_acyclic import alpha_acyclic
from viewkeep.analysis.bounded_degree import bounded_degree
from viewkeep.analysis.cascade import Cascade, find_cascades
from viewkeep.analysis.delta_rank import delta_rank
from viewkeep.analysis.exponents import Bounds
from viewkeep.analysis.foreign_keys import foreign_key_join
from viewkeep.analysis.free_connex import free_connex
from viewkeep.analysis.hierarchical import hierarchical
from viewkeep.analysis.insert_only import insert_only
from viewkeep.analysis.lower_bound import LowerBound, lower_bound
from viewkeep.analysis.order_search import best_order
from viewkeep.analysis.q_hierarchical import q_hierarchical
from viewkeep.analysis.reduct import reduct as find_reduct
from viewkeep.analysis.reduct import reduct_q_hierarchical
from viewkeep.analysis.routes import Route, best_route
from viewkeep.analysis.shape import join_shape
from viewkeep.analysis.static_dynamic import tractable_with_static
from viewkeep.analysis.variable_order import VariableOrder
from viewkeep.analysis.verdict import Verdict
from viewkeep.display import facts_html, rows_html
from viewkeep.errors import QueryError
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints, dependencies
from viewkeep.query.notation.parse import parse

PROPERTIES: tuple[Callable[[ConjunctiveQuery], Verdict], ...] = (
    alpha_acyclic,
    free_connex,
    hierarchical,
    q_hierarchical,
    delta_rank,
    reduct_q_hierarchical,
    bounded_degree,
    foreign_key_join,
    tractable_access_pattern,
    tractable_with_static,
    insert_only,
    adaptive,
)
"""Every property of one query, in the order in which people read them."""


@dataclass(frozen=True)
class Analysis:
    """What is possible for a query, and why not more."""

    query: ConjunctiveQuery
    verdicts: dict[str, Verdict]
    route: Route
    variable_order: tuple[VariableOrder, ...]
    lower_bound: LowerBound | None
    lower_bound_reason: str

    @property
    def hierarchical(self) -> bool:
        """Whether any two variables have disjoint or nested sets of atoms."""
        return self.verdicts["hierarchical"].holds

    @property
    def q_hierarchical(self) -> bool:
        """Whether it is hierarchical and no bound variable dominates a free one."""
        return self.verdicts["q_hierarchical"].holds

    @property
    def delta_rank(self) -> int | None:
        """0 for q-hierarchical, 1, 2, ..., None if not hierarchical."""
        return self.verdicts["delta_rank"].value

    @property
    def alpha_acyclic(self) -> bool:
        """Whether the atoms have a join tree."""
        return self.verdicts["alpha_acyclic"].holds

    @property
    def free_connex(self) -> bool:
        """Whether it is alpha-acyclic also with the head as an atom."""
        return self.verdicts["free_connex"].holds

    @property
    def tractable_access_pattern(self) -> bool:
        """Whether, inputs given, updates and delay are constant."""
        return self.verdicts["tractable_access_pattern"].holds

    @property
    def tractable_with_static(self) -> bool:
        """Whether static relations make updates and delay constant, at some preprocessing."""
        return self.verdicts["tractable_with_static"].holds

    @property
    def reduct(self) -> ConjunctiveQuery:
        """The reduct under the functional dependencies; the query itself without any."""
        return find_reduct(self.query)

    @property
    def fracture(self) -> ConjunctiveQuery:
        """The query with its inputs split over the components; the query itself without any."""
        return find_fracture(self.query)

    @property
    def bounds(self) -> Bounds:
        """What the strategy costs."""
        return self.route.bounds

    @property
    def strategy(self) -> str:
        """The best known strategy."""
        return self.route.strategy

    @property
    def available(self) -> Route:
        """The route that `maintain` takes by itself: the best one, as all strategies are there."""
        return self.route

    def _repr_html_(self) -> str:
        costs = ("preprocessing", "update", "delay", "space")
        bounds = [(name, self.bounds.order(name)) for name in costs]
        about = [("strategy", f"{self.strategy}: {self.route.reason}"), *bounds]
        verdicts = [
            (name.replace("_", " "), "yes" if each.holds else "no", each.because)
            for name, each in self.relevant.items()
        ]
        facts = facts_html(str(self.query), [*about, ("lower bound", self.describe_lower_bound())])
        return facts + rows_html(("property", "", "because"), verdicts)

    @property
    def optimal(self) -> bool:
        """Whether the bounds reach the lower bound."""
        return self.lower_bound is not None and self.lower_bound.matched_by(self.bounds)

    @property
    def why(self) -> dict[str, str]:
        """For every property, the witness that makes it true or false."""
        return {name: verdict.because for name, verdict in self.verdicts.items()}

    @property
    def relevant(self) -> dict[str, Verdict]:
        """The verdicts without those on constraints that the query does not have."""
        constraints = self.query.constraints
        is_relevant = {
            "reduct_q_hierarchical": bool(dependencies(self.query)),
            "bounded_degree": bool(constraints.degrees),
            "foreign_key_join": bool(constraints.foreign_keys),
            "tractable_access_pattern": bool(self.query.inputs),
            "tractable_with_static": bool(constraints.static),
            "insert_only": constraints.insert_only,
            "adaptive": not self.bounds.constant,
        }
        return {name: each for name, each in self.verdicts.items() if is_relevant.get(name, True)}

    def __str__(self) -> str:
        rows = [
            ("strategy", f"{self.strategy} ({self.route.reason})"),
            ("bounds", str(self.bounds)),
        ]
        rows += [("lower bound", self.describe_lower_bound())]
        rows += [(name, str(verdict)) for name, verdict in self.relevant.items()]
        width = max(len(name) for name, _ in rows)
        return "\n".join([str(self.query), *(f"  {name:{width}}  {text}" for name, text in rows)])

    def describe_lower_bound(self) -> str:
        """The lower bound for people, also where there is none."""
        if self.lower_bound is None:
            return f"unknown: {self.lower_bound_reason}"
        return f"{self.lower_bound}{'; reached' if self.optimal else ''}"


@dataclass(frozen=True)
class WorkloadAnalysis:
    """The analyses of several queries, and which of them can ride on which."""

    analyses: tuple[Analysis, ...]
    cascades: tuple[Cascade, ...]

    def __iter__(self) -> Iterator[Analysis]:
        return iter(self.analyses)

    def __len__(self) -> int:
        return len(self.analyses)

    def __getitem__(self, index: int) -> Analysis:
        return self.analyses[index]

    def cascade_of(self, name: str) -> Cascade | None:
        """How the query of this name rides on others, if it does."""
        return next((cascade for cascade in self.cascades if cascade.rider == name), None)

    def __str__(self) -> str:
        return "\n\n".join(map(str, (*self.analyses, *self.cascades)))


Query = ConjunctiveQuery | str


@overload
def analyze(
    query: Query,
    *,
    fds: Iterable[str] = (),
    static: Iterable[str] = (),
    insert_only: bool = False,
    foreign_keys: Iterable[str] = (),
    keys: Iterable[str] = (),
    degrees: Iterable[str] = (),
) -> Analysis: ...


@overload
def analyze(
    query: Sequence[ConjunctiveQuery],
    *,
    fds: Iterable[str] = (),
    static: Iterable[str] = (),
    insert_only: bool = False,
    foreign_keys: Iterable[str] = (),
    keys: Iterable[str] = (),
    degrees: Iterable[str] = (),
) -> WorkloadAnalysis: ...


def analyze(
    query: Query | Sequence[ConjunctiveQuery],
    *,
    fds: Iterable[str] = (),
    static: Iterable[str] = (),
    insert_only: bool = False,
    foreign_keys: Iterable[str] = (),
    keys: Iterable[str] = (),
    degrees: Iterable[str] = (),
) -> Analysis | WorkloadAnalysis:
    """Tell what is possible for a query, or for a set of queries, before anything runs.

    >>> analysis = analyze("Q(x) = R(x, y) * S(y)")
    >>> print(analysis.delta_rank, analysis.strategy, analysis.bounds.update, analysis.bounds.delay)
    1 epsilon eps 1 - eps
    """
    constraints = Constraints.parse(fds, keys, foreign_keys, degrees, static, insert_only)
    if isinstance(query, str):
        query = parse(query)
    if isinstance(query, ConjunctiveQuery):
        return analyze_query(query.with_constraints(constraints))
    if not isinstance(query, list | tuple) or any(type(q) is not ConjunctiveQuery for q in query):
        raise QueryError(f"expected a query or a list of queries, not {query!r}")
    return analyze_workload(constrain(query, constraints))


def analyze_query(query: ConjunctiveQuery) -> Analysis:
    """The analysis of one query under the constraints it carries."""
    verdicts = {verdict.property: verdict for verdict in (check(query) for check in PROPERTIES)}
    route = best_route(query)
    order = route.order or best_order(join_shape(query))
    bound, reason = lower_bound(query, route.bounds)
    return Analysis(query, verdicts, route, order.roots, bound, reason)


def analyze_workload(queries: Sequence[ConjunctiveQuery]) -> WorkloadAnalysis:
    """The analyses of queries with different names, and the cascades among them."""
    names = [query.name for query in queries]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f'two queries are called "{name}": give each its own name')
    analyses = tuple(map(analyze_query, queries))
    tractable = {each.query.name: each.bounds.constant for each in analyses}
    return WorkloadAnalysis(analyses, find_cascades(queries, tractable))


def constrain(
    queries: Sequence[ConjunctiveQuery], constraints: Constraints
) -> list[ConjunctiveQuery]:
    """Each query with those of the constraints that speak of it; each must fit some query."""
    fitting = [
        (query, [part for part in constraints.parts() if _constraint_fits(query, part)])
        for query in queries
    ]
    for part in constraints.parts():
        if queries and not any(part in parts for _, parts in fitting):
            queries[0].with_constraints(part)  # raises the error that says what does not fit
    return [reduce(ConjunctiveQuery.with_constraints, parts, query) for query, parts in fitting]


def _constraint_fits(query: ConjunctiveQuery, part: Constraints) -> bool:
    try:
        query.with_constraints(part)
    except QueryError:
        return False
    return True
