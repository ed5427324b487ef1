"""Hypothesis strategies for queries and what may be known of them.

The queries are small (up to 5 atoms over up to 6 variables), because every shape that the theory
tells apart shows up that early and counterexamples stay readable.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from viewkeep.query.aggregates import Aggregate
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.constraints import Constraints, FunctionalDependency
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    literal,
    rename_columns,
)
from viewkeep.query.types.data_types import BIGINT, DATE, DECIMAL, STRING

T = TypeVar("T")

VARIABLES = tuple("abcdef")
RELATIONS = tuple("RSTUV")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
ARITIES = (1, 2, 2, 2, 3, 3)


@st.composite
def queries(
    draw: DrawFn,
    *,
    max_atoms: int = 5,
    variables: tuple[str, ...] = VARIABLES,
    relations: tuple[str, ...] = RELATIONS,
    self_joins: bool = True,
    repeated_variables: bool = True,
    nullary: bool = True,
    inputs: bool = True,
    aggregates: bool = True,
    conditions: bool = True,
) -> ConjunctiveQuery:
    """Any query; each keyword that is False leaves a feature out.

    `repeated_variables` is about one atom, as in R(a, a).
    """
    pool = variables[: draw(_often_large(len(variables)))]
    arities = ARITIES + ((0,) if nullary and _rarely(draw) else ())
    atoms: list[Atom] = []
    for position in range(draw(_often_large(min(max_atoms, len(relations))))):
        arity = min(draw(st.sampled_from(arities)), len(pool))
        unused = [relations[position]]
        earlier = [a.relation for a in atoms if len(a.variables) == arity] if self_joins else []
        repeat = repeated_variables and _rarely(draw)
        atoms.append(
            Atom(
                draw(st.sampled_from(unused * 2 + earlier)),
                draw(_tuples_of(pool, arity, unique=not repeat)),
            )
        )
    outputs, inputs_ = draw(_heads(atoms, inputs=inputs))
    return ConjunctiveQuery(
        "Q",
        outputs,
        tuple(atoms),
        inputs_,
        draw(_few(aggregates_over(atoms))) if aggregates and _rarely(draw) else (),
        draw(_few(conditions_over(atoms))) if conditions and _rarely(draw) else (),
    )


def guarded_fds(query: ConjunctiveQuery, max_size: int = 3) -> SearchStrategy[tuple[str, ...]]:
    """Functional dependencies, as text, each between the variables of one atom of the query."""
    wide = [atom for atom in query.atoms if len(atom.schema) > 1]
    if not wide:
        return st.just(())
    return st.lists(_fd_in(wide), max_size=max_size, unique=True).map(tuple)


def static_relations(query: ConjunctiveQuery) -> SearchStrategy[tuple[str, ...]]:
    """Some of the relations of the query: none, a few or all."""
    return _subsets(query.relations)


@dataclass(frozen=True)
class Renaming:
    """New names for the variables and relations of a query, and a new order of its atoms."""

    variables: dict[str, str]
    relations: dict[str, str]
    order: tuple[int, ...]

    def query(self, query: ConjunctiveQuery) -> ConjunctiveQuery:
        """The same query under the new names; of the constraints, those on variables, static
        relations and inserts."""
        known = query.constraints
        assert not any((known.keys, known.foreign_keys, known.degrees))  # these name columns
        return ConjunctiveQuery(
            query.name,
            self._names(query.outputs),
            tuple(self._atom(query.atoms[i]) for i in self.order),
            self._names(query.inputs),
            tuple(self._aggregate(a) for a in query.aggregates),
            tuple(self._expression(c) for c in query.conditions),
            Constraints(
                fds=tuple(self._fd(fd) for fd in known.fds),
                static=frozenset(self.relations[name] for name in known.static),
                insert_only=known.insert_only,
            ),
        )

    def fds(self, fds: tuple[str, ...]) -> tuple[str, ...]:
        """Functional dependencies, as text, under the new names."""
        return tuple(str(self._fd(FunctionalDependency.parse(fd))) for fd in fds)

    def static(self, relations: tuple[str, ...]) -> tuple[str, ...]:
        """Relations under the new names."""
        return tuple(self.relations[name] for name in relations)

    def _fd(self, fd: FunctionalDependency) -> FunctionalDependency:
        return FunctionalDependency(self._names(fd.determinant), self._names(fd.dependent))

    def _names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.variables[name] for name in names)

    def _atom(self, atom: Atom) -> Atom:
        return Atom(self.relations[atom.relation], self._names(atom.variables))

    def _expression(self, expression: Expression) -> Expression:
        return rename_columns(expression, self.variables.__getitem__)

    def _aggregate(self, aggregate: Aggregate) -> Aggregate:
        if aggregate.argument is None:
            return aggregate
        return Aggregate(aggregate.function, self._expression(aggregate.argument))


@st.composite
def renamings(draw: DrawFn, query: ConjunctiveQuery) -> Renaming:
    """Any renaming: also one that swaps names, so that nothing may hang on their order."""
    return Renaming(
        draw(_injections(query.variables, ("u", "v", "w", "x", "y", "z"))),
        draw(_injections(query.relations, ("A", "B", "C", "X", "Y"))),
        tuple(draw(st.permutations(range(len(query.atoms))))),
    )


def identifiers() -> SearchStrategy[str]:
    """Names that can stand bare, that need quotes, and that look like something else."""
    awkward = ("and", "Cast", "x", "date", "R'", "a·b", "a b", "`", "``", "'", "1", "-- c", "# c")
    return st.one_of(
        st.from_regex(r"[a-z]\w{0,3}", fullmatch=True),
        st.sampled_from(awkward),
        st.text(min_size=1, max_size=4),
    )


def literals() -> SearchStrategy[Literal]:
    """Constants of every type that the notation writes; no NaN, which is not equal to itself."""
    values = (
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9),
        st.text(max_size=6),
        st.binary(max_size=4),
        st.dates(date(1, 1, 1)),
        st.datetimes(datetime(1, 1, 1)),
    )
    return st.one_of(*values).map(literal)


def expressions(columns: tuple[str, ...]) -> SearchStrategy[Expression]:
    """Any scalar expression over these columns; types are not looked at."""
    leaves: SearchStrategy[Expression] = literals()
    if columns:
        leaves = leaves | st.sampled_from(columns).map(Column)
    return st.recursive(leaves, _applied, max_leaves=6)


def polynomials(columns: tuple[str, ...]) -> SearchStrategy[Expression]:
    """Sums, differences and products of columns and small integers."""
    leaves: SearchStrategy[Expression] = st.integers(-3, 3).map(literal)
    leaves = leaves | st.sampled_from(columns).map(Column)
    return st.recursive(
        leaves,
        lambda part: st.one_of(
            st.builds(_binary, st.sampled_from("+-*"), part, part), part.map(_call("negate"))
        ),
        max_leaves=6,
    )


def conditions_over(atoms: list[Atom]) -> SearchStrategy[Expression]:
    """Comparisons of a variable with a constant, or with another variable of the same atom."""
    schemas = [sorted(atom.schema) for atom in atoms if atom.variables]
    if not schemas:
        return st.just(_binary("=", literal(1), literal(1)))
    comparison = st.sampled_from(COMPARISONS)
    constant = st.integers(0, 3).map(literal)
    return st.sampled_from(schemas).flatmap(
        lambda schema: st.builds(
            _binary,
            comparison,
            st.sampled_from(schema).map(Column),
            constant | st.sampled_from(schema).map(Column),
        )
    )


def aggregates_over(atoms: list[Atom]) -> SearchStrategy[Aggregate]:
    """Counts, and sums, averages and extremes over variables of the atoms."""
    names = sorted({variable for atom in atoms for variable in atom.variables})
    count = st.just(Aggregate("count"))
    if not names:
        return count
    column: SearchStrategy[Expression] = st.sampled_from(names).map(Column)
    product = column | st.builds(_binary, st.just("*"), column, column)
    return st.one_of(
        count,
        st.builds(Aggregate, st.sampled_from(["sum", "avg"]), product),
        st.builds(Aggregate, st.sampled_from(["min", "max", "count_distinct"]), column),
    )


def _rarely(draw: DrawFn) -> bool:
    return draw(st.integers(0, 3)) == 3


def _often_large(most: int) -> SearchStrategy[int]:
    """A size; small ones come less often, since almost every small query is hierarchical."""
    sizes = range(1, most + 1)
    return st.sampled_from([*sizes, *sizes[2:], *sizes[2:]])


def _few(strategy: SearchStrategy[T]) -> SearchStrategy[tuple[T, ...]]:
    return st.lists(strategy, min_size=1, max_size=2).map(tuple)


def _tuples_of(
    pool: tuple[str, ...], size: int, *, unique: bool
) -> SearchStrategy[tuple[str, ...]]:
    names = st.sampled_from(pool)
    return st.lists(names, min_size=size, max_size=size, unique=unique).map(tuple)


def _subsets(names: tuple[str, ...]) -> SearchStrategy[tuple[str, ...]]:
    return st.lists(st.booleans(), min_size=len(names), max_size=len(names)).map(
        lambda chosen: tuple(name for name, keep in zip(names, chosen, strict=True) if keep)
    )


@st.composite
def _heads(
    draw: DrawFn, atoms: list[Atom], *, inputs: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = tuple(dict.fromkeys(v for atom in atoms for v in atom.variables))
    roles = ("bound", "output", "input") if inputs and draw(st.booleans()) else ("bound", "output")
    role = {name: draw(st.sampled_from(roles)) for name in names}
    ordered = draw(st.permutations(names))
    outputs = tuple(name for name in ordered if role[name] == "output")
    return outputs, tuple(name for name in ordered if role[name] == "input")


@st.composite
def _fd_in(draw: DrawFn, atoms: list[Atom]) -> str:
    schema = draw(st.permutations(sorted(draw(st.sampled_from(atoms)).schema)))
    split = draw(st.integers(1, len(schema) - 1))
    return str(FunctionalDependency(tuple(sorted(schema[:split])), tuple(sorted(schema[split:]))))


def _injections(names: tuple[str, ...], fresh: tuple[str, ...]) -> SearchStrategy[dict[str, str]]:
    return st.permutations(names + fresh).map(lambda new: dict(zip(names, new, strict=False)))


def _applied(part: SearchStrategy[Expression]) -> SearchStrategy[Expression]:
    binary = st.sampled_from(["and", "or", "+", "-", "*", "/", "%", *COMPARISONS])
    unary = st.sampled_from(["not", "negate"])
    function = st.sampled_from(["abs", "coalesce", "date", "order by", "and"])
    types = st.sampled_from([BIGINT, DATE, DECIMAL(10, 2), STRING])
    return st.one_of(
        st.builds(_binary, binary, part, part),
        st.builds(lambda name, argument: Call(name, (argument,)), unary, part),
        st.builds(Call, function, st.lists(part, max_size=3).map(tuple)),
        st.builds(Cast, part, types),
    )


def _binary(function: str, left: Expression, right: Expression) -> Expression:
    return Call(function, (left, right))


def _call(function: str) -> Callable[[Expression], Expression]:
    return lambda argument: Call(function, (argument,))
