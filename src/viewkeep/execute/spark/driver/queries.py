"""Queries computed on the driver, driven by small diffs.

A query is a diff-driven loop plan (id_based_ivm, appendix A; `diffs.accesses` counts the same
plan): it starts from collected rows; a join of rows that are there with a large relation looks up
their keys in it, and the rows found drive the next join. What is not there yet comes with the
next job (`look_up`), and so does, where the keys to come are known to be among a few, what will be
looked up after it. Expressions that Python would not compute as Spark does are left to Spark's
optimizer, which needs no job for them; queries that need more than that, to Spark as a whole.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from viewkeep.errors import QueryError
from viewkeep.execute.budget import check_time
from viewkeep.execute.spark.driver.look_up import (
    Columns,
    MissingError,
    NotHereError,
    Source,
    project_keys,
)
from viewkeep.execute.spark.driver.possible_keys import Inputs, PossibleKeys, usable_pairs
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
    Pair,
    Paired,
    Rows,
    constant_rows,
    distinct,
    group,
    key_of,
    meetings,
    project,
    select,
    unnest,
)
from viewkeep.query.evaluate.windows import window
from viewkeep.query.expressions import Column
from viewkeep.query.traversal import children, walk

_REFUSED = (InexactError, QueryError)
MOST_AHEAD = 1000
"""The most keys that are looked up before it is sure that they are needed."""
MOST_PAIRS = 500_000
"""The most pairs of rows that a condition without an equality is tried on."""


@dataclass(frozen=True)
class SearchKeys:
    """The values that are looked up in some columns."""

    columns: Columns
    values: frozenset[Row]

    def on(self, columns: Iterable[str]) -> "SearchKeys":
        """Those of some of the columns; a query without any reads a relation as a whole."""
        own = tuple(column for column in self.columns if column in columns)
        if not own:
            raise NotHereError("no key to look up by")
        return SearchKeys(own, frozenset(project_keys(self.columns, self.values, own)))

    def renamed(self, names: dict[str, str]) -> "SearchKeys":
        """Those of columns that have another name below."""
        own = self.on(names)
        return SearchKeys(tuple(names[column] for column in own.columns), own.values)


class Driver:
    """Computes one query; `read` counts the rows that it read."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._done: dict[Node, Rows] = {}
        self._probes: dict[tuple[Node, SearchKeys], Rows] = {}
        self._starting: dict[Node, bool] = {}
        self.possible = PossibleKeys(inputs)
        self.read = 0

    def rows(self, node: Node) -> Rows:
        """All rows of a query that starts from small diffs."""
        if node not in self._done:
            check_time()
            self._done[node] = self._rows(node)
        return self._done[node]

    def _rows(self, node: Node) -> Rows:
        match node:
            case Scan() | Stored():
                return self._stored(node)
            case Values():
                return self._constant(node)
            case UnionAll():
                return self._bounded(row for rows in self._all(node) for row in rows)
            case Join() | SemiJoin() | AntiJoin():
                return self._joined(node, *self._sides(node))
        return self._computed(node, self.rows(node.child))

    def _stored(self, leaf: Leaf) -> Rows:
        if isinstance(leaf, Scan):
            return self._whole(leaf)
        rows = self._inputs.rows(leaf.name)
        if rows is None:
            if self._inputs.pending(leaf.name) is not None:
                raise MissingError(leaf.name)
            return self._whole(leaf)
        self.read += len(rows)
        return rows

    def _whole(self, leaf: Leaf) -> Rows:
        """A table, cache or view that is so small that all of it is read."""
        source = _source(leaf)
        if not self._inputs.has_frame(source):
            raise NotHereError(f"{leaf.name} as a whole")
        look_ups = self._inputs.look_ups
        rows = look_ups.all_rows(source)
        self.read += len(rows)
        return _arranged(rows, [field.name for field in look_ups.schema(source)], _below(leaf))

    def _constant(self, node: Values) -> Rows:
        try:
            return constant_rows(node)
        except _REFUSED as error:
            raise NotHereError(str(error)) from error

    def _computed(
        self, node: Select | Project | GroupBy | Distinct | Window | Unnest, rows: Rows
    ) -> Rows:
        try:
            match node:
                case Select():
                    return select(node, rows)
                case Project():
                    return project(node, rows)
                case Distinct():
                    return distinct(node, rows)
                case GroupBy():
                    return group(node, rows)
                case Window():
                    return window(node, rows)
                case Unnest():
                    return self._bounded(unnest(node, rows))
        except _REFUSED as error:
            if isinstance(node, Select | Project):
                return self._inputs.in_spark(node, rows) if rows else []
            raise NotHereError(str(error)) from error

    def _all(self, node: UnionAll, keys: SearchKeys | None = None) -> list[Rows]:
        rows = self.rows if keys is None else partial(self._probed, keys=keys)
        return self._each([partial(rows, each) for each in node.inputs])

    def _each(self, parts: Sequence[Callable[[], Rows]]) -> list[Rows]:
        """The rows of several queries, all of which note what they are missing."""
        results, missing = [], None
        for part in parts:
            try:
                results.append(part())
            except MissingError as error:
                missing = error
        if missing is not None:
            raise missing
        return results

    def _bounded(self, rows: Iterable[Row]) -> Rows:
        result = []
        for row in rows:
            result.append(row)
            if len(result) > self._inputs.limit:
                raise NotHereError("too many rows")
            if not len(result) % 10_000:
                check_time()
        return result

    # --- joins ----------------------------------------------------------------------------------

    def _joined(self, node: Paired, left: Rows, right: Rows) -> Rows:
        if not usable_pairs(node) and len(left) * len(right) > MOST_PAIRS:
            raise NotHereError("too many pairs")
        try:
            pairs = meetings(node, left, right)
            match node:
                case Join():
                    return self._bounded(own + other for own, met in pairs for other in met)
                case SemiJoin():
                    return [own for own, met in pairs if met]
                case AntiJoin():
                    return [own for own, met in pairs if not met]
        except _REFUSED as error:
            raise NotHereError(str(error)) from error

    def _sides(self, node: Paired) -> tuple[Rows, Rows]:
        """The side with diffs drives the other, but every left row of an antijoin is needed."""
        left, right = self._starts(node.left), self._starts(node.right)
        if left and right:
            own, other = self._each([partial(self.rows, each) for each in children(node)])
            return own, other
        pairs = usable_pairs(node)
        if left:
            return self._driven(node.left, node.right, pairs)
        if right and not isinstance(node, AntiJoin):
            other, own = self._driven(node.right, node.left, [(b, a, n) for a, b, n in pairs])
            return own, other
        own, other = self._each([partial(self.rows, each) for each in children(node)])
        return own, other

    def _driven(self, outer: Node, inner: Node, pairs: list[Pair]) -> tuple[Rows, Rows]:
        try:
            rows = self.rows(outer)
        except MissingError:
            self._look_ahead(outer, inner, pairs)
            raise
        return rows, self._partners(outer, rows, inner, pairs)

    def _look_ahead(self, outer: Node, inner: Node, pairs: list[Pair]) -> None:
        """Ask for inner rows by all keys that the outer rows may have, if those are few."""
        columns = tuple(own for own, _, _ in pairs)
        try:
            values = self.possible.values(outer, columns)
            if values is not None and 0 < len(values) <= MOST_AHEAD and self._has_tables(inner):
                self._probed(inner, _named_keys(pairs, values))
        except (MissingError, NotHereError):
            pass

    def _has_tables(self, node: Node) -> bool:
        """Whether all tables are there; one that turns out not to be needed need not be."""
        scans = [each for each in walk(node) if isinstance(each, Scan)]
        return all(self._inputs.has_frame((scan.name, scan.state)) for scan in scans)

    def _starts(self, node: Node) -> bool:
        """Whether diffs lead to the rows of a node, without reading a relation as a whole."""
        if node not in self._starting:
            self._starting[node] = self._is_started(node)
        return self._starting[node]

    def _is_started(self, node: Node) -> bool:
        match node:
            case Scan():
                return False
            case Stored():
                return not self._inputs.is_kept(node.name)
            case Join() | SemiJoin():
                return self._starts(node.left) or self._starts(node.right)
            case AntiJoin():
                return self._starts(node.left)
        return all(map(self._starts, children(node)))

    # --- look-ups -------------------------------------------------------------------------------

    def _probed(self, node: Node, keys: SearchKeys) -> Rows:
        """The rows of a node that have one of the keys, and perhaps others."""
        if self._starts(node):
            return self.rows(node)
        if (node, keys) not in self._probes:
            self._probes[node, keys] = self._probe(node, keys)
        return self._probes[node, keys]

    def _probe(self, node: Node, keys: SearchKeys) -> Rows:
        match node:
            case Scan() | Stored():
                return self._looked_up(node, keys)
            case Values():
                return self._constant(node)
            case UnionAll():
                return self._bounded(row for rows in self._all(node, keys) for row in rows)
            case Join() | SemiJoin() | AntiJoin():
                return self._chained(node, keys)
            case Project():
                sources = {o.name: o.expression for o in node.outputs}
                plain = {n: e.name for n, e in sources.items() if isinstance(e, Column)}
                return self._computed(node, self._probed(node.child, keys.renamed(plain)))
            case GroupBy() | Window():
                own = keys.on(node.keys if isinstance(node, GroupBy) else node.partition_by)
                rows = self._probed(node.child, own)
                key = key_of(own.columns, node.child.schema)
                # Of other groups some rows may be missing.
                return self._computed(node, [row for row in rows if key(row) in own.values])
            case Unnest():
                return self._computed(node, self._probed(node.child, keys.on(node.child.names)))
        return self._computed(node, self._probed(node.child, keys))

    def _looked_up(self, leaf: Leaf, keys: SearchKeys) -> Rows:
        look_ups, source, below = self._inputs.look_ups, _source(leaf), _below(leaf)
        own = keys.renamed(dict(zip(leaf.names, below, strict=True)))
        rows = look_ups.look_up(source, own.columns, own.values)
        self.read += len(rows)
        return _arranged(rows, [field.name for field in look_ups.schema(source)], below)

    def _chained(self, node: Paired, keys: SearchKeys) -> Rows:
        """First the side that has the keys, then the other one by what was found."""
        pairs = usable_pairs(node)
        in_left = not isinstance(node, Join) or any(c in node.left.names for c in keys.columns)
        if in_left:
            left = self._probed(node.left, keys.on(node.left.names))
            return self._joined(node, left, self._partners(node.left, left, node.right, pairs))
        right = self._probed(node.right, keys.on(node.right.names))
        turned = [(b, a, n) for a, b, n in pairs]
        return self._joined(node, self._partners(node.right, right, node.left, turned), right)

    def _partners(self, outer: Node, rows: Rows, inner: Node, pairs: list[Pair]) -> Rows:
        """The rows that others may meet: by their keys, or all, if they are few."""
        if self._starts(inner):
            return self.rows(inner)
        try:
            return self._probed(inner, _keys(outer, rows, pairs))
        except NotHereError:
            return self.rows(inner)


