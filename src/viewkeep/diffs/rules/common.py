"""What all rules share: the diffs of an operator's inputs in, diffs of its output out."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from viewkeep.diffs.model import DELETE, INSERT, SIGNS, UPDATE, DiffSchema, post, pre
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.rules.build import (
    antijoin,
    differ,
    join_on,
    keep,
    project,
    rename_expression,
    select,
    semijoin,
)
from viewkeep.query.algebra import Node, Stored
from viewkeep.query.expressions import Column, Expression
from viewkeep.query.types.inference import Schema

PRE, POST, NEW, AFTER = "pre", "post", "new", "after"
"""States of rows: before and after the changes; NEW are those after, computed from the inputs, and
AFTER some rows before the changes as they are after them."""


@dataclass(frozen=True)
class Change:
    """A diff of an operator's output: a query over earlier changes and over subviews.

    `exact`: every row stands for just one row that is there (or comes), so that nothing has to be
    looked up to know it. `sources` are the scans whose changes it comes from, told apart by the way
    where one operator is used in several places: changes of one source name different rows.
    """

    name: str
    operator: int
    rule: str
    schema: DiffSchema
    query: Node
    sources: frozenset[int]
    exact: bool = False

    @property
    def leaf(self) -> Stored:
        """The change as others read it."""
        return Stored(self.name, self.query.schema)

    def before(self, expression: Expression) -> Expression:
        """An expression over the values before the change."""
        names = {c: pre(c) for c in self.schema.before}
        return rename_expression(expression, names)

    def after(self, expression: Expression) -> Expression:
        """An expression over the values after the change."""
        names = {c: post(c) for c in self.schema.after}
        return rename_expression(expression, names)


@dataclass(frozen=True)
class Helper:
    """A relation that several changes are computed from."""

    name: str
    operator: int
    rule: str
    query: Node

    @property
    def leaf(self) -> Stored:
        """The relation as others read it."""
        return Stored(self.name, self.query.schema)


Piece = Change | Helper


@dataclass
class Operator:
    """An operator of the plan while its rules are instantiated; `pieces` is what they made."""

    number: int
    node: Node
    plan: IdPlan
    tuple_based: bool = False
    cached_nodes: Collection[Node] = ()
    """The operators whose rows are kept in a cache."""

    labels: Callable[[int], int] | None = None
    """How the changes' sources are called from here on, if the input is used elsewhere as well."""

    pieces: list[Piece] = field(default_factory=list)

    @property
    def ids(self) -> tuple[str, ...]:
        """The IDs of its rows."""
        return self.plan.ids[self.node]

    @property
    def attributes(self) -> tuple[str, ...]:
        """Its other columns."""
        return self.plan.attributes(self.node)

    def input(self, child: Node, state: str) -> Stored:
        """The rows of an input before or after the changes; how they are found comes later."""
        return subview(self.plan.nodes.index(child), state, child.schema)

    def after_changes(self, child: Node, rows: Stored) -> Stored:
        """Some rows of an input before the changes, as they are after them, with all inserts."""
        return subview(self.plan.nodes.index(child), AFTER, rows.schema, rows.name)

    def output(self, state: str) -> Stored:
        """Its own rows before the changes, or computed anew."""
        return subview(self.number, state, self.node.schema)

    def emit(
        self,
        rule: str,
        schema: DiffSchema,
        query: Node,
        sources: Iterable[int],
        exact: bool = False,
    ) -> Change:
        """A change of the output."""
        rows = keep(query, schema.columns)
        name = f"d{SIGNS[schema.kind]}#{self.number}.{len(self.pieces) + 1}"
        own = frozenset(sources if self.labels is None else map(self.labels, sources))
        change = Change(name, self.number, rule, schema, rows, own, exact)
        self.pieces.append(change)
        return change

    def helper(self, rule: str, query: Node) -> Helper:
        """A relation that is computed once and read by name."""
        piece = Helper(f"t#{self.number}.{len(self.pieces) + 1}", self.number, rule, query)
        self.pieces.append(piece)
        return piece


@dataclass(frozen=True, eq=False)
class Subview(Stored):
    """The rows of an operator of the plan in one state, which pass 3 spells out.

    `rows` names the relation of those that are meant, if not all.
    """

    operator: int
    state: str
    rows: str = ""


def subview(number: int, state: str, columns: Schema, rows: str = "") -> Subview:
    """The rows of an operator in one state, under a name of their own."""
    return Subview(f"#{number}@{state} {rows}".rstrip(), columns, number, state, rows)


class Rules(Protocol):
    """The rules of one kind of operator: all changes of its inputs, child by child."""

    def __call__(self, operator: Operator, inputs: Sequence[Sequence[Change]]) -> None: ...


# --- building blocks ------------------------------------------------------------------------------


def insert_rows(change: Change, names: Sequence[str]) -> Node:
    """The rows of an insert under the names of the relation."""
    values = {name: Column(change.schema.value_after(name)) for name in names}
    return project(change.leaf, values)


def as_insert(node: Node, ids: Sequence[str], attributes: Sequence[str]) -> tuple[DiffSchema, Node]:
    """Whole rows as an insert."""
    schema = DiffSchema(INSERT, tuple(ids), (), tuple(attributes), tuple(attributes))
    values = {c: Column(c) for c in ids} | {post(c): Column(c) for c in attributes}
    return schema, project(node, values)


def as_delete(node: Node, ids: Sequence[str], attributes: Sequence[str]) -> tuple[DiffSchema, Node]:
    """Whole rows as a delete that knows them."""
    schema = DiffSchema(DELETE, tuple(ids), tuple(attributes))
    values = {c: Column(c) for c in ids} | {pre(c): Column(c) for c in attributes}
    return schema, project(node, values)


def compare_states(
    operator: Operator, rule: str, before: Node, after: Node, sources: Iterable[int]
) -> None:
    """The exact changes between two states of some rows: came, went, and became different."""
    ids, attributes = operator.ids, operator.attributes
    operator.emit(rule, *as_delete(antijoin(before, after, ids), ids, attributes), sources, True)
    if attributes:
        old = project(before, {c: Column(c) for c in ids} | {pre(c): Column(c) for c in attributes})
        new = project(after, {c: Column(c) for c in ids} | {post(c): Column(c) for c in attributes})
        matches = join_on(old, new, ids)
        both = select(matches, differ([(pre(c), post(c)) for c in attributes], matches.schema))
        schema = DiffSchema(UPDATE, ids, attributes, attributes, attributes)
        operator.emit(rule, schema, both, sources, True)
    operator.emit(rule, *as_insert(antijoin(after, before, ids), ids, attributes), sources, True)


def recompute(
    operator: Operator, rule: str, keys: Node, columns: Sequence[str], sources: Iterable[int]
) -> None:
    """The exact changes of the output rows with these values in some of their IDs."""
    before = operator.helper(rule, semijoin(operator.output(PRE), keys, columns))
    after = operator.helper(rule, semijoin(operator.output(NEW), keys, columns))
    compare_states(operator, rule, before.leaf, after.leaf, sources)


def pass_on(operator: Operator, change: Change, rule: str = "pass", exact: bool = False) -> None:
    """The change as it is: it names the same rows of the output."""
    operator.emit(rule, change.schema, change.leaf, change.sources, exact and change.exact)
