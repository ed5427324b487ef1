"""What is known of the data beyond the query: dependencies, keys, degrees, what may change.

Functional dependencies are written on the variables of a query (`x, y -> z`); keys, foreign keys
and degree bounds on the columns of relations (`C.id`, `M.company -> C.id`, `S: x -> y <= 3`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

from viewkeep.errors import ConstraintError, ViewkeepError, did_you_mean
from viewkeep.query.expressions import conjuncts, constant_column

if TYPE_CHECKING:
    from viewkeep.query.conjunctive import ConjunctiveQuery

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FunctionalDependency:
    """Equal determinants have equal dependents; an empty determinant makes them constants.

    >>> print(FunctionalDependency.parse("x, y -> z"))
    x, y -> z
    """

    determinant: tuple[str, ...]
    dependent: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> "FunctionalDependency":
        """Read `x, y -> z`."""
        left, right = _constraint_sides(text, "a functional dependency is written x, y -> z")
        return FunctionalDependency(_constraint_variables(left), _constraint_variables(right))

    def __str__(self) -> str:
        return f"{', '.join(self.determinant)} -> {', '.join(self.dependent)}".lstrip()


@dataclass(frozen=True, slots=True)
class Key:
    """No two rows of the relation agree on these columns."""

    relation: str
    columns: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> "Key":
        """Read `C.id` or `PS.part, PS.supplier`."""
        return Key(*_qualified_columns(text, "a key is written R.a or R.a, R.b"))

    def __str__(self) -> str:
        return ", ".join(f"{self.relation}.{column}" for column in self.columns)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Every row refers, by these columns, to one row of the referenced relation, by its key."""

    relation: str
    columns: tuple[str, ...]
    referenced: str
    referenced_columns: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> "ForeignKey":
        """Read `M.company -> C.id`."""
        form = "a foreign key is written M.company -> C.id"
        left, right = _constraint_sides(text, form)
        key = ForeignKey(*_qualified_columns(left, form), *_qualified_columns(right, form))
        if len(key.columns) != len(key.referenced_columns):
            raise ConstraintError(f'foreign key "{text}": the sides have different lengths')
        return key

    def __str__(self) -> str:
        return f"{Key(self.relation, self.columns)} -> {self.key}"

    @property
    def key(self) -> Key:
        """The key that is referred to."""
        return Key(self.referenced, self.referenced_columns)


@dataclass(frozen=True, slots=True)
class DegreeBound:
    """In the relation, each value of `determinant` is beside at most `bound` of `dependent`."""

    relation: str
    determinant: tuple[str, ...]
    dependent: tuple[str, ...]
    bound: int

    @staticmethod
    def parse(text: str) -> "DegreeBound":
        """Read `S: x -> y <= 3`."""
        match = re.fullmatch(r"\s*(\w+)\s*:([^:]*)->(.*)<=\s*(\d+)\s*", text)
        if match is None:
            raise ConstraintError(f'"{text}": a degree bound is written S: x -> y <= 3')
        relation, determinant, dependent, bound = match.groups()
        return DegreeBound(
            relation,
            _constraint_variables(determinant),
            _constraint_variables(dependent),
            int(bound),
        )

    def __str__(self) -> str:
        return (
            f"{self.relation}: {', '.join(self.determinant)} -> {', '.join(self.dependent)} "
            f"<= {self.bound}"
        )


@dataclass(frozen=True, slots=True)
class Dependency:
    """A constraint resolved on the variables of a query: one look-up in the atom `guard`
    finds the at most `bound` values of `dependent`."""

    determinant: frozenset[str]
    dependent: str
    guard: int
    bound: int = 1


