"""Rows of large relations by key: asked for in any number, and fetched together.

Few files are read by the driver, all others by one Spark job. Whoever needs rows looks them up.
Those that are not there are noted, and `MissingError` says that they come with the next fetch; what
they turn out to be stays for the run, so that a row that was looked up for a computation is there
when it is changed.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from functools import reduce

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.execute.backend import Source
from viewkeep.execute.near_rows import MissingError, UnboundedError
from viewkeep.execute.spark.driver.collect import CollectedRows, with_schema
from viewkeep.execute.spark.driver.key_filter import MAX_KEYS, between, has_literals, one_of
from viewkeep.execute.spark.driver.layered import LayeredRows
from viewkeep.execute.spark.driver.scanned import ScannedFiles
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Rows
from viewkeep.query.expressions import back_quote
from viewkeep.query.types.inference import Schema, find_field
from viewkeep.tables.arrow_rows import to_rows

WHOLE_ROWS = 10_000
"""Relations with fewer rows are read as a whole: looking rows up takes as long."""

Columns = tuple[str, ...]
KeySets = Mapping[Columns, set[Row]]
"""Keys by the columns that have them."""


class NotHereError(UnboundedError):
    """A query that the driver cannot or should not compute."""


class LookUps:
    """The rows of look-ups so far, and the keys of those that wait for the next job."""

    def __init__(
        self,
        spark: SparkSession,
        relation_of: Callable[[Source], DataFrame | ScannedFiles | LayeredRows],
        schemas: Mapping[Source, Schema],
        limit: int,
    ) -> None:
        self._spark, self._relation_of, self._schemas = spark, relation_of, schemas
        self.limit = limit
        self._indexes: dict[Source, dict[Columns, dict[Row, Rows]]] = {}
        self._pending: dict[Source, dict[Columns, set[Row]]] = {}
        self._refused: list[tuple[Source, Columns, set[Row], int]] = []
        self._requests: dict[str, tuple[Source, KeySets]] = {}
        self._for_spark: list[str] = []
        self._wholes: dict[Source, Rows | None] = {}
        self._scanned: set[Source] = set()

    @property
    def accesses(self) -> int:
        """The keys that were looked up, the rows that were found, and those read as a whole."""
        indexes = [index for own in self._indexes.values() for index in own.values()]
        by_key = sum(len(index) + sum(map(len, index.values())) for index in indexes)
        return by_key + sum(len(self._wholes[source] or ()) for source in self._scanned)

    def schema(self, source: Source) -> Schema:
        """The columns of the rows of a relation, in order."""
        return self._schemas[source]

    def look_up(self, source: Source, columns: Iterable[str], keys: Set[Row]) -> Rows:
        """The rows that have one of the keys in these columns, where NULL is a value."""
        order, keys = self._ordered_key_columns(source, tuple(columns), keys)
        rows = self._rows_from_indexes(source, order, keys)
        if rows is not None:
            return rows
        if self._is_refused_request(source, order, keys):
            raise NotHereError(f"too many rows of {source}")
        whole = self._whole_relation(source)
        if whole is not None:
            self._take_rows(source, {order: keys}, whole)
            return self._rows_from_indexes(source, order, keys) or []
        index = self._indexes.get(source, {}).get(order, {})
        pending = self._pending.setdefault(source, {}).setdefault(order, set())
        pending |= keys - index.keys()
        raise MissingError(source)

    def is_small(self, source: Source) -> bool:
        """Whether a relation has so few rows that all of them are read."""
        return self._whole_relation(source) is not None

    def all_rows(self, source: Source) -> Rows:
        """All rows of a relation that is small; others are Spark's."""
        rows = self._whole_relation(source)
        if rows is None:
            raise NotHereError(f"{source} as a whole")
        self._scanned.add(source)
        return rows

    def _whole_relation(self, source: Source) -> Rows | None:
        """All rows of a small relation, read once; None if it is not small."""
        if source not in self._wholes:
            relation = self._relation_of(source)
            base = _base_of_relation(relation)
            table = None
            if isinstance(base, ScannedFiles):
                table = base.read(self._schemas[source], WHOLE_ROWS)
            self._wholes[source] = None if table is None else self._rows_of_answer(source, table)
        return self._wholes[source]

    def _is_refused_request(self, source: Source, columns: Columns, keys: Set[Row]) -> bool:
        """Whether a request with these keys, or with some or more of them, had too many rows."""
        return any(
            (source, columns) == (s, c)
            and (refused <= keys or keys <= refused)
            and limit >= self.limit
            for s, c, refused, limit in self._refused
        )

    def _ordered_key_columns(
        self, source: Source, columns: Columns, keys: Set[Row]
    ) -> tuple[Columns, Set[Row]]:
        """The columns in the order of names, without those whose values cannot be listed."""
        schema = self._schemas[source]
        literal_columns = [c for c in columns if has_literals(find_field(c, schema).type)]
        order = tuple(sorted(set(literal_columns)))
        if not order:
            raise NotHereError(f"{source} has no key that can be listed")
        return order, project_keys(columns, keys, order)

    def _rows_from_indexes(self, source: Source, columns: Columns, keys: Set[Row]) -> Rows | None:
        """The rows, where they were fetched by these columns or by some of them."""
        for by, index in self._indexes.get(source, {}).items():
            if set(by) <= set(columns):
                own = project_keys(columns, keys, by)
                if own <= index.keys():
                    rows = [row for key in own for row in index[key]]
                    return (
                        rows
                        if by == columns
                        else self._rows_having_keys(source, rows, columns, keys)
                    )
        return None if keys else []

    def _rows_having_keys(
        self, source: Source, rows: Rows, columns: Columns, keys: Set[Row]
    ) -> Rows:
        places = self._column_places(source, columns)
        return [row for row in rows if tuple([row[i] for i in places]) in keys]

    def _column_places(self, source: Source, columns: Columns) -> list[int]:
        names = [field.name for field in self._schemas[source]]
        return [names.index(column) for column in columns]

    # --- without Spark --------------------------------------------------------------------------

    def read_here(self) -> bool:
        """Read requested rows from files that the driver may read; whether there were any."""
        any_here = False
        for name, request in self.requests().items():
            rows = self._read_on_driver(*request)
            if rows is None:
                self._for_spark.append(name)
            else:
                any_here = True
                self.fill({name: rows})
        return any_here

    def _read_on_driver(self, source: Source, key_sets: KeySets) -> pa.Table | None:
        base = _base_of_relation(self._relation_of(source))
        return (
            base.look_up(self._schemas[source], key_sets)
            if isinstance(base, ScannedFiles)
            else None
        )

    # --- one job --------------------------------------------------------------------------------

    def frames(self) -> dict[str, DataFrame]:
        """The DataFrames of all open requests: one scan of each relation."""
        self.read_here()
        names, self._for_spark = self._for_spark, []
        return {name: self._request_frame(*self._requests[name]) for name in names}

    def requests(self) -> dict[str, tuple[Source, KeySets]]:
        """The keys that were looked up and are not here, as requests by name; they are open now."""
        requests: dict[str, tuple[Source, KeySets]] = {}
        for source, key_sets in self._pending.items():
            short = {c: keys for c, keys in key_sets.items() if _has_short_list(c, keys)}
            long = [{c: keys} for c, keys in key_sets.items() if c not in short]
            for part in [short, *long] if short else long:
                requests[f"rows {len(requests)} of {source}"] = source, part
        self._pending = {}
        self._requests |= requests
        return requests

    def _request_frame(self, source: Source, key_sets: KeySets) -> DataFrame:
        schema = self._schemas[source]
        names = [back_quote(field.name) for field in schema]
        base = _base_of_relation(self._relation_of(source))
        frame = base.frame if isinstance(base, ScannedFiles) else base
        rows = with_schema(frame.selectExpr(*names), schema)
        rows = rows.where(" OR ".join(_key_condition(c, keys) for c, keys in key_sets.items()))
        for columns, keys in key_sets.items():
            if not _has_short_list(columns, keys):
                rows = self._frame_with_keys(rows, source, columns, keys)
        return rows

    def _frame_with_keys(
        self, rows: DataFrame, source: Source, columns: Columns, keys: Set[Row]
    ) -> DataFrame:
        """The rows with one of many keys; NULL equals NULL."""
        schema = tuple(find_field(column, self._schemas[source]) for column in columns)
        renamed = [f"{back_quote(c)} AS {back_quote(f'viewkeep#{c}')}" for c in columns]
        right = CollectedRows(self._spark, schema, list(keys)).frame.selectExpr(*renamed)
        same = [F.expr(f"{back_quote(c)} <=> {back_quote(f'viewkeep#{c}')}") for c in columns]
        condition = reduce(lambda left, right: left & right, same)
        return rows.join(F.broadcast(right), condition, "left_semi")

    def fill(self, tables: Mapping[str, pa.Table]) -> None:
        """Take the collected rows of requests; keys with too many rows are refused from now on."""
        for name in tables.keys() & self._requests.keys():
            if tables[name].num_rows > self.limit:
                source, key_sets = self._requests.pop(name)
                self._refused += [(source, c, keys, self.limit) for c, keys in key_sets.items()]
            else:
                self.put(name, self._rows_of_answer(self._requests[name][0], tables[name]))

    def _rows_of_answer(self, source: Source, table: pa.Table) -> Rows:
        relation = self._relation_of(source)
        return relation.completed(table) if isinstance(relation, LayeredRows) else to_rows(table)

    def put(self, name: str, rows: Rows) -> None:
        """Take the rows of a request; rows with other keys are ignored."""
        source, key_sets = self._requests.pop(name)
        self._take_rows(source, key_sets, rows)

    def _take_rows(self, source: Source, key_sets: Mapping[Columns, Set[Row]], rows: Rows) -> None:
        for columns, keys in key_sets.items():
            index = self._indexes.setdefault(source, {}).setdefault(columns, {})
            index.update({key: [] for key in keys})
            places = self._column_places(source, columns)
            for row in rows:
                key = tuple([row[i] for i in places])
                if key in keys:
                    index[key].append(row)


