"""Tables without a key as sets: a bag is the set of its rows with the numbers of their copies.

    {a, a, b}  =  {(a, 1), (a, 2), (b, 1)}

A change of a row's count from m to n deletes or inserts the copies between m and n, so that the
rules for sets hold. Only the columns that a view reads tell rows apart: a projection of a bag is a
bag.
"""

from collections.abc import Iterable

from viewkeep.diffs.passes.identify import MissingKeyError
from viewkeep.diffs.rules.build import keep
from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Node,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.tables import COPY, Table
from viewkeep.query.traversal import inputs_of, walk, with_children


def number_copies(view: Node) -> Node:
    """The view over tables that all have keys; an error for rows that cannot be compared.

    >>> log = Scan("log", Table({"line": "string", "level": "int"}), "log")
    >>> print(number_copies(log))
    Project log.line, log.level
      Scan log
    """
    bags = _numbered_tables(view)
    return _Numbering(bags).visit(view, exposed=True) if bags else view


def reads_copies(queries: Iterable[Node]) -> frozenset[str]:
    """The tables whose copies some query tells apart; of the others, any numbers will do."""
    names: set[str] = set()
    for query in queries:
        needs = needed_columns(query)
        for node in needs:
            if isinstance(node, Scan) and f"{node.alias}.{COPY}" in needs[node]:
                names.add(node.name)
    return frozenset(names)


def _numbered_tables(view: Node) -> dict[str, Table]:
    """The tables without a key, with the columns that the view reads and the number of the copy."""
    needs = needed_columns(view)
    scans = [each for each in walk(view) if isinstance(each, Scan) and not each.table.key]
    columns: dict[str, set[str]] = {each.name: set() for each in scans}
    for each in scans:
        own = zip(each.names, each.table.names, strict=True)
        columns[each.name] |= {column for name, column in own if name in needs[each]}
    tables = {each.name: each.table for each in scans}
    return {name: _table_with_numbers(name, table, columns[name]) for name, table in tables.items()}


def _table_with_numbers(name: str, table: Table, columns: set[str]) -> Table:
    fields = [each for each in table.columns if each.name in columns]
    for each in fields:
        if each.type.has_map:
            raise MissingKeyError(name, f'and values of "{each.name}", {each.type}, do not compare')
    # Where only rows are counted, any column tells them.
    comparable = [each for each in table.columns if not each.type.has_map]
    order_fields = fields or comparable[:1]
    if not order_fields or COPY in table.names:
        raise MissingKeyError(name)
    return table.numbered([each.name for each in order_fields])


class _Numbering:
    """Scans of numbered tables in place of others; `exposed` rows are compared by all columns, or
    shown, so that the number must not be among them."""

    def __init__(self, bags: dict[str, Table]) -> None:
        self._bags = bags
        self._results: dict[tuple[Node, bool], Node] = {}

    def visit(self, node: Node, exposed: bool) -> Node:
        key = node, exposed
        if key not in self._results:
            self._results[key] = self._number_node(node, exposed)
        return self._results[key]

    def _number_node(self, node: Node, exposed: bool) -> Node:
        match node:
            case Scan(name=name) if name in self._bags:
                scan = Scan(name, self._bags[name], node.alias, node.state)
                return keep(scan, [n for n in scan.names if n in node.names]) if exposed else scan
            case SemiJoin() | AntiJoin():
                sides = self.visit(node.left, exposed), self.visit(node.right, False)
                return with_children(node, sides)
            case Distinct() | UnionAll():
                inputs = [self.visit(each, True) for each in inputs_of(node)]
            case Project() | GroupBy():
                inputs = [self.visit(each, False) for each in inputs_of(node)]
            case _:
                inputs = [self.visit(each, exposed) for each in inputs_of(node)]
        return with_children(node, tuple(inputs))
