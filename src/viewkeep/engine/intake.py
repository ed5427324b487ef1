"""From rows to changes of atoms: everything is checked before anything changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from viewkeep.engine.frames import field_names, is_arrow, is_pandas, select_columns
from viewkeep.errors import QueryError, SchemaError, did_you_mean
from viewkeep.plan.payload import Payload, distinct_variables, plan_payload
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.evaluate.compile import compile_condition
from viewkeep.query.expressions import columns_of
from viewkeep.rings.index import key_function

Row = tuple[Any, ...]
Change = tuple[int, Row, Any]
"""An atom's position, the values of its distinct variables, and the payload to add."""


class Intake:
    """Checks the rows of one relation and turns them into changes of its atoms."""

    def __init__(self, query: ConjunctiveQuery, relation: str, payload: Payload) -> None:
        self.relation, self.columns = relation, query.columns_of(relation)
        self._arity = len(self.columns)
        self._table = table = dict(query.tables).get(relation, self.columns)
        # Rows of the whole table are cut to the columns that the query binds.
        self._width = len(table) if len(table) != self._arity else 0
        self._cut = key_function(tuple(map(table.index, self.columns)))
        self._ring, self._from_integer = payload.ring, payload.ring.from_integer
        self._insert_only = query.constraints.insert_only
        self._static = relation in query.constraints.static
        self._atoms = [
            (i, _key_of(query, atom), partial(payload.of, i) if payload.lifts.get(i) else None)
            for i, atom in enumerate(query.atoms)
            if atom.relation == relation
        ]

    def changes(self, row: Any, multiplicity: int, loading: bool = False) -> list[Change]:
        """The changes that so many copies of a row make, or an error that says what is wrong."""
        if self._width or type(row) is not tuple:
            row = self.fit(row)
        self.check(row, multiplicity, loading)
        changes: list[Change] = []
        for atom, key_of, lift in self._atoms:
            key = row if key_of is None else key_of(row)
            if key is not None:
                element = lift(key, multiplicity) if lift else self._from_integer(multiplicity)
                changes.append((atom, key, element))
        return changes

    def net_changes(
        self, rows: Any, multiplicities: Iterable[int] | None = None, loading: bool = False
    ) -> list[Change]:
        """The changes of a batch, equal rows together, after every row was checked."""
        net: dict[Row, int] = {}
        plain_rows = rows_of(rows, self.relation, self.columns, self._table)
        for row, count in with_counts(plain_rows, multiplicities):
            row = self.fit(row)
            self.check(row, count, loading)
            net[row] = net.get(row, 0) + count
        return [
            change
            for row, count in net.items()
            if count
            for change in self.changes(row, count, loading)
        ]

    def fit(self, row: Any) -> Any:
        """A list or a row by names as a tuple, and a row of the whole table cut to what the query
        binds."""
        if isinstance(row, Mapping):
            return self._by_name(row)
        row = tuple(row) if isinstance(row, list) else row
        return self._cut(row) if isinstance(row, tuple) and len(row) == self._width else row

    def _by_name(self, row: Mapping[Any, Any]) -> Row:
        missing = [column for column in self.columns if column not in row]
        if missing:
            raise SchemaError(
                f"row {dict(row)!r} of {self.relation}({', '.join(self.columns)}) has no "
                f"{', '.join(missing)}" + did_you_mean(missing[0], map(str, row))
            )
        return tuple([row[column] for column in self.columns])

    def check(self, row: Any, multiplicity: int, loading: bool = False) -> None:
        """Refuse what does not fit the relation or its constraints."""
        if not isinstance(row, tuple) or len(row) != self._arity:
            raise SchemaError(
                f"row {row!r} does not fit {self.relation}({', '.join(self.columns)}): "
                f"expected a tuple of {self._arity} values"
            )
        try:
            hash(row)
            for value in row:
                if value != value:
                    raise SchemaError(f"row {row!r} holds {value!r}, which is equal to nothing")
        except TypeError:
            problem = "holds a value that cannot be hashed and compared"
            raise SchemaError(f"row {row!r} {problem}") from None
        if type(multiplicity) is not int:
            raise SchemaError(f"multiplicity {multiplicity!r} is not a whole number")
        if self._static and not loading:
            raise SchemaError(f"{self.relation} is declared static: give its rows to load()")
        if multiplicity < 0:
            self._check_delete(row)

    def _check_delete(self, row: Row) -> None:
        if self._insert_only:
            raise SchemaError(f"cannot delete {row!r} from {self.relation}: inserts only")
        if not self._ring.subtractable:
            raise SchemaError(
                f"cannot delete {row!r} from {self.relation}: the {self._ring.name} "
                "have no subtraction; declare insert_only=True or use another ring"
            )


