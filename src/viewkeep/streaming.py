"""Queries kept up to date inside Spark's stateful streaming operator, spread over its executors.

Where all relations share variables, rows with different values of these never meet: each group of
rows is a small instance of the query, kept by a trigger program of its own. Spark keeps the rows of
each group as its state, in the stream's checkpoint, and moves groups to executors by their values.
"""

import pickle
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from viewkeep.arguments import checked
from viewkeep.errors import QueryError, SchemaError, did_you_mean
from viewkeep.maintainer import Maintainer, OutputChange
from viewkeep.options import Options
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.notation.parse import parse

Row = tuple[Any, ...]
Groups = Mapping[str, Mapping[Row, int]]
"""Rows with their multiplicities, by relation."""

MULTIPLICITY, OPERATION = "multiplicity", "op"
UPSERT, DELETE = "upsert", "delete"
STATE = "rows binary"
KEPT_GROUPS = 1_000
"""So many groups a worker remembers as they were when it changed them last."""


@checked
def maintain_stream(
    query: ConjunctiveQuery | str,
    streams: Mapping[str, Any],
    schema: str,
    by: Sequence[str] | None = None,
) -> Any:
    """The changes of a query's output, as a streaming DataFrame, made on all executors.

    `streams` are the changes of each relation, streaming DataFrames with its columns and perhaps
    `multiplicity` (1 for an insert, -1 for a delete; 1 where there is none). `by` are variables of
    the head that all atoms have (by default, all such variables), by whose values rows are spread.
    `schema` names the columns of the output and their types as Spark has them: the outputs, then
    the aggregates or the count ("did string, total bigint").

    Rows of the result have these columns and `op`: "upsert" with the new payload of an output
    tuple, or "delete", where only the outputs tell. `Keeper.sink` takes them into a table whose key
    are the outputs. What a batch changes is the same however often Spark runs it, so that every
    change counts once after restarts from the checkpoint.
    """
    parsed = parse(query) if isinstance(query, str) else query
    by = shared_variables(parsed) if by is None else tuple(by)
    places = check_spread(parsed, by)
    _check_names("relation", streams, parsed.relations)
    program = Maintainer(parsed, _OPTIONS).program
    kept = KeyedQuery(parsed, program)
    rows = reduce(
        lambda left, right: left.unionByName(right),
        [_tagged_rows(parsed, name, streams, places[name]) for name in parsed.relations],
    )
    width = len(parsed.outputs) + (len(parsed.aggregates) or 1)
    names = _column_names(rows, schema, width)
    step = GroupStep(kept, names)
    return rows.groupBy(*_key_names(by)).applyInPandasWithState(
        step, f"{schema}, {operation_name(names)} string", STATE, "append", "NoTimeout"
    )


_OPTIONS = Options(engine="reference")


# --- which queries --------------------------------------------------------------------------------


def shared_variables(query: ConjunctiveQuery) -> tuple[str, ...]:
    """The outputs that every atom has, at one place in all atoms of a relation.

    >>> shared_variables(parse("Q(a, b, c) = R(a, b) * S(a, c)"))
    ('a',)
    """
    return tuple(v for v in query.outputs if all(v in atom.variables for atom in query.atoms))


def key_places(query: ConjunctiveQuery, relation: str, by: Sequence[str]) -> tuple[int, ...]:
    """Where the variables `by` stand in a relation; an error if a row belongs to several groups."""
    if not by:
        raise QueryError(
            f"query {query.name}: no output is in all atoms, so that rows cannot be spread by it; "
            "keep it in one process (maintain), or in a lake (create_view)"
        )
    places = set()
    for atom in query.atoms:
        missing = [name for name in by if name not in atom.variables]
        if missing:
            raise QueryError(
                f"query {query.name}: rows are spread by {', '.join(by)}, but {atom} has no "
                f"{', '.join(missing)}"
            )
        if atom.relation == relation:
            places.add(tuple(atom.variables.index(name) for name in by))
    if len(places) > 1:
        raise QueryError(
            f"query {query.name}: {', '.join(by)} stand at several places of {relation}, so that a "
            "row belongs to several groups"
        )
    return places.pop()


