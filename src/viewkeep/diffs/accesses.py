"""The cost of a query in the cost model of the paper (id_based_ivm, appendix A).

A query is taken as a diff-driven loop plan. It starts from its diffs, which cost nothing. A join
of rows that are there already (the outer ones) with a kept relation costs

    one index look-up per distinct value of the outer columns that it compares for equality,
    one access per tuple of the relation with such a value.

The rows joined so far then drive the next join. Without an equality to look up by, or without a
diff to start from, a kept relation is read as a whole: one access per tuple.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Leaf,
    Node,
    Output,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    rename_columns,
    substitute,
)
from viewkeep.query.traversal import inputs_of

Size = Callable[[Node], int]
"""The number of rows of a query."""


def count_accesses(query: Node, is_kept: Callable[[Leaf], bool], size: Size) -> int:
    """Index look-ups and tuple accesses of a query; a shared subtree is computed once."""
    return _AccessCounter(is_kept, size).full(query)


class _AccessCounter:
    def __init__(self, is_kept: Callable[[Leaf], bool], size: Size) -> None:
        self._is_kept = is_kept
        self._size = size
        self._visited: set[Node] = set()
        self._numbers = count(1)

    def full(self, node: Node) -> int:
        """The cost of all rows of a node."""
        if isinstance(node, Leaf):
            return self._size(node) if self._is_kept(node) else 0
        if node in self._visited:
            return 0
        self._visited.add(node)
        match node:
            case Join() | SemiJoin() | AntiJoin():
                return self._join_accesses(node)
        return sum(map(self.full, inputs_of(node)))

    def _join_accesses(self, node: Join | SemiJoin | AntiJoin) -> int:
        """The cost of a join that the side with diffs drives; an antijoin needs every left row."""
        left, right = self._starts_from_diffs(node.left), self._starts_from_diffs(node.right)
        if left and not right:
            return self.full(node.left) + self._probe_accesses(
                node.left, node.right, node.condition
            )
        if right and not left and not isinstance(node, AntiJoin):
            return self.full(node.right) + self._probe_accesses(
                node.right, node.left, node.condition
            )
        return self.full(node.left) + self.full(node.right)

    def _starts_from_diffs(self, node: Node) -> bool:
        """Whether diffs lead to the rows of a node, without reading a kept relation as a whole."""
        match node:
            case Scan() | Stored():
                return not self._is_kept(node)
            case Join() | SemiJoin():
                return self._starts_from_diffs(node.left) or self._starts_from_diffs(node.right)
            case AntiJoin():
                return self._starts_from_diffs(node.left)
        return all(map(self._starts_from_diffs, inputs_of(node)))

    def _probe_accesses(self, outer: Node, inner: Node, condition: Expression) -> int:
        """The cost of the inner tuples that the outer rows look up."""
        if self._starts_from_diffs(inner):
            return self.full(inner)
        outer, condition = self._outer_columns(outer, condition)
        match inner:
            case Values():
                return 0
            case Scan() | Stored():
                return self._look_up_accesses(outer, inner, condition)
            case Select() | Distinct():
                return self._probe_accesses(outer, inner.child, condition)
            case Project():
                values = {output.name: output.expression for output in inner.outputs}
                inside = substitute(condition, lambda c: values.get(c.name, c))
                return self._probe_accesses(outer, inner.child, inside)
            case GroupBy():
                keys = _conditions_on(condition, {*outer.names, *inner.keys})
                return self._probe_accesses(outer, inner.child, keys)
            case Window():
                keys = _conditions_on(condition, {*outer.names, *inner.partition_by})
                return self._probe_accesses(outer, inner.child, keys)
            case Unnest():
                keys = _conditions_on(condition, {*outer.names, *inner.child.names})
                return self._probe_accesses(outer, inner.child, keys)
            case UnionAll():
                return sum(self._probe_accesses(outer, each, condition) for each in inner.inputs)
            case Join() | SemiJoin() | AntiJoin():
                return self._chain_accesses(outer, inner, condition)

    def _chain_accesses(
        self, outer: Node, inner: Join | SemiJoin | AntiJoin, condition: Expression
    ) -> int:
        """The cost of a join on the inner side: first the input that outer rows find by equality,
        then the other."""
        sides: Sequence[Node] = (inner.left, inner.right)
        if isinstance(inner, Join) and not _equalities_with_outer(outer, inner.left, condition):
            sides = (inner.right, inner.left)
        first, second = sides
        on_first = _conditions_on(condition, {*outer.names, *first.names})
        rest = conjunction(p for p in conjuncts(condition) if p not in conjuncts(on_first))
        so_far = Join(outer, first, on_first)
        then = conjunction((rest, inner.condition))
        return self._probe_accesses(outer, first, on_first) + self._probe_accesses(
            so_far, second, then
        )

    def _look_up_accesses(self, outer: Node, leaf: Leaf, condition: Expression) -> int:
        by_key = conjunction(_equalities_with_outer(outer, leaf, condition))
        used = [name for name in outer.names if name in columns_of(by_key)]
        if not used:
            return self.full(leaf)
        keys = Distinct(Project(outer, tuple(Output(name, Column(name)) for name in used)))
        return self._size(keys) + self._size(Join(keys, leaf, by_key))

    def _outer_columns(self, outer: Node, condition: Expression) -> tuple[Node, Expression]:
        """The outer columns that the condition reads, under names that no inner column has."""
        number = next(self._numbers)
        used = [name for name in outer.names if name in columns_of(condition)] or outer.names[:1]
        names = {name: f"outer#{number}#{name}" for name in used}
        outputs = tuple(Output(new, Column(old)) for old, new in names.items())
        return Project(outer, outputs), rename_columns(condition, lambda c: names.get(c, c))


def _equalities_with_outer(outer: Node, inner: Node, condition: Expression) -> list[Expression]:
    """The parts of a condition that compare an inner column with an outer value."""

    def looks_up(inside: Expression, outside: Expression) -> bool:
        columns = columns_of(outside)
        indexed = isinstance(inside, Column) and inside.name in inner.names
        return indexed and bool(columns) and columns <= set(outer.names)

    return [
        part
        for part in conjuncts(condition)
        if isinstance(part, Call)
        and part.function in ("=", "<=>")
        and (looks_up(*part.arguments) or looks_up(*reversed(part.arguments)))
    ]


def _conditions_on(condition: Expression, names: Iterable[str]) -> Expression:
    """The parts of a condition that read only these columns."""
    own = set(names)
    return conjunction(part for part in conjuncts(condition) if columns_of(part) <= own)