def intakes_of(query: ConjunctiveQuery, payload: Payload | None = None) -> dict[str, Intake]:
    """The intake of every relation; without a payload, for counts or the query's aggregates."""
    payload_layout = plan_payload(query) if payload is None else payload
    return {relation: Intake(query, relation, payload_layout) for relation in query.relations}


def _key_of(query: ConjunctiveQuery, atom: Atom) -> Callable[[Row], Row | None] | None:
    """From a row to the atom's key, None for rows it does not admit; nothing if it is the row."""
    variables = distinct_variables(atom.variables)
    conditions = [c for c in query.conditions if columns_of(c) <= atom.schema]
    if len(variables) == len(atom.variables) and not conditions:
        return None
    admits = compile_condition(conditions, variables)
    first = [atom.variables.index(v) for v in variables]
    same = [(i, atom.variables.index(v)) for i, v in enumerate(atom.variables)]

    def key_of(row: Row) -> Row | None:
        if any(row[i] != row[j] for i, j in same):
            return None
        key = tuple([row[i] for i in first])
        return key if admits(key) else None

    return key_of


def with_counts(
    rows: Iterable[Row], multiplicities: Iterable[int] | None
) -> Iterator[tuple[Row, int]]:
    """Rows with their multiplicities; one each where none are given."""
    if multiplicities is None:
        return ((row, 1) for row in rows)
    if not isinstance(multiplicities, Iterable) or isinstance(multiplicities, str | bytes):
        raise SchemaError(f"multiplicities={multiplicities!r}: expected a list of whole numbers")
    row_list = list(rows)
    # Arrays give whole numbers of Python that way, and not of their own.
    counts = multiplicities.tolist() if hasattr(multiplicities, "tolist") else list(multiplicities)
    if len(row_list) != len(counts):
        raise SchemaError(f"{len(row_list)} rows, but {len(counts)} multiplicities")
    return zip(row_list, counts, strict=True)


def rows_of(
    data: Any, relation: str, columns: Sequence[str], whole: Sequence[str] = ()
) -> Iterable[Row]:
    """The rows of lists, arrays, tables with named columns, or whatever iterates over rows.

    Columns are found by name, or by position where no name is known (`select_columns`).
    """
    if is_arrow(data):
        places = select_columns(list(data.column_names), relation, columns, whole)
        return zip(*(data.column(place).to_pylist() for place in places), strict=True)
    if is_pandas(data):
        places = select_columns([str(name) for name in data.columns], relation, columns, whole)
        return _plain(data.iloc[:, places].itertuples(index=False, name=None))
    if names := field_names(data):
        places = select_columns(list(names), relation, columns, whole)
        return zip(*(data[names[place]].tolist() for place in places), strict=True)
    if getattr(data, "ndim", 0) == 2 and hasattr(data, "tolist"):
        return (tuple(row) for row in data.tolist())
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise SchemaError(f"rows of {relation}: expected rows, not {type(data).__name__}")
    return (tuple(row) if isinstance(row, list) else row for row in data)


def _plain(rows: Iterable[Row]) -> Iterator[Row]:
    """NumPy scalars as Python values, so that equal values have equal types everywhere."""
    for row in rows:
        yield tuple([value.item() if hasattr(value, "item") else value for value in row])


def find_intake(intakes: Mapping[str, Intake], relation: str, query: ConjunctiveQuery) -> Intake:
    """The intake of a relation, or an error that names the relations there are."""
    intake = intakes.get(relation) if isinstance(relation, str) else None
    if intake is None:
        raise QueryError(
            f'query {query.name} has no relation "{relation}" ({", ".join(intakes)})'
            + did_you_mean(relation, intakes)
        )
    return intake


def check_inputs(query: ConjunctiveQuery, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The inputs of an access pattern, checked: all of them, and no others."""
    if values is not None and not isinstance(values, Mapping):
        raise QueryError(f"given={values!r}: expected the inputs by name")
    inputs = dict(values or {})
    for name in inputs:
        if name not in query.inputs:
            hint = did_you_mean(str(name), query.inputs)
            raise QueryError(f'query {query.name} has no input "{name}"{hint}')
    missing = [v for v in query.inputs if v not in inputs]
    if missing:
        raise QueryError(f"query {query.name} needs its inputs: given={{{missing[0]!r}: ...}}")
    check_hashable(tuple(inputs.values()))
    return inputs


def check_hashable(row: Row) -> None:
    """Refuse values that no map can hold."""
    try:
        hash(row)
    except TypeError:
        raise SchemaError(f"{row!r} holds a value that cannot be hashed") from None
