"""Queries over rows in memory that ask for no more of a large relation than they need.

A side of a join whose rows are known names keys of the other side, and the keys go down to its
relations:

    rows(d ⋈[pid] uses, -)  =  rows(d, -) ⋈ rows(uses, the pids of d)

With keys, the rows of a node that have one of them are exact; there may be others, which whoever
has named the keys drops. A query that would read a large relation without keys is not computed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Leaf,
    Node,
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
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import (
    Paired,
    Rows,
    constant_rows,
    distinct,
    group,
    key_of,
    looked_up_columns,
    meetings,
    project,
    select,
    unnest,
)
from viewkeep.query.evaluate.windows import window
from viewkeep.query.expressions import Column
from viewkeep.query.traversal import children
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import find_field

Columns = frozenset[str]
_NONE: Columns = frozenset()


class UnboundedError(Exception):
    """A query reads a large relation without keys."""


class TooManyRowsError(Exception):
    """A query has more rows than are worth an evaluation row by row."""


@dataclass(frozen=True)
class KeyValues:
    """Values of some columns."""

    columns: tuple[Field, ...]
    values: frozenset[Row]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(each.name for each in self.columns)

    def passed(self, names: Mapping[str, str]) -> "KeyValues | None":
        """The values of those columns that have another name below; None, if none has."""
        places = [place for place, each in enumerate(self.names) if each in names]
        if not places:
            return None
        columns = tuple(replace(self.columns[i], name=names[self.columns[i].name]) for i in places)
        if len(places) == len(self.columns):
            return KeyValues(columns, self.values)
        values = frozenset(tuple([value[i] for i in places]) for value in self.values)
        return KeyValues(columns, values)


class Leaves(Protocol):
    """The relations of a query."""

    def is_large(self, leaf: Leaf) -> bool:
        """Whether its rows are looked up by keys."""

    def whole(self, leaf: Leaf) -> Rows:
        """All rows."""

    def near(self, leaf: Leaf, keys: KeyValues) -> Rows:
        """The rows that have one of the keys."""


@dataclass
class Evaluation:
    """Queries over the same relations; `most` bounds the rows of a join."""

    leaves: Leaves
    most: int
    _rows: dict[int, Rows] = field(default_factory=dict)
    _large: dict[int, bool] = field(default_factory=dict)
    _bounded: dict[tuple[int, Columns], bool] = field(default_factory=dict)

    def rows(self, node: Node, keys: KeyValues | None = None) -> Rows:
        """The rows of a node; with keys, at least those that have one of them."""
        match node:
            case Scan() | Stored():
                return self._leaf(node, keys)
            case Values():
                return constant_rows(node)
        if keys is not None:
            return self._computed(node, keys)
        if id(node) not in self._rows:
            self._rows[id(node)] = self._computed(node, None)
        return self._rows[id(node)]

    def _computed(self, node: Node, keys: KeyValues | None) -> Rows:
        if isinstance(node, Join | SemiJoin | AntiJoin):
            return self._joined(node, keys)
        inputs = [
            self.rows(child, keys and keys.passed(names)) for child, names in _passed_down(node)
        ]
        match node:
            case UnionAll():
                return [row for each in inputs for row in each]
            case Select():
                return select(node, inputs[0])
            case Project():
                return project(node, inputs[0])
            case Distinct():
                return distinct(node, inputs[0])
            case GroupBy():
                return group(node, inputs[0])
            case Unnest():
                return unnest(node, inputs[0])
            case Window():
                return window(node, inputs[0])
        raise AssertionError(node)

    def _leaf(self, leaf: Leaf, keys: KeyValues | None) -> Rows:
        if not self.leaves.is_large(leaf):
            return self.leaves.whole(leaf)
        if keys is None:
            raise UnboundedError(f"all of {leaf.name} is read")
        return self.leaves.near(leaf, keys)

    # --- joins ------------------------------------------------------------------------------------

    def _joined(self, node: Paired, keys: KeyValues | None) -> Rows:
        order = self._order(node, frozenset(keys.names) if keys else _NONE)
        if order is None:
            raise UnboundedError("no side of a join has few rows")
        left_first, with_keys = order
        first, second = (node.left, node.right) if left_first else (node.right, node.left)
        own = keys.passed({name: name for name in first.names}) if keys and with_keys else None
        first_rows = self.rows(first, own)
        if not first_rows and (left_first or not isinstance(node, AntiJoin)):
            return []
        second_keys = self._keys(node, left_first, first_rows) if self._is_large(second) else None
        second_rows = self.rows(second, second_keys)
        left, right = (first_rows, second_rows) if left_first else (second_rows, first_rows)
        met = meetings(node, left, right)
        match node:
            case Join():
                return self._few(own + other for own, others in met for other in others)
            case SemiJoin():
                return [own for own, others in met if others]
            case AntiJoin():
                return [own for own, others in met if not others]

    def _few(self, rows: Iterator[Row]) -> Rows:
        result = []
        for row in rows:
            result.append(row)
            if len(result) > self.most:
                raise TooManyRowsError
        return result

    def _keys(self, node: Paired, left_first: bool, rows: Rows) -> KeyValues | None:
        """What the other side of a join is looked up by."""
        pairs = looked_up_columns(node)
        if not pairs:
            return None
        first = node.left if left_first else node.right
        own, others = zip(*((a, b) if left_first else (b, a) for a, b, _ in pairs), strict=True)
        strict = [place for place, pair in enumerate(pairs) if not pair[2]]
        values = frozenset(map(key_of(own, first.schema), rows))
        values = frozenset(v for v in values if all(v[i] is not None for i in strict))
        columns = tuple(
            Field(other, find_field(name, first.schema).type)
            for name, other in zip(own, others, strict=True)
        )
        return KeyValues(columns, values)

    def _order(self, node: Paired, columns: Columns) -> tuple[bool, bool] | None:
        """Whether the left side comes first, and whether it is asked for by the keys that are
        there; None where neither side can come first."""
        pairs = looked_up_columns(node)
        sides = [
            (True, node.left, node.right, frozenset(pair[1] for pair in pairs)),
            (False, node.right, node.left, frozenset(pair[0] for pair in pairs)),
        ]
        if isinstance(node, AntiJoin):
            sides = sides[:1]
        for with_keys in (True, False):
            for left_first, first, second, looked_up in sides:
                own = columns & frozenset(first.names) if with_keys else _NONE
                if with_keys and not own:
                    continue
                if self._is_bounded(first, own) and self._is_bounded(second, looked_up):
                    return left_first, with_keys
        return None

    # --- what can be computed ---------------------------------------------------------------------

    def _is_bounded(self, node: Node, columns: Columns) -> bool:
        """Whether keys of these columns reach all large relations of a node."""
        if not self._is_large(node):
            return True
        key = id(node), columns
        if key not in self._bounded:
            self._bounded[key] = self._finds_keys(node, columns)
        return self._bounded[key]

    def _finds_keys(self, node: Node, columns: Columns) -> bool:
        match node:
            case Scan() | Stored():
                return bool(columns)
            case Join() | SemiJoin() | AntiJoin():
                return self._order(node, columns) is not None
        return all(
            self._is_bounded(child, frozenset(names[each] for each in columns if each in names))
            for child, names in _passed_down(node)
        )

    def _is_large(self, node: Node) -> bool:
        known = self._large.get(id(node))
        if known is None:
            if isinstance(node, Leaf):
                known = self.leaves.is_large(node)
            else:
                known = any(map(self._is_large, children(node)))
            self._large[id(node)] = known
        return known


def _passed_down(node: Node) -> list[tuple[Node, Mapping[str, str]]]:
    """The inputs of an operator, and which of its columns are columns of theirs: rows that differ
    in these are computed without each other."""
    match node:
        case UnionAll():
            return [
                (each, dict(zip(node.names, each.names, strict=True))) for each in children(node)
            ]
        case Project():
            plain = {
                each.name: each.expression.name
                for each in node.outputs
                if isinstance(each.expression, Column)
            }
            return [(node.child, plain)]
        case GroupBy():
            return [(node.child, {name: name for name in node.keys})]
        case Window():
            return [(node.child, {name: name for name in node.partition_by})]
    [child] = children(node)
    return [(child, {name: name for name in child.names})]