def _source(leaf: Leaf) -> Source:
    return (leaf.name, leaf.state) if isinstance(leaf, Scan) else leaf.name


def _below(leaf: Leaf) -> Columns:
    """The columns of a leaf by their names in storage."""
    return leaf.table.names if isinstance(leaf, Scan) else leaf.names


def _arranged(rows: Rows, have: Sequence[str], names: Sequence[str]) -> Rows:
    """Rows in another order of columns; one that no query reads is NULL."""
    if list(have) == list(names):
        return rows
    places = [have.index(name) if name in have else None for name in names]
    return [tuple([None if i is None else row[i] for i in places]) for row in rows]


def _keys(outer: Node, rows: Rows, pairs: list[Pair]) -> SearchKeys:
    own = key_of([column for column, _, _ in pairs], outer.schema)
    return _named_keys(pairs, set(map(own, rows)))


def _named_keys(pairs: list[Pair], values: set[Row]) -> SearchKeys:
    """SearchKeys under the names of the inner columns; only where NULL equals NULL it is one."""
    if not pairs:
        raise NotHereError("no key to look up by")
    strict = [i for i, (_, _, null_safe) in enumerate(pairs) if not null_safe]
    keys = frozenset(key for key in values if all(key[i] is not None for i in strict))
    return SearchKeys(tuple(inner for _, inner, _ in pairs), keys)