@dataclass(frozen=True, slots=True)
class Constraints:
    """All that is known; empty by default."""

    fds: tuple[FunctionalDependency, ...] = ()
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    degrees: tuple[DegreeBound, ...] = ()
    static: frozenset[str] = frozenset()
    insert_only: bool = False

    @staticmethod
    def parse(
        fds: Iterable[str] = (),
        keys: Iterable[str] = (),
        foreign_keys: Iterable[str] = (),
        degrees: Iterable[str] = (),
        static: Iterable[str] = (),
        insert_only: bool = False,
    ) -> "Constraints":
        """Read every constraint from its text."""
        if not isinstance(insert_only, bool):
            raise ConstraintError(f"insert_only={insert_only!r}: expected True or False")
        return Constraints(
            tuple(map(FunctionalDependency.parse, _constraint_texts(fds, "fds"))),
            tuple(map(Key.parse, _constraint_texts(keys, "keys"))),
            tuple(map(ForeignKey.parse, _constraint_texts(foreign_keys, "foreign_keys"))),
            tuple(map(DegreeBound.parse, _constraint_texts(degrees, "degrees"))),
            frozenset(_constraint_texts(static, "static")),
            insert_only,
        )

    def merge(self, other: "Constraints") -> "Constraints":
        """Both sets of constraints together."""
        return Constraints(
            _constraint_union(self.fds, other.fds),
            _constraint_union(self.keys, other.keys),
            _constraint_union(self.foreign_keys, other.foreign_keys),
            _constraint_union(self.degrees, other.degrees),
            self.static | other.static,
            self.insert_only or other.insert_only,
        )

    def parts(self) -> Iterator["Constraints"]:
        """Every single constraint on its own."""
        yield from (Constraints(fds=(fd,)) for fd in self.fds)
        yield from (Constraints(keys=(key,)) for key in self.keys)
        yield from (Constraints(foreign_keys=(key,)) for key in self.foreign_keys)
        yield from (Constraints(degrees=(degree,)) for degree in self.degrees)
        yield from (Constraints(static=frozenset({name})) for name in sorted(self.static))
        if self.insert_only:
            yield Constraints(insert_only=True)

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def check(self, query: "ConjunctiveQuery") -> None:
        """Refuse a constraint that names what the query does not have."""
        for relation in sorted(self.static):
            query.columns_of(relation)
        for foreign_key in self.foreign_keys:
            positions_in_atoms(query, foreign_key.relation, foreign_key.columns)
        resolved = dependencies(query)
        for fd in self.fds:
            _check_fd_guard(query, fd, resolved)


NO_CONSTRAINTS = Constraints()


def dependencies(query: "ConjunctiveQuery") -> tuple[Dependency, ...]:
    """Every dependency of the query with the atom where it can be looked up.

    Also the constants that conditions like `c = 3` make: they depend on nothing.
    """
    constraints = query.constraints
    dependencies = [*_constants_of_conditions(query), *_dependencies_of_fds(query)]
    keys = (*constraints.keys, *(foreign.key for foreign in constraints.foreign_keys))
    for key in dict.fromkeys(keys):
        columns = query.columns_of(key.relation)
        dependencies += _dependencies_of_columns(query, key.relation, key.columns, columns, 1)
    for degree in constraints.degrees:
        dependencies += _dependencies_of_columns(
            query, degree.relation, degree.determinant, degree.dependent, degree.bound
        )
    return tuple(dict.fromkeys(dependencies))


def closure(variables: Iterable[str], dependencies_: Iterable[Dependency]) -> frozenset[str]:
    """All variables determined by the given ones: C_Sigma(S) (recent_increments_in_ivm, 4.4).

    >>> rules = [Dependency(frozenset("A"), "C", 0), Dependency(frozenset("BC"), "D", 1)]
    >>> sorted(closure("AB", rules))
    ['A', 'B', 'C', 'D']
    """
    closed = set(variables)
    pending = list(dependencies_)
    grown = True
    while grown:
        grown = False
        for dependency in pending:
            if dependency.dependent not in closed and dependency.determinant <= closed:
                closed.add(dependency.dependent)
                grown = True
    return frozenset(closed)


def positions_in_atoms(
    query: "ConjunctiveQuery", relation: str, columns: Iterable[str]
) -> tuple[int, ...]:
    """Where the named columns of a relation stand in its atoms."""
    own_columns = query.columns_of(relation)
    for column in columns:
        if column not in own_columns:
            raise ConstraintError(
                f'column "{column}" is not in {relation} ({", ".join(own_columns)})'
                + _column_hint(query, relation)
                + did_you_mean(column, own_columns)
            )
    return tuple(own_columns.index(column) for column in columns)


