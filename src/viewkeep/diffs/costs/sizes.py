"""How many rows the operators of a query are expected to have.

The textbook's assumptions: columns are independent of each other, and comparisons with a value
leave a third of the rows; all other conditions are expected to hold. Two columns of which one is a
key agree as often as that key has values; two others as often as two rows of each agree (Cauchy and
Schwarz), which tells of skew what a number of distinct values does not. The rows of a smaller
relation are expected to have partners: diffs come from the tables that they are joined with.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod, sqrt

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Values,
    Window,
)
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk

SELECTED = 1 / 3
"""The share of rows for which a comparison with a value is expected to hold."""
COMPARISONS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Spread:
    """How the values of a column are spread: how many there are, and how often two rows agree."""

    distinct: float
    agreement: float

    @staticmethod
    def even(distinct: float) -> "Spread":
        """Values that are all as frequent.

        >>> Spread.even(4)
        Spread(distinct=4, agreement=0.25)
        """
        return Spread(distinct, 1 / max(1.0, distinct))


@dataclass(frozen=True)
class Size:
    """The rows of a relation, the spread of its columns, and sets of columns that tell its rows
    apart."""

    rows: float
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    keys: frozenset[frozenset[str]] = frozenset()

    def spread(self, column: str) -> Spread:
        """The spread of a column; of one that nothing is known of, as if it were a key."""
        known = self.spreads.get(column) or Spread.even(self.rows)
        return known if known.distinct <= self.rows else replace(known, distinct=self.rows)

    def is_unique(self, columns: Iterable[str]) -> bool:
        """Whether rows differ in some of the columns."""
        names = frozenset(columns)
        return any(key <= names for key in self.keys)

    def tuples(self, columns: Iterable[str]) -> float:
        """How many combinations of values of some columns its rows are expected to have."""
        return min(self.rows, self.combinations(columns))

    def combinations(self, columns: Iterable[str]) -> float:
        """How many combinations of values of some columns there may be."""
        return prod((self.spread(name).distinct for name in columns), start=1.0)


def size_of_table(table: Table, rows: float, spreads: Mapping[str, Spread]) -> Size:
    """The size of a base table, of which some columns were looked at; a key of one column needs
    no look.

    >>> size_of_table(Table({"id": "int", "x": "int"}, key=["id"]), 10, {}).spread("id").distinct
    10
    """
    whole = {table.key[0]: Spread.even(rows)} if len(table.key or ()) == 1 else {}
    keys = frozenset([frozenset(table.key)]) if table.key else frozenset[frozenset[str]]()
    return Size(rows, {**whole, **spreads}, keys)


class SizeEstimates:
    """The sizes of operators over base tables and stored relations; each is found once."""

    def __init__(self, tables: Mapping[str, Size]) -> None:
        self._tables = tables
        self._stored: dict[str, Size] = {}
        self._found: dict[Node, Size] = {}

    def store(self, name: str, size: Size) -> None:
        """Take note of a relation that queries read by its name."""
        self._stored[name] = size

    def stored(self, name: str) -> Size:
        """The relation of that name."""
        return self._stored[name]

    def of(self, query: Node) -> Size:
        """The size of an operator's result."""
        size = self._found.get(query)
        if size is None:
            for each in query.children:
                self.of(each)
            size = self._estimated_size(query)
            size = replace(size, spreads={name: size.spread(name) for name in query.names})
            self._found[query] = size
        return size

    def _estimated_size(self, node: Node) -> Size:
        match node:
            case Scan():
                return _size_of_scan(node, self._tables.get(node.name, Size(1.0)))
            case Stored():
                return self._stored.get(node.name, Size(1.0))
            case Values():
                return Size(float(len(node.rows)))
            case Project():
                return _size_of_projection(node, self._found[node.child])
            case Select():
                return self._size_of_selection(node)
            case Join():
                return self._size_of_join(node)
            case SemiJoin() | AntiJoin():
                return self._size_of_semijoin(node)
            case UnionAll():
                return self._size_of_union(node)
            case GroupBy():
                return _size_of_groups(self._found[node.child], node.keys)
            case Distinct():
                return _size_of_groups(self._found[node.child], node.child.names)
            case Window(limit=int() as limit):
                child = self._found[node.child]
                partitions = min(child.rows, child.combinations(node.partition_by))
                return replace(child, rows=min(child.rows, limit * partitions))
        return self._found[node.children[0]]

    def _size_of_union(self, node: UnionAll) -> Size:
        """All rows, spread as those of the input that has the most."""
        largest = max(node.inputs, key=lambda each: self._found[each].rows)
        spreads = self._found[largest].spreads
        names = zip(node.names, largest.names, strict=True)
        rows = sum(self._found[each].rows for each in node.inputs)
        return Size(rows, {name: spreads[own] for name, own in names if own in spreads})

    def _size_of_selection(self, node: Select) -> Size:
        size = self._found[node.child]
        shares = (_condition_share(part, size) for part in conjuncts(node.condition))
        return replace(size, rows=size.rows * prod(shares))

    def _size_of_join(self, node: Join) -> Size:
        left, right = self._found[node.left], self._found[node.right]
        rows = left.rows * right.rows * join_share(node.condition, left, right)
        pairs = _equated_columns(node.condition, left.spreads)
        keys = frozenset(a | b for a in left.keys for b in right.keys)
        if right.is_unique(b for _, b in pairs):
            keys |= left.keys
        if left.is_unique(a for a, _ in pairs):
            keys |= right.keys
        return Size(rows, {**left.spreads, **right.spreads}, keys)

    def _size_of_semijoin(self, node: SemiJoin | AntiJoin) -> Size:
        left, right = self._found[node.left], self._found[node.right]
        pairs = _equated_columns(node.condition, left.spreads)
        keys = right.tuples(b for _, b in pairs) if pairs else right.rows
        share = min(1.0, keys * join_share(node.condition, left, right))
        if isinstance(node, AntiJoin):
            share = max(0.1, 1 - share)
        return replace(left, rows=left.rows * share)


