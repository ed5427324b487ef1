"""A view in SQL, kept up to date in one process."""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from viewkeep.arguments import checked
from viewkeep.engine.frames import as_table
from viewkeep.engine.gate import Gate
from viewkeep.engine.result import Result, short
from viewkeep.engine.save import damaged_file_error, read_state, write_state
from viewkeep.engine.subscribers import OutputChange, Subscribers
from viewkeep.errors import QueryError, SchemaError, ViewkeepError, did_you_mean
from viewkeep.maintainer import Maintainer
from viewkeep.network.bags import Row
from viewkeep.network.declared_tables import declare_tables
from viewkeep.network.flow import Network
from viewkeep.network.table_rows import TableRows
from viewkeep.options import Options
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.query.tables import Table
from viewkeep.sql.stages.model import Kind, StagePlan, kept_places
from viewkeep.sql.stages.plan import plan_sql

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs


@dataclass(frozen=True)
class ViewSettings:
    """A view, its tables, and how it is maintained."""

    sql: str
    tables: tuple[tuple[str, Table], ...]
    plan: StagePlan
    options: Options
    insert_only: bool
    trust: bool


class SqlMaintainer(Result):
    """A view in SQL kept up to date; made by `maintain(sql, tables=...)`.

    Its rows always equal the query run from scratch on what was loaded and updated. An error
    leaves everything as it was. Threads may share it: they take turns. Copies and pickles hold the
    rows and no subscribers.
    """

    def __init__(self, settings: ViewSettings) -> None:
        self._settings = settings
        self._tables = {
            name: TableRows(name, table, settings.insert_only, settings.trust)
            for name, table in settings.tables
        }
        self._network = Network(settings.plan, self._maintainer_of)
        self._subscribers = Subscribers(lambda row: None)
        self._gate = Gate(self._subscribers.deliver)

    def _maintainer_of(self, query: ConjunctiveQuery) -> Maintainer:
        """The maintainer of a stage; what is told of tables holds where rows come from them."""
        settings, options = self._settings, self._settings.options
        if len(settings.plan.stages) > 1:
            options = replace(options, mode="eager")
            query = replace(query, constraints=replace(query.constraints, static=frozenset()))
        elif settings.insert_only:
            query = query.with_constraints(Constraints(insert_only=True))
        if len(query.atoms) == 1:
            options = replace(options, strategy="auto")
        return Maintainer(query, options)

    def __repr__(self) -> str:
        text = short(" ".join(self._settings.sql.split()))
        return f"<SqlMaintainer of {text}>"

    def explain(self) -> str:
        """The queries that the view is kept by, with strategy and engine of each."""
        texts = [member.maintainer.explain() for member in self._network.members]
        return "\n".join(texts)

    # --- changing ---------------------------------------------------------------------------------

    def load(self, data: Mapping[str, Any]) -> None:
        """Add rows to tables, quickly while they are empty; all or, if one is refused, none."""
        if not isinstance(data, Mapping):
            raise SchemaError(f"load() takes rows by table, not {type(data).__name__}")
        self._change({table: (rows, None) for table, rows in data.items()}, loading=True)

    def update(self, table: str, row: Row | Mapping[str, Any], multiplicity: int = 1) -> None:
        """Insert one row; with a negative multiplicity, delete it."""
        self._change({table: ([row], [multiplicity])})

    def update_batch(
        self, table: str, rows: Any, multiplicities: Iterable[int] | None = None
    ) -> None:
        """Many updates to one table; all or, if one is refused, none."""
        self._change({table: (rows, multiplicities)})

    def update_tables(self, batches: Mapping[str, tuple[Any, Iterable[int] | None]]) -> None:
        """Rows and multiplicities of several tables, as one change; all or none."""
        if not isinstance(batches, Mapping):
            raise SchemaError(f"update_tables() takes rows by table, not {batches!r}")
        self._change(batches)

    def _change(
        self, batches: Mapping[str, tuple[Any, Iterable[int] | None]], loading: bool = False
    ) -> None:
        tables = {name: (as_table(rows, name), counts) for name, (rows, counts) in batches.items()}
        with self._gate:
            if self._change_columns(tables, loading):
                return
            bags = {
                name: self._table(name).bag(rows, counts, loading)
                for name, (rows, counts) in tables.items()
            }
            changed = self._network.apply(bags)
            for name, bag in bags.items():
                self._tables[name].keep(bag)
            self._subscribers.queue(changed)

    def _change_columns(
        self, tables: Mapping[str, tuple[Any, Iterable[int] | None]], loading: bool
    ) -> bool:
        """Bring frames in by their columns; whether that could be done."""
        frames = dict[str, Any]()
        for name, (rows, _) in tables.items():
            feed, frame = self._network.direct_feed(name), self._table(name).frame(rows)
            if feed is None or frame is None:
                return False
            frames[name] = frame.select(list(feed.columns))
        if loading:
            self._network.root.load_frames(frames)
        elif len(frames) == 1:
            [(name, (_, counts))] = tables.items()
            self._network.root.take_frame(name, frames[name], counts)
        return loading or len(frames) == 1

    def _table(self, name: str) -> TableRows:
        if not isinstance(name, str) or name not in self._tables:
            hint = did_you_mean(str(name), self._tables)
            raise QueryError(f'no table "{name}" ({", ".join(self._tables)}){hint}')
        return self._tables[name]

    # --- reading ----------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the view."""
        return tuple(field.name for field in self._settings.plan.schema)

    @property
    def schema(self) -> "pa.Schema":
        """The columns of the view and their Arrow types."""
        from viewkeep.tables.arrow_rows import arrow_schema  # loads Arrow

        return arrow_schema(self._settings.plan.schema)

    def enumerate(self) -> Iterator[tuple[Row, int]]:
        """Distinct rows with their numbers of copies; updating meanwhile ends it with an error."""
        return self._network.rows()

    def __iter__(self) -> Iterator[Row]:
        """The rows, each as often as it is there."""
        return (row for row, count in self.enumerate() for _ in range(count))

    def __len__(self) -> int:
        """The number of rows, copies included."""
        with self._gate:
            return sum(count for _, count in self.enumerate())

    def to_arrow(self) -> "pa.Table":
        """The rows as an Arrow table of one state, in the types of the view."""
        import pyarrow as pa

        from viewkeep.tables.arrow_rows import to_arrow

        with self._gate:
            rows = list(self)
        try:
            return to_arrow(self._settings.plan.schema, rows).cast(self.schema)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            raise SchemaError(f"{self!r}: a value does not fit its type: {error}") from error

    def value(self) -> Row | None:
        """The only row of the view, as of one without groups; None where there is none."""
        with self._gate:
            rows = list(islice(self, 2))
        if len(rows) > 1:
            raise QueryError(f"{self!r} has several rows: iterate over it")
        return rows[0] if rows else None

    def lookup(self, key: Row) -> Row | None:
        """The row of one group by the values of its GROUP BY columns, in the order of SELECT."""
        variables = self._group_columns()
        if not isinstance(key, tuple) or len(key) != len(variables):
            names = ", ".join(variables.values())
            raise SchemaError(f"{key!r} is no tuple of the columns of the groups ({names})")
        root, values = self._network.root, dict(zip(variables, key, strict=True))
        group = tuple(values[variable] for variable in root.stage.query.outputs)
        with self._gate:
            payload = root.maintainer.lookup(group)
            return None if payload is None else self._network.view_row(group, payload)

    def _group_columns(self) -> dict[str, str]:
        """The variables of the groups, and their columns in the view."""
        root = self._network.root.stage
        if root.kind is not Kind.GROUPS:
            raise QueryError(f"{self!r} is not read from groups: iterate over it")
        places = kept_places(root, self._settings.plan.steps)
        columns = dict[str, str]()
        for place, variable in places.items():
            columns.setdefault(variable, self.columns[place])
        return columns

    # --- subscribers ------------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[list[OutputChange]], None]) -> int:
        """Call with the rows that came or went after every change, with their numbers of copies
        before and after; None stands for absent. Returns the token that `unsubscribe` takes."""
        if not callable(callback):
            raise QueryError(f"subscribe() takes a function, not {callback!r}")
        with self._gate:
            self._network.root.listen()
            return self._subscribers.add(callback)

    def unsubscribe(self, token: int) -> None:
        """Call a subscriber no more."""
        with self._gate:
            self._subscribers.remove(token)
            if not self._subscribers:
                self._network.root.stop_listening()

    # --- saving -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, which is replaced only when all is written."""
        write_state(path, {"view": self._pickled()})

    @staticmethod
    @checked
    def restore(path: str | os.PathLike[str]) -> "SqlMaintainer":
        """Read what `save` wrote. Only restore files you trust: they hold pickled values."""
        state = read_state(path)
        if "view" not in state:
            raise ViewkeepError(f"cannot restore {path}: it holds no view: use Maintainer.restore")
        try:
            return _unpickled(state["view"])
        except Exception as error:  # a file that was tampered with may hold anything
            raise damaged_file_error(path, error) from error

    def __reduce__(self) -> tuple[Callable[[bytes], "SqlMaintainer"], tuple[bytes]]:
        return _unpickled, (self._pickled(),)

    def _pickled(self) -> bytes:
        with self._gate:
            members = [(each.maintainer, each.is_new) for each in self._network.members]
            keys = {name: rows.by_key for name, rows in self._tables.items()}
            return pickle.dumps((self._settings, members, keys), protocol=5)


def _unpickled(pickled: bytes) -> SqlMaintainer:
    """What `SqlMaintainer` pickled."""
    settings, members, keys = pickle.loads(pickled)
    view = SqlMaintainer(settings)
    view._network.resume(members)
    for name, by_key in keys.items():
        view._tables[name].by_key = by_key
    return view


def maintain_sql(
    sql: str,
    tables: Any,
    options: Options,
    keys: Iterable[str] = (),
    static: Iterable[str] = (),
    insert_only: bool = False,
    trust: bool = False,
) -> SqlMaintainer:
    """A maintainer of a view over declared tables."""
    if options.ring is not None or options.lifts is not None:
        raise QueryError("a view in SQL has aggregates of its own: give no ring or lifts")
    if not isinstance(trust, bool):
        raise QueryError(f"trust={trust!r}: expected True or False")
    declared = declare_tables(tables, keys, static)
    plan = plan_sql(sql, declared)
    if len(plan.stages) > 1 and not options.keep_inputs:
        raise ViewkeepError("keep_inputs=False: this view is kept by queries that feed each other")
    settings = ViewSettings(sql, tuple(declared.items()), plan, options, insert_only, trust)
    return SqlMaintainer(settings)