def _base_of_relation(relation: DataFrame | ScannedFiles | LayeredRows) -> DataFrame | ScannedFiles:
    return relation.base if isinstance(relation, LayeredRows) else relation


def project_keys(columns: Columns, keys: Set[Row], names: Columns) -> Set[Row]:
    """Keys of some of the columns.

    >>> sorted(project_keys(("a", "b"), {(1, 2), (3, 2)}, ("b",)))
    [(2,)]
    """
    if columns == names:
        return keys
    places = [columns.index(column) for column in names]
    return {tuple([key[i] for i in places]) for key in keys}


def _has_short_list(columns: Columns, keys: Set[Row]) -> bool:
    """Whether the values of one column at least are few enough to be listed."""
    return any(len({key[i] for key in keys}) <= MAX_KEYS for i in range(len(columns)))


def _key_condition(columns: Columns, keys: Set[Row]) -> str:
    """Where each column has one of its values: a little more than the keys."""
    values = {column: {key[i] for key in keys} for i, column in enumerate(columns)}
    parts = [
        one_of(column, sorted(distinct, key=_nulls_first))
        if len(distinct) <= MAX_KEYS
        else between(column, distinct)
        for column, distinct in values.items()
    ]
    return f"({' AND '.join(parts)})"


def _nulls_first(value: object) -> tuple[bool, object]:
    return value is not None, value