def join_share(condition: Expression, left: Size, right: Size) -> float:
    """The share of all pairs of rows for which a condition of a join holds.

    >>> orders = Size(100, {"o.id": Spread.even(100)}, frozenset([frozenset(["o.id"])]))
    >>> lines = Size(1000, {"l.order": Spread.even(100)})
    >>> same = Call("=", (Column("o.id"), Column("l.order")))
    >>> round(100 * 1000 * join_share(same, orders, lines))
    1000
    """
    pairs = _equated_columns(condition, left.spreads)
    if not pairs:
        return 1.0
    left_columns, right_columns = [a for a, _ in pairs], [b for _, b in pairs]
    least = 1 / max(1.0, left.rows, right.rows)
    if left.is_unique(left_columns) or right.is_unique(right_columns):
        values = max(left.combinations(left_columns), right.combinations(right_columns))
        return max(least, 1 / max(1.0, values))
    agreements = (left.spread(a).agreement * right.spread(b).agreement for a, b in pairs)
    share = prod(map(sqrt, agreements))
    if len(pairs) > 1:  # skew of one column is not that of pairs of values
        share = min(share, 1 / max(1.0, left.tuples(left_columns), right.tuples(right_columns)))
    return max(least, share)


def _equated_columns(condition: Expression, own: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of columns that a join equates, that of the left side first."""
    names, pairs = frozenset(own), []
    for part in conjuncts(condition):
        match part:
            case Call("=" | "<=>", (Column(a), Column(b))):
                pairs.append((a, b) if a in names else (b, a))
    return pairs


def _condition_share(part: Expression, size: Size) -> float:
    """The share of rows for which one condition on rows holds."""
    match part:
        case Call("=" | "<=>", (Column(name), Literal())):
            return min(SELECTED, size.spread(name).agreement)
        case Call(function, (Column(), Literal())) if function in COMPARISONS:
            return SELECTED
    return 1.0


def _size_of_scan(scan: Scan, size: Size) -> Size:
    spreads = {f"{scan.alias}.{name}": spread for name, spread in size.spreads.items()}
    keys = (frozenset(f"{scan.alias}.{name}" for name in key) for key in size.keys)
    return Size(size.rows, spreads, frozenset(keys))


def _size_of_projection(node: Project, size: Size) -> Size:
    """A projection passes columns on, maybe under other names, and adds values of its own."""
    names = {o.expression.name: o.name for o in node.outputs if isinstance(o.expression, Column)}
    spreads = {new: size.spreads[old] for old, new in names.items() if old in size.spreads}
    spreads |= {o.name: Spread.even(1) for o in node.outputs if not columns_of(o.expression)}
    keys = (frozenset(map(names.__getitem__, key)) for key in size.keys if key <= names.keys())
    return Size(size.rows, spreads, frozenset(keys))


def _size_of_groups(size: Size, keys: tuple[str, ...]) -> Size:
    if not keys:
        return Size(1.0, {}, frozenset([frozenset[str]()]))
    spreads = {name: size.spreads[name] for name in keys if name in size.spreads}
    groups = min(size.rows, size.combinations(keys))
    return Size(groups, spreads, frozenset([frozenset(keys)]))


@dataclass(frozen=True)
class JoinBlock:
    """Nested inner joins as a list of inputs, which an engine joins in an order of its own."""

    inputs: tuple[Node, ...]
    conditions: tuple[Expression, ...]

    @staticmethod
    def of(join: Join) -> "JoinBlock":
        """The block whose last join this is."""
        inputs: list[Node] = []
        conditions: list[Expression] = []
        pending: list[Node] = [join]
        while pending:
            node = pending.pop()
            if isinstance(node, Join):
                conditions += conjuncts(node.condition)
                pending += [node.right, node.left]
            else:
                inputs.append(node)
        return JoinBlock(tuple(inputs), tuple(conditions))

    def intermediate_rows(self, sizes: SizeEstimates) -> float:
        """The rows of all joins of the block, each next input the one that gives the fewest."""
        factors = [sizes.of(each).rows for each in self.inputs]
        compared: list[set[str]] = [set() for _ in self.inputs]
        pending = set(range(len(factors)))
        rows, total = 1.0, 0.0
        while pending:  # `factors`: how many times as many rows there are with the input
            best = min(pending, key=factors.__getitem__)
            pending.remove(best)
            rows *= factors[best]
            for each in pending:
                parts = self._pair_conditions(self.inputs[best], self.inputs[each])
                own, other = sizes.of(self.inputs[each]), sizes.of(self.inputs[best])
                factors[each] *= join_share(conjunction(parts), other, own)
                compared[each] |= own.spreads.keys() & columns_of(conjunction(parts))
                if len(compared[each]) > 1:  # skew of one column is not that of pairs of values
                    most = own.rows / max(1.0, own.tuples(compared[each]))
                    factors[each] = min(factors[each], most)
            total += rows if len(pending) < len(factors) - 1 else 0.0
        return total

    def _pair_conditions(self, first: Node, second: Node) -> list[Expression]:
        """The conditions on columns of two inputs."""
        first_names, second_names, parts = frozenset(first.names), frozenset(second.names), []
        for part in self.conditions:
            columns = columns_of(part)
            if (
                columns <= first_names | second_names
                and columns & first_names
                and columns & second_names
            ):
                parts.append(part)
        return parts


def passed_rows(query: Node, sizes: SizeEstimates) -> float:
    """The rows that all joins of a query pass on; those that look for partners only count the rows
    of their larger side."""
    total, inner = 0.0, set[Node]()
    for node in reversed(list(walk(query))):
        if isinstance(node, Join):
            total += JoinBlock.of(node).intermediate_rows(sizes) if node not in inner else 0.0
            inner |= {each for each in node.children if isinstance(each, Join)}
        elif isinstance(node, SemiJoin | AntiJoin):
            total += max(sizes.of(each).rows for each in node.children)
    return total
