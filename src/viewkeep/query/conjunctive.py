"""Conjunctive queries with aggregates and access patterns.

    Q(X1, ..., Xf) = sum over the other variables of the product of the atoms

(recent_increments_in_ivm, section 2). The head splits the free variables into outputs and inputs
(section 4.3); atoms are told apart by their position, since a relation may occur several times.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.aggregates import Aggregate
from viewkeep.query.constraints import NO_CONSTRAINTS, Constraints
from viewkeep.query.expressions import Expression, columns_of, quote_identifier


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation applied to variables; a variable may stand in several places.

    >>> print(Atom("E", ("a", "b")))
    E(a, b)
    """

    relation: str
    variables: tuple[str, ...]

    @property
    def schema(self) -> frozenset[str]:
        """The variables as a set."""
        return frozenset(self.variables)

    def __str__(self) -> str:
        return f"{_quote_relation(self.relation)}({_variable_list(self.variables)})"


@dataclass(frozen=True)
class ConjunctiveQuery:
    """A validated query; `print` gives the notation that `parse` reads.

    `columns` names, per relation, the table columns that the atoms bind: set for queries from SQL,
    where the variables alone do not tell which columns of a wider table are meant. `tables` then
    names all columns of each table, so that whole rows can be taken in.
    """

    name: str
    outputs: tuple[str, ...]
    atoms: tuple[Atom, ...]
    inputs: tuple[str, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    conditions: tuple[Expression, ...] = ()
    constraints: Constraints = NO_CONSTRAINTS
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        if not self.atoms:
            raise QueryError(f"query {self.name}: needs at least one atom")
        _check_query_head(self)
        _check_atom_arities(self)
        _check_query_expressions(self)
        self.constraints.check(self)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All variables, in order of first appearance in the atoms."""
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @property
    def free(self) -> tuple[str, ...]:
        """The variables of the head: outputs, then inputs."""
        return self.outputs + self.inputs

    @cached_property
    def bound(self) -> tuple[str, ...]:
        """The variables that are summed away."""
        free = set(self.free)
        return tuple(v for v in self.variables if v not in free)

    @cached_property
    def local(self) -> frozenset[str]:
        """The bound variables of a single atom: they are summed away where they stand."""
        return frozenset(v for v in self.bound if len(self.atoms_of[v]) == 1)

    @cached_property
    def atoms_of(self) -> dict[str, frozenset[int]]:
        """For each variable, the positions of the atoms it occurs in: atoms(X) in the papers."""
        return {
            v: frozenset(i for i, atom in enumerate(self.atoms) if v in atom.variables)
            for v in self.variables
        }

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The distinct relation names, in order of first use."""
        return tuple(dict.fromkeys(atom.relation for atom in self.atoms))

    @property
    def has_self_joins(self) -> bool:
        """Whether some relation occurs more than once."""
        return len(self.relations) < len(self.atoms)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name per atom: the relation, or the whole atom where the relation occurs again."""
        uses = Counter(atom.relation for atom in self.atoms)
        return tuple(a.relation if uses[a.relation] == 1 else str(a) for a in self.atoms)

    def columns_of(self, relation: str) -> tuple[str, ...]:
        """The columns of a relation: those of its table, or the variables of its first atom."""
        declared = dict(self.columns).get(relation)
        if declared is not None:
            return declared
        for atom in self.atoms:
            if atom.relation == relation:
                return atom.variables
        raise QueryError(
            f'query {self.name} has no relation "{relation}" ({", ".join(self.relations)})'
            + did_you_mean(relation, self.relations)
        )

    def with_constraints(self, constraints: Constraints) -> "ConjunctiveQuery":
        """The same query known to satisfy more constraints."""
        return replace(self, constraints=self.constraints.merge(constraints))

    def __str__(self) -> str:
        head = _variable_list(self.outputs)
        if self.inputs:
            head = f"{head} | {_variable_list(self.inputs)}".lstrip()
        if self.aggregates:
            head = f"{head}; {', '.join(map(str, self.aggregates))}"
        factors = [str(atom) for atom in self.atoms] + [f"[{c}]" for c in self.conditions]
        return f"{_quote_relation(self.name)}({head}) = {' * '.join(factors)}"


def unsafe_head(variable: str, atoms: Iterable[Atom]) -> str:
    """What to say of a head variable that no atom binds."""
    variables = [v for atom in atoms for v in atom.variables]
    return (
        f'head variable "{variable}" is in no atom, so its values are unbounded (unsafe head)'
        + did_you_mean(variable, variables)
    )


def columns(count: int) -> str:
    """A number of columns for people."""
    return "1 column" if count == 1 else f"{count} columns"


def _variable_list(names: Iterable[str]) -> str:
    return ", ".join(map(quote_identifier, names))


def _quote_relation(name: str) -> str:
    """Names before a bracket may end in primes, as in the reduct R'(x, y) of R(x)."""
    stem = name.rstrip("'")
    return quote_identifier(stem) + name[len(stem) :] if stem else quote_identifier(name)


def _check_query_head(query: ConjunctiveQuery) -> None:
    for variable, uses in Counter(query.free).items():
        if uses > 1:
            raise QueryError(f'query {query.name}: "{variable}" stands {uses} times in the head')
        if variable not in query.variables:
            raise QueryError(f"query {query.name}: {unsafe_head(variable, query.atoms)}")


def _check_atom_arities(query: ConjunctiveQuery) -> None:
    arities = {relation: len(columns) for relation, columns in query.columns}
    for atom in query.atoms:
        expected = arities.setdefault(atom.relation, len(atom.variables))
        if expected != len(atom.variables):
            raise QueryError(
                f"query {query.name}: {atom} has {columns(len(atom.variables))}, "
                f"but {atom.relation} has {expected}"
            )


def _check_query_expressions(query: ConjunctiveQuery) -> None:
    parts: list[tuple[str, Expression]] = [("condition", c) for c in query.conditions]
    for aggregate in query.aggregates:
        if aggregate.argument is not None:
            _check_query_variables(query, str(aggregate), aggregate.argument)
            parts += [(str(aggregate), lift) for term in aggregate.terms for lift in term.lifts]
    for place, expression in parts:
        _check_query_variables(query, place, expression)
        names = columns_of(expression)
        if not any(names <= atom.schema for atom in query.atoms):
            raise QueryError(
                f"query {query.name}: {place}: {expression} needs {', '.join(sorted(names))} "
                "together, but no single atom has them all"
            )


def _check_query_variables(query: ConjunctiveQuery, place: str, expression: Expression) -> None:
    for name in sorted(columns_of(expression)):
        if name not in query.variables:
            raise QueryError(
                f'query {query.name}: {place}: variable "{name}" is in no atom'
                + did_you_mean(name, query.variables)
            )
