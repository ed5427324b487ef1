"""Look-ups that a script makes more than once, as statements of their own.

A query joins a kept relation with a diff, and an Apply names the same rows of it:

    t := group(cache ⋈[pid] d);  APPLY d TO cache      becomes
    l := cache ⋉[pid] d;  t := group(l ⋈[pid] d);  APPLY d TO cache, whose rows are all in l

Files are then read once. The diff of the Apply may also be computed from the one that is joined:
its keys are among the others'.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from viewkeep.diffs.script import Apply, Compute, Materialized, Script, Statement
from viewkeep.execute.apply_rows import matched_ids
from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Values,
)
from viewkeep.query.evaluate.rows import equal_columns
from viewkeep.query.expressions import Call, Column, Expression
from viewkeep.query.traversal import inputs_of, rewrite_tree
from viewkeep.query.types.inference import find_field

Columns = tuple[str, ...]
Origin = tuple[str, Columns]
"""Columns of a diff."""
_KEY = "#looked up"


@dataclass(frozen=True)
class SharedLookUps:
    """A script, and by Apply the look-up that has all the rows that it targets."""

    script: Script
    sources: Mapping[Apply, str]


def share_look_ups(script: Script) -> SharedLookUps:
    """A script that looks rows up once, where keys of queries and changes are the same."""
    return _SharedLookUps(script).run()


@dataclass
class _SharedLookUps:
    script: Script
    queries: dict[str, Node] = field(default_factory=dict)
    names: dict[tuple[str, Columns, Origin], str] = field(default_factory=dict)
    sources: dict[Apply, str] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)

    def run(self) -> SharedLookUps:
        self.queries = {each.name: each.query for each in self.script.computes()}
        for each in self.script.computes():
            query = rewrite_tree(each.query, self._node_over_look_ups)
            self.statements.append(replace(each, query=query))
        self.statements += self.script.applies()
        return SharedLookUps(replace(self.script, statements=tuple(self.statements)), self.sources)

    def _node_over_look_ups(self, node: Node) -> Node:
        match node:
            case Join():
                left, right = (
                    self._side_over_look_up(node, True),
                    self._side_over_look_up(node, False),
                )
            case SemiJoin():
                left, right = (
                    self._side_over_look_up(node, True),
                    self._side_over_look_up(node, False),
                )
            case AntiJoin():  # left rows that meet nothing are wanted
                left, right = node.left, self._side_over_look_up(node, False)
            case _:
                return node
        same = left is node.left and right is node.right
        return node if same else replace(node, left=left, right=right)

    def _side_over_look_up(self, node: Join | SemiJoin | AntiJoin, is_left: bool) -> Node:
        """A side of a join, over the shared look-up if an Apply targets the same rows."""
        side, other = (node.left, node.right) if is_left else (node.right, node.left)
        leaf = _only_leaf(side)
        target = {each.name: each for each in self.script.materialized}.get(
            leaf.name if leaf else ""
        )
        if leaf is None or target is None:
            return side
        pairs = {}
        for first, second, _ in equal_columns(node):
            own, key = (first, second) if is_left else (second, first)
            stored = _column_of_leaf(side, own)
            if stored is not None:
                pairs[stored] = key
        name = self._shared_look_up(target, leaf, other, pairs)
        return side if name is None else _node_over_leaf(side, replace(leaf, name=name))

    def _shared_look_up(
        self, target: Materialized, leaf: Stored, other: Node, pairs: Mapping[str, str]
    ) -> str | None:
        for apply in self.script.applies():
            ids = matched_ids(target, apply.schema)
            if apply.target != target.name or not ids or not set(ids) <= pairs.keys():
                continue
            if any(find_field(each, leaf.schema).nullable for each in ids):
                continue  # a change takes NULL for a value of an ID
            origins = list(self._origins_of_node(other, tuple(pairs[each] for each in ids)))
            changed = tuple(apply.schema.value_after(each) for each in ids)
            for origin in self._origins_of_diff(apply.diff, changed):
                if origin in origins:
                    name = self._look_up_statement(leaf, ids, origin)
                    self.sources.setdefault(apply, name)
                    return name
        return None

    def _look_up_statement(self, leaf: Stored, ids: Columns, origin: Origin) -> str:
        """The look-up of these keys, made before the statement that reads it first."""
        look_up_key = (leaf.name, ids, origin)
        if look_up_key not in self.names:
            self.names[look_up_key] = name = f"{leaf.name} near {len(self.names)}"
            diff, columns = origin
            self.statements.append(
                Compute(name, _look_up_semijoin(leaf, ids, self._stored_diff(diff), columns))
            )
        return self.names[look_up_key]

    def _stored_diff(self, diff: str) -> Stored:
        return Stored(diff, self.queries[diff].schema)

    def _origins_of_diff(self, diff: str, columns: Columns) -> Iterator[Origin]:
        """A diff, and the diffs whose values in some columns include its own."""
        if diff in self.queries:
            yield diff, columns
            yield from self._origins_of_node(self.queries[diff], columns)

    def _origins_of_node(self, node: Node, columns: Columns) -> Iterator[Origin]:
        """Computed diffs that have all the values of some columns of a node, nearest first."""
        match node:
            case Stored():
                yield from self._origins_of_diff(node.name, columns)
            case Select() | Distinct():
                yield from self._origins_of_node(node.child, columns)
            case GroupBy():
                if set(columns) <= set(node.keys):
                    yield from self._origins_of_node(node.child, columns)
            case Project():
                own = _input_columns(node, columns)
                if own is not None:
                    yield from self._origins_of_node(node.child, own)
            case SemiJoin() | AntiJoin():
                yield from self._origins_of_node(node.left, columns)
            case Join():
                yield from self._origins_of_join(node, columns)
            case UnionAll():
                first, *rest = (
                    list(self._origins_of_node(each, columns)) for each in inputs_of(node)
                )
                yield from (each for each in first if all(each in others for others in rest))
            case Scan() | Values():
                return

    def _origins_of_join(self, node: Join, columns: Columns) -> Iterator[Origin]:
        pairs = [(first, second) for first, second, _ in equal_columns(node)]
        to_left, to_right = {b: a for a, b in pairs}, dict(pairs)
        for side, same in ((node.left, to_left), (node.right, to_right)):
            own = tuple(each if each in side.names else same.get(each, "") for each in columns)
            if all(own):
                yield from self._origins_of_node(side, own)


def _only_leaf(node: Node) -> Stored | None:
    """The relation whose rows a node selects and projects."""
    while isinstance(node, Select | Project):
        node = node.child
    return node if isinstance(node, Stored) else None


def _node_over_leaf(node: Node, leaf: Stored) -> Node:
    """The same selections and projections over another relation."""
    if isinstance(node, Select | Project):
        return replace(node, child=_node_over_leaf(node.child, leaf))
    return leaf


def _column_of_leaf(node: Node, column: str) -> str | None:
    """The column of the relation below selections and projections, if it is passed on."""
    while isinstance(node, Select | Project):
        if isinstance(node, Project):
            own = _input_columns(node, (column,))
            if own is None:
                return None
            column = own[0]
        node = node.child
    return column


def _input_columns(node: Project, columns: Columns) -> Columns | None:
    """The input's columns that a projection passes on under these names."""
    passed = {
        each.name: each.expression.name
        for each in node.outputs
        if isinstance(each.expression, Column)
    }
    if not set(columns) <= passed.keys():
        return None
    return tuple(passed[each] for each in columns)


def _look_up_semijoin(leaf: Stored, ids: Columns, diff: Stored, columns: Columns) -> Node:
    outputs = [Output(f"{own}{_KEY}", Column(key)) for own, key in zip(ids, columns, strict=True)]
    equal: list[Expression] = [Call("=", (Column(own), Column(f"{own}{_KEY}"))) for own in ids]
    condition = reduce(lambda a, b: Call("and", (a, b)), equal)
    return SemiJoin(leaf, Project(diff, tuple(outputs)), condition)
