"""Queries over rows in memory that ask for no more of a large relation than they need.

A side of a join whose rows are known names keys of the other side, and the keys go down to its
relations:

    rows(d ⋈[pid] uses, -)  =  rows(d, -) ⋈ rows(uses, the pids of d)

With keys, the rows of a node that have one of them are exact; there may be others, which whoever
has named the keys drops. A node that reaches its large relations without keys needs none. A query
that would read a large relation as a whole is not computed.

Rows may come later (`MissingError`): then all that a query is known to look up is looked up before
it is given up, so that few rounds bring everything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from viewkeep.errors import QueryError
from viewkeep.execute.budget import check_time
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
from viewkeep.query.evaluate.exact import InexactError
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import (
    Paired,
    Rows,
    aggregate_rows,
    constant_rows,
    distinct_rows,
    key_of,
    looked_up_columns,
    meetings,
    project_rows,
    select_rows,
    unnest,
)
from viewkeep.query.evaluate.windows import window
from viewkeep.query.expressions import Column
from viewkeep.query.traversal import inputs_of
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import find_field

Columns = frozenset[str]
_NONE: Columns = frozenset()
MOST_PAIRS = 500_000
"""The most pairs of rows that a condition without an equality is tried on."""
CHECKED_ROWS = 10_000
"""So many rows of a join are made between two looks at the clock."""


class MissingError(Exception):
    """Rows that come later."""


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
        columns = tuple(replace(each, name=names.get(each.name, "")) for each in self.columns)
        return KeyValues(columns, self.values).at(places)

    def at(self, places: Sequence[int]) -> "KeyValues":
        """The values of columns at some places; of several that have one name, of the first."""
        first: dict[str, int] = {}
        for place in places:
            first.setdefault(self.columns[place].name, place)
        if len(first) == len(self.columns):
            return self
        columns = tuple(self.columns[i] for i in first.values())
        values = frozenset(tuple([value[i] for i in first.values()]) for value in self.values)
        return KeyValues(columns, values)


class Leaves(Protocol):
    """The relations of a query."""

    def is_large(self, leaf: Leaf) -> bool:
        """Whether its rows are looked up by keys."""

    def whole(self, leaf: Leaf) -> Rows:
        """All rows."""

    def near(self, leaf: Leaf, keys: KeyValues) -> Rows:
        """The rows that have one of the keys."""


def no_substitute(node: Node, inputs: Sequence[Rows], error: Exception) -> Rows:
    """Refuse an operator that Python does not compute exactly."""
    raise error


def never_whole(leaf: Leaf) -> bool:
    """Large relations are never read as a whole."""
    return False


def no_keys_ahead(first: Node, second: Node, columns: Sequence[str]) -> Set[Row] | None:
    """Keys of rows that are missing are not known."""
    return None


@dataclass
class NearRowsEvaluation:
    """Queries over the same relations.

    `most` bounds the rows of a join. `substitute` computes an operator over its inputs where Python
    would not do so exactly. `is_readable` says which large relations may be read as a whole where
    no keys reach them. `keys_ahead` gives a superset of the values of some columns of one side of a
    join whose rows are missing, to look up the other side by; None if they are not known.
    """

    leaves: Leaves
    most: int
    substitute: Callable[[Node, Sequence[Rows], Exception], Rows] = no_substitute
    is_readable: Callable[[Leaf], bool] = never_whole
    keys_ahead: Callable[[Node, Node, Sequence[str]], Set[Row] | None] = no_keys_ahead
    _rows: dict[int, Rows] = field(default_factory=dict)
    _large: dict[int, bool] = field(default_factory=dict)
    _bounded: dict[tuple[int, Columns, bool], bool] = field(default_factory=dict)

    def rows(self, node: Node, keys: KeyValues | None = None) -> Rows:
        """The rows of a node; with keys, at least those that have one of them."""
        match node:
            case Scan() | Stored():
                return self._rows_of_leaf(node, keys)
            case Values():
                return self._rows_of_operator(node, ())
        if keys is not None and not self._is_bounded_by_keys(node, _NONE):
            return self._rows_of_node(node, keys)
        if id(node) not in self._rows:
            check_time()
            self._rows[id(node)] = self._rows_of_node(node, None)
        return self._rows[id(node)]

    def _rows_of_node(self, node: Node, keys: KeyValues | None) -> Rows:
        if isinstance(node, Join | SemiJoin | AntiJoin):
            return self._rows_of_join(node, keys)
        inputs, missing = [], None
        for child, names in _columns_passed_down(node):
            try:
                inputs.append(self.rows(child, keys and keys.passed(names)))
            except MissingError as error:
                missing = error
        if missing is not None:
            raise missing
        return self._rows_of_operator(node, inputs)

    def _rows_of_operator(self, node: Node, inputs: Sequence[Rows]) -> Rows:
        try:
            match node:
                case Join() | SemiJoin() | AntiJoin():
                    return self._paired_rows(node, *inputs)
            return _operator_rows(node, inputs)
        except (InexactError, QueryError) as error:
            return self.substitute(node, inputs, error)

    def _rows_of_leaf(self, leaf: Leaf, keys: KeyValues | None) -> Rows:
        if not self.leaves.is_large(leaf):
            return self.leaves.whole(leaf)
        if keys is not None:
            return self.leaves.near(leaf, keys)
        if not self.is_readable(leaf):
            raise UnboundedError(f"all of {leaf.name} is read")
        return self.leaves.whole(leaf)

    # --- joins ------------------------------------------------------------------------------------

    def _rows_of_join(self, node: Paired, keys: KeyValues | None) -> Rows:
        columns = frozenset(keys.names) if keys else _NONE
        order = self._join_order(node, columns, False) or self._join_order(node, columns, True)
        if order is None:
            raise UnboundedError("no side of a join has few rows")
        left_first, with_keys = order
        first, second = (node.left, node.right) if left_first else (node.right, node.left)
        own = keys.passed({name: name for name in first.names}) if keys and with_keys else None
        try:
            first_rows = self.rows(first, own)
        except MissingError:
            self._look_up_ahead(node, left_first)
            raise
        if not first_rows and (left_first or not isinstance(node, AntiJoin)):
            return []
        second_keys = (
            self._keys_of_other_side(node, left_first, first_rows)
            if self._has_large_leaf(second)
            else None
        )
        second_rows = self.rows(second, second_keys)
        left, right = (first_rows, second_rows) if left_first else (second_rows, first_rows)
        return self._rows_of_operator(node, (left, right))

    def _paired_rows(self, node: Paired, left: Rows, right: Rows) -> Rows:
        if len(left) * len(right) > MOST_PAIRS and not looked_up_columns(node):
            raise TooManyRowsError
        matches = meetings(node, left, right)
        match node:
            case Join():
                return self._few_enough_rows(
                    own + other for own, others in matches for other in others
                )
            case SemiJoin():
                return [own for own, others in matches if others]
            case AntiJoin():
                return [own for own, others in matches if not others]

    def _few_enough_rows(self, rows: Iterator[Row]) -> Rows:
        result = []
        for row in rows:
            result.append(row)
            if len(result) > self.most:
                raise TooManyRowsError
            if not len(result) % CHECKED_ROWS:
                check_time()
        return result

    def _look_up_ahead(self, node: Paired, left_first: bool) -> None:
        """Look up what the second side of a join is sure to need while the first is missing."""
        first, second = (node.left, node.right) if left_first else (node.right, node.left)
        with suppress(MissingError, UnboundedError, TooManyRowsError):
            if self._is_bounded_by_keys(second, _NONE):
                self.rows(second)
                return
            own, _ = _equal_columns_of_sides(node, left_first)
            values = self.keys_ahead(first, second, own) if own else None
            if values:
                self.rows(second, _keys_of_side(node, left_first, values))

    def _keys_of_other_side(self, node: Paired, left_first: bool, rows: Rows) -> KeyValues | None:
        """What the other side of a join is looked up by."""
        own, _ = _equal_columns_of_sides(node, left_first)
        if not own:
            return None
        first = node.left if left_first else node.right
        return _keys_of_side(node, left_first, frozenset(map(key_of(own, first.schema), rows)))

    def _join_order(self, node: Paired, columns: Columns, whole: bool) -> tuple[bool, bool] | None:
        """Whether the left side comes first, and whether it is looked up by the keys that are
        there; None where neither side can come first. With `whole`, relations that keys do not
        reach may be read as a whole."""
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
                if self._is_bounded_by_keys(first, own, whole) and self._is_bounded_by_keys(
                    second, looked_up, whole
                ):
                    return left_first, with_keys
        return None

    # --- what can be computed ---------------------------------------------------------------------

    def _is_bounded_by_keys(self, node: Node, columns: Columns, whole: bool = False) -> bool:
        """Whether keys of these columns reach all large relations of a node; with `whole`, or
        these may be read as a whole."""
        if not self._has_large_leaf(node):
            return True
        key = id(node), columns, whole
        if key not in self._bounded:
            self._bounded[key] = self._join_is_bounded(node, columns, whole)
        return self._bounded[key]

    def _join_is_bounded(self, node: Node, columns: Columns, whole: bool) -> bool:
        match node:
            case Scan() | Stored():
                return bool(columns) or (whole and self.is_readable(node))
            case Join() | SemiJoin() | AntiJoin():
                return self._join_order(node, columns, whole) is not None
        return all(
            self._is_bounded_by_keys(
                child, frozenset(names[each] for each in columns if each in names), whole
            )
            for child, names in _columns_passed_down(node)
        )

    def _has_large_leaf(self, node: Node) -> bool:
        is_large = self._large.get(id(node))
        if is_large is None:
            if isinstance(node, Leaf):
                is_large = self.leaves.is_large(node)
            else:
                is_large = any(map(self._has_large_leaf, inputs_of(node)))
            self._large[id(node)] = is_large
        return is_large


def _operator_rows(node: Node, inputs: Sequence[Rows]) -> Rows:
    """The rows of an operator but a join over those of its inputs."""
    match node:
        case Values():
            return constant_rows(node)
        case UnionAll():
            return [row for each in inputs for row in each]
        case Select():
            return select_rows(node, inputs[0])
        case Project():
            return project_rows(node, inputs[0])
        case Distinct():
            return distinct_rows(node, inputs[0])
        case GroupBy():
            return aggregate_rows(node, inputs[0])
        case Unnest():
            return unnest(node, inputs[0])
        case Window():
            return window(node, inputs[0])
    raise AssertionError(node)


def _equal_columns_of_sides(
    node: Paired, left_first: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the first side of a join that equal columns of the second, and these."""
    pairs = looked_up_columns(node)
    left, right = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    return (left, right) if left_first else (right, left)


def _keys_of_side(node: Paired, left_first: bool, values: Set[Row]) -> KeyValues:
    """Values of the first side of a join as keys of the second; NULL is one only where it is equal
    to NULL."""
    first = node.left if left_first else node.right
    own, others = _equal_columns_of_sides(node, left_first)
    strict = [place for place, pair in enumerate(looked_up_columns(node)) if not pair[2]]
    columns = tuple(
        Field(other, find_field(name, first.schema).type)
        for name, other in zip(own, others, strict=True)
    )
    non_null = frozenset(each for each in values if all(each[i] is not None for i in strict))
    return KeyValues(columns, non_null).at(range(len(columns)))


def _columns_passed_down(node: Node) -> list[tuple[Node, Mapping[str, str]]]:
    """The inputs of an operator, and which of its columns are columns of theirs: rows that differ
    in these are computed without each other."""
    match node:
        case UnionAll():
            return [
                (each, dict(zip(node.names, each.names, strict=True))) for each in inputs_of(node)
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
    [child] = inputs_of(node)
    return [(child, {name: name for name in child.names})]
