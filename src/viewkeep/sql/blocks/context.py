"""What the translation of a query may look up: tables, common tables, fresh names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql.blocks.scope import Scalar, Scope
from viewkeep.sql.expressions.translator import Attachments
from viewkeep.sql.source import Source


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A query of a WITH clause, and the context it was written in."""

    query: exp.Expr
    columns: tuple[str, ...]
    context: "Context"


@dataclass(slots=True)
class FreshNames:
    """Gives every table of FROM a name of its own, so that no two columns of a tree clash."""

    used: set[str] = field(default_factory=set)

    def take(self, name: str) -> str:
        """The name itself the first time, then name_2, name_3, ..."""
        fresh, count = name, 1
        while fresh.lower() in self.used:
            count += 1
            fresh = f"{name}_{count}"
        self.used.add(fresh.lower())
        return fresh


@dataclass(slots=True)
class Places:
    """Positions in the text of the keywords that operators of the tree were written with."""

    starts: dict[Node, int] = field(default_factory=dict)

    def put(self, node: Node, start: int) -> Node:
        """Note the place of an operator, unless it has one."""
        self.starts.setdefault(node, start)
        return node

    def move(self, old: Node, new: Node) -> Node:
        """An operator in place of another one."""
        return self.put(new, self.starts[old]) if old in self.starts else new


@dataclass(slots=True)
class WrittenNames:
    """The names of output columns where two are alike: the tree tells them apart by numbers, but
    who reads the query as a table cannot, and names neither, unless one repeats the other."""

    names: dict[Node, tuple[str, ...]] = field(default_factory=dict)
    repeats: dict[Node, Mapping[int, int]] = field(default_factory=dict)

    def put(self, node: Node, names: Sequence[str], repeats: Mapping[int, int]) -> Node:
        """Note how the columns of a query are called in its text, unless that is known, and which
        of them stand in it for a second time."""
        if tuple(names) != node.names:
            self.names.setdefault(node, tuple(names))
            self.repeats.setdefault(node, repeats)
        return node

    def move(self, old: Node, new: Node) -> Node:
        """A query whose columns are called as those of another one."""
        return self.put(new, self.get(old), self.repeated(old))

    def get(self, node: Node) -> tuple[str, ...]:
        """How the columns of a query are called in its text."""
        return self.names.get(node, node.names)

    def repeated(self, node: Node) -> Mapping[int, int]:
        """The places of columns that stand in a query for a second time, and of the first."""
        return self.repeats.get(node, {})


NamedScalars = tuple[tuple[str, Scalar], ...]
"""The columns of a subquery, told by name."""


@dataclass(frozen=True, slots=True)
class LateralRows:
    """Rows joined with those of a LATERAL subquery, and the columns of the subquery."""

    node: Node
    columns: NamedScalars


@dataclass(frozen=True, slots=True)
class LateralJoin:
    """How rows are joined with a LATERAL subquery: with `outer`, those without any of its rows
    stay; `on` is the condition of an outer join, given the columns of the subquery."""

    outer: bool
    on: Callable[[NamedScalars], Scalar] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Everything around a query; `translate` is the translation itself, for nested queries."""

    source: Source
    tables: Mapping[str, Table]
    translate: Callable[[exp.Expr, "Context"], Node]
    names: FreshNames = field(default_factory=FreshNames)
    common: Mapping[str, CommonTable] = field(default_factory=dict)
    undefined: Mapping[str, exp.Expr] = field(default_factory=dict)
    outer: Scope | None = None
    places: Places = field(default_factory=Places)
    written: WrittenNames = field(default_factory=WrittenNames)
    attach: Callable[["Context", Node, Mapping[str, Scalar] | None], Attachments] | None = None
    lateral: "Callable[[exp.Expr, Node, Context, LateralJoin], LateralRows] | None" = None
    has_clock: bool = False
    """Whether there is a clock that the query may read."""

    def attachments(self, rows: Node, keys: Mapping[str, Scalar] | None = None) -> Attachments:
        """The collector of subqueries in expressions over rows, or over groups of them by keys."""
        assert self.attach is not None, "given by the translation"
        return self.attach(self, rows, keys)

    def lateral_rows(
        self, query: exp.Expr, left: Node, scope: Scope, kind: LateralJoin
    ) -> LateralRows:
        """Join rows, whose names are in a scope, with a LATERAL subquery that may read them."""
        assert self.lateral is not None, "given by the translation"
        return self.lateral(query, left, replace(self, outer=scope), kind)

    def placed(self, node: Node, part: exp.Expr, *keywords: TokenType) -> Node:
        """The operator, written with the last of some keywords at or before a part of the text."""
        return self.places.put(node, self.source.keyword(part, keywords))

    def aside(self) -> "Context":
        """A context with fresh names of its own, for a query that is translated only to learn its
        columns."""
        return replace(self, names=FreshNames(), places=Places(), written=WrittenNames())

    def nested(self, query: exp.Expr) -> Node:
        """A query inside this one, translated."""
        return self.translate(query, self)


def with_common_tables(query: exp.Expr, context: Context) -> Context:
    """The context extended with the WITH clause of a query; each sees only the ones before it."""
    clause = query.args.get("with_")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        raise context.source.unsupported("a recursive common table expression", clause)
    pending = {cte.alias.lower(): cte.this for cte in clause.expressions}
    for cte in clause.expressions:
        name = cte.alias.lower()
        columns = tuple(column.name for column in cte.args["alias"].columns)
        # A name defined here is no longer the one around it until its definition is complete.
        visible = {k: v for k, v in context.common.items() if k not in pending}
        inside = replace(context, common=visible, undefined={**context.undefined, **pending})
        if name not in pending:
            raise context.source.error(f'two common tables are called "{cte.alias}"', cte)
        del pending[name]
        # Whether or not anything reads it, it must be a query; the names it takes are its own.
        inside.aside().nested(cte.this)
        common = {**context.common, name: CommonTable(cte.this, columns, inside)}
        context = replace(context, common=common)
    return context


def cycle_problem(name: str, context: Context) -> str:
    """Why a common table cannot be used where it is not defined yet."""
    path = _common_table_cycle(name, name, context.undefined, ())
    if path:
        return f"cyclic common table expression: {' -> '.join((name, *path))}"
    return f'common table "{name}" is used before it is defined'


def _common_table_cycle(
    start: str, goal: str, queries: Mapping[str, exp.Expr], visited: tuple[str, ...]
) -> tuple[str, ...]:
    """The common tables on the way from one back to the goal, if they form a cycle."""
    for table in queries[start].find_all(exp.Table):
        name = table.name.lower()
        if name == goal:
            return (goal,)
        if name in queries and name not in visited:
            rest = _common_table_cycle(name, goal, queries, (*visited, name))
            if rest:
                return (name, *rest)
    return ()