def check_spread(query: ConjunctiveQuery, by: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Where the variables `by` stand in each relation; an error if rows or output tuples belong to
    several groups, or are asked for by inputs."""
    places = {name: key_places(query, name, by) for name in query.relations}
    if query.inputs:
        raise QueryError(f"query {query.name} has inputs, which a stream does not give")
    missing = [name for name in by if name not in query.outputs]
    if missing:
        raise QueryError(
            f"query {query.name}: rows are spread by {', '.join(missing)}, which the head has to "
            "have: groups of rows know nothing of each other; sum up what they tell"
        )
    return places


def _check_names(what: str, given: Iterable[str], wanted: Sequence[str]) -> None:
    for name in given:
        if name not in wanted:
            raise SchemaError(f'there is no {what} "{name}"{did_you_mean(name, wanted)}')
    for name in wanted:
        if name not in given:
            raise SchemaError(f'no stream of the {what} "{name}"')


# --- rows of all relations in one stream ----------------------------------------------------------


def _key_names(by: Sequence[str]) -> list[str]:
    return [f"key{number}" for number in range(len(by))]


def _tagged_rows(
    query: ConjunctiveQuery, relation: str, streams: Mapping[str, Any], places: Sequence[int]
) -> Any:
    """The changes of a relation beside empty places for rows of the others."""
    frame = streams[relation]
    columns = query.columns_of(relation)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise SchemaError(
            f'the stream of "{relation}" has no column "{missing[0]}" ({", ".join(frame.columns)})'
        )
    signs = _quoted(MULTIPLICITY) if MULTIPLICITY in frame.columns else "1"
    keys = [f"{_quoted(columns[place])} AS key{n}" for n, place in enumerate(places)]
    rows = [
        _row_of(columns, number) if name == relation else _no_row(query, name, streams, number)
        for number, name in enumerate(query.relations)
    ]
    return frame.selectExpr(*keys, f"CAST({signs} AS bigint) AS {MULTIPLICITY}", *rows)


def _row_of(columns: Sequence[str], number: int) -> str:
    fields = ", ".join(f"'c{n}', {_quoted(name)}" for n, name in enumerate(columns))
    return f"named_struct({fields}) AS row{number}"


def _no_row(query: ConjunctiveQuery, relation: str, streams: Mapping[str, Any], number: int) -> str:
    schema, columns = streams[relation].schema, query.columns_of(relation)
    absent = [name for name in columns if name not in streams[relation].columns]
    if absent:
        raise SchemaError(f'the stream of "{relation}" has no column "{absent[0]}"')
    types = (schema[name].dataType.simpleString() for name in columns)
    fields = ", ".join(f"c{n}: {kind}" for n, kind in enumerate(types))
    return f"CAST(NULL AS struct<{fields}>) AS row{number}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _column_names(frame: Any, schema: str, width: int) -> tuple[str, ...]:
    """The columns that a text of types names."""
    empty = frame.sparkSession.createDataFrame([], schema)
    if len(empty.columns) != width:
        raise SchemaError(
            f'schema="{schema}" has {len(empty.columns)} columns, but the query has {width}: its '
            "outputs, then its aggregates or the count"
        )
    return tuple(empty.columns)


def operation_name(columns: Sequence[str]) -> str:
    """The column that tells what happened, as `Keeper.sink` takes it."""
    return f"_{OPERATION}" if OPERATION in map(str.casefold, columns) else OPERATION


# --- one group ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyedQuery:
    """A query and the program that keeps each group."""

    query: ConjunctiveQuery
    program: Program

    @cached_property
    def digest(self) -> bytes:
        """What tells it from others in the memory of a worker."""
        return pickle.dumps((self.query, self.program))

    def group(self, rows: Groups) -> Maintainer:
        """A group that holds rows."""
        maintainer = Maintainer(self.query, _OPTIONS, self.program)
        maintainer.update_batches([(n, [*each], [*each.values()]) for n, each in rows.items()])
        return maintainer


@dataclass
class KeptGroup:
    """A group as the state of Spark has it, which is `state`."""

    state: bytes
    rows: dict[str, Counter[Row]]
    maintainer: Maintainer

    def change(self, changes: Groups) -> list[OutputChange]:
        """Change rows; what that changes in the output."""
        heard: list[OutputChange] = []
        token = self.maintainer.subscribe(heard.extend)
        try:
            batches: list[Any] = [(n, [*each], [*each.values()]) for n, each in changes.items()]
            self.maintainer.update_batches(batches)
        finally:
            self.maintainer.unsubscribe(token)
        for name, each in changes.items():
            rows = self.rows.setdefault(name, Counter())
            for row, count in each.items():
                rows[row] += count
                if not rows[row]:
                    del rows[row]
        left = {name: dict(each) for name, each in self.rows.items() if each}
        self.state = pickle.dumps(left, protocol=5) if left else b""
        return heard


_KEPT: OrderedDict[tuple[bytes, Row], KeptGroup] = OrderedDict()
"""Groups that this process has changed. One counts only where Spark's state is what it made."""


@dataclass(frozen=True)
class GroupStep:
    """What Spark calls with the new rows of a group, and its state."""

    kept: KeyedQuery
    columns: tuple[str, ...]

    def __call__(self, key: Row, frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """The rows of the output that change; the group's rows are the new state."""
        import pandas as pd  # type: ignore[import-untyped]  # has no stubs

        group = self._group(key, bytes(state.get[0]) if state.exists else b"")
        heard = group.change(net_changes(self.kept.query.relations, frames))
        if group.state:
            state.update((group.state,))
        elif state.exists:
            state.remove()
        self._remember(key, group)
        rows = [self._output_row(each) for each in heard]
        names = [*self.columns, operation_name(self.columns)]
        yield pd.DataFrame(rows, columns=names, dtype=object)

    def _group(self, key: Row, state: bytes) -> KeptGroup:
        group = _KEPT.pop((self.kept.digest, key), None)
        if group is not None and group.state == state:
            return group
        stored = pickle.loads(state) if state else {}
        rows = {name: Counter(each) for name, each in stored.items()}
        return KeptGroup(state, rows, self.kept.group(rows))

    def _remember(self, key: Row, group: KeptGroup) -> None:
        _KEPT[self.kept.digest, key] = group
        while len(_KEPT) > KEPT_GROUPS:
            _KEPT.popitem(last=False)

    def _output_row(self, change: OutputChange) -> Row:
        if change.after is None:
            return (*change.row, *[None] * (len(self.columns) - len(change.row)), DELETE)
        payload = change.after if isinstance(change.after, tuple) else (change.after,)
        return (*change.row, *payload, UPSERT)


def net_changes(relations: Sequence[str], frames: Iterable[Any]) -> Groups:
    """The rows of a batch with the sums of their multiplicities, by relation."""
    changes: dict[str, Counter[Row]] = {name: Counter() for name in relations}
    for frame in frames:
        signs = frame[MULTIPLICITY].tolist()
        for number, name in enumerate(relations):
            for row, sign in zip(frame[f"row{number}"].tolist(), signs, strict=True):
                if row is not None:
                    values = row.values() if isinstance(row, Mapping) else row
                    changes[name][tuple(values)] += int(sign)
    return {
        name: {row: count for row, count in each.items() if count}
        for name, each in changes.items()
        if any(each.values())
    }