def _column_hint(query: "ConjunctiveQuery", relation: str) -> str:
    """A declared table may have more columns than its atoms bind."""
    if relation not in dict(query.columns):
        return ""
    return (
        f": the query binds only these columns of {relation}, and knows the keys that are "
        "declared on the table"
    )


def _constants_of_conditions(query: "ConjunctiveQuery") -> Iterator[Dependency]:
    for condition in (part for conjunction in query.conditions for part in conjuncts(conjunction)):
        constant = constant_column(condition)
        if constant is not None:
            for guard in sorted(query.atoms_of[constant]):
                yield Dependency(frozenset(), constant, guard)


def _dependencies_of_fds(query: "ConjunctiveQuery") -> Iterator[Dependency]:
    for fd in query.constraints.fds:
        determinant = frozenset(fd.determinant)
        for dependent in fd.dependent:
            for guard, atom in enumerate(query.atoms):
                if dependent not in determinant and determinant | {dependent} <= atom.schema:
                    yield Dependency(determinant, dependent, guard)


def _dependencies_of_columns(
    query: "ConjunctiveQuery",
    relation: str,
    columns: tuple[str, ...],
    dependent: tuple[str, ...],
    bound: int,
) -> Iterator[Dependency]:
    given_at = positions_in_atoms(query, relation, columns)
    dependent_at = positions_in_atoms(query, relation, dependent)
    for guard, atom in enumerate(query.atoms):
        if atom.relation == relation:
            determinant = frozenset(atom.variables[i] for i in given_at)
            for variable in dict.fromkeys(atom.variables[i] for i in dependent_at):
                if variable not in determinant:
                    yield Dependency(determinant, variable, guard, bound)


def _check_fd_guard(
    query: "ConjunctiveQuery", fd: FunctionalDependency, resolved: tuple[Dependency, ...]
) -> None:
    for variable in (*fd.determinant, *fd.dependent):
        if variable not in query.variables:
            raise ConstraintError(
                f'functional dependency "{fd}": no variable "{variable}" in {query.name} '
                f"({', '.join(query.variables)}){did_you_mean(variable, query.variables)}"
            )
    unguarded = set(fd.dependent) - closure(fd.determinant, resolved)
    if unguarded:
        raise ConstraintError(
            f'functional dependency "{fd}": no atom of {query.name} has '
            f"{', '.join((*fd.determinant, *sorted(unguarded)))} together, "
            "so the dependent value cannot be looked up"
        )


def _constraint_sides(text: str, form: str) -> tuple[str, str]:
    left, arrow, right = text.partition("->")
    if not arrow or not right.strip() or "->" in right:
        raise ConstraintError(f'"{text}": {form}')
    return left, right


def _constraint_variables(text: str) -> tuple[str, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if any(not part for part in parts):
        raise ConstraintError(f'"{text.strip()}": a name is missing between the commas')
    return tuple(parts)


def _qualified_columns(text: str, form: str) -> tuple[str, tuple[str, ...]]:
    pairs = [name.rpartition(".") for name in _constraint_variables(text)]
    relations = {relation for relation, _, _ in pairs}
    if len(relations) != 1 or not all(relation and column for relation, _, column in pairs):
        raise ConstraintError(f'"{text.strip()}": {form}')
    return relations.pop(), tuple(column for _, _, column in pairs)


def _constraint_texts(values: Iterable[str], name: str) -> tuple[str, ...]:
    return listed_items(values, name, (str,), ConstraintError)


def listed_items(
    values: Iterable[T], name: str, kinds: tuple[type, ...], error: type[ViewkeepError]
) -> tuple[T, ...]:
    """The items of a user's list; an error if it is none, or has items of other kinds."""
    if isinstance(values, str):
        raise error(f'{name}="{values}": give a list, as in {name}=["{values}"]')
    if not isinstance(values, Iterable) or isinstance(values, bytes):
        raise error(f"{name}={values!r}: expected a list")
    items = tuple(values)
    for item in items:
        if not isinstance(item, kinds):
            raise error(f"{name}: {item!r} is not text")
    return items


def _constraint_union(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(first + second))
