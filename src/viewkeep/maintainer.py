"""Maintenance of queries in one process: the whole flow from a query to a live result."""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

from viewkeep.analysis import Analysis, analyze_query
from viewkeep.arguments import checked
from viewkeep.engine.frames import as_table
from viewkeep.engine.intake import (
    Row,
    check_hashable,
    check_inputs,
)
from viewkeep.engine.live import LiveOptions, LiveQuery
from viewkeep.engine.query_result import QueryResult
from viewkeep.engine.result import short
from viewkeep.engine.runner import Runner, restore_compiled
from viewkeep.engine.save import damaged_file_error, is_arrow_file, read_state
from viewkeep.engine.subscribers import OutputChange as OutputChange
from viewkeep.engine.switching import INSTALL, missing_libraries, payload_obstacle
from viewkeep.errors import MissingLibraryError, QueryError, SchemaError, ViewkeepError
from viewkeep.options import Options
from viewkeep.plan.adaptive.thresholds import Thresholds
from viewkeep.plan.choose import plan
from viewkeep.plan.payload import Payload, plan_payload
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.query.notation.parse import parse
from viewkeep.rings import Ring

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # has no stubs

    from viewkeep.network.sql_maintainer import SqlMaintainer
    from viewkeep.workload import Workload


class Maintainer(QueryResult):
    """A query kept up to date; made by `maintain`.

    Results always equal the query run from scratch on what was loaded and updated, also while
    some multiplicities are negative. An error leaves everything as it was. Threads may share a
    maintainer: they take turns. Copies and pickles hold the rows and no subscribers.
    """

    def __init__(
        self, query: ConjunctiveQuery, options: Options, program: Program | None = None
    ) -> None:
        self.query, self.options = query, options
        self.payload: Payload = plan_payload(query, options.ring, options.lifts)
        self.program = program or plan(
            query,
            options.strategy,
            options.output,
            options.thresholds,
            self.payload.ring.subtractable,
        )
        # Counts can always be added and multiplied; other payloads may refuse halfway.
        fallible = bool(query.aggregates) or options.ring is not None
        live = LiveOptions(
            options.engine, options.mode == "lazy", options.check, options.keep_inputs, fallible
        )
        self._live = LiveQuery(query, self.payload, self.program, live)
        self._gate = self._live.gate

    def __repr__(self) -> str:
        return f"<Maintainer of {short(str(self.query))} by {self.program.strategy}>"

    # --- changing ---------------------------------------------------------------------------------

    def load(self, data: Mapping[str, Any]) -> None:
        """Preprocessing: fill the relations, in one pass where the query's class allows it.

        On a maintainer that already holds data, the rows are added as a batch.
        """
        if not isinstance(data, Mapping):
            raise SchemaError(f"load() takes rows by relation, not {type(data).__name__}")
        tables = {relation: as_table(rows, relation) for relation, rows in data.items()}
        with self._gate:
            self._live.load(tables)

    def update(self, relation: str, row: Row, multiplicity: int = 1) -> None:
        """Insert one tuple; with a negative multiplicity, delete it."""
        live = self._live
        if not live.runner.careful:
            with self._gate.lock:
                if live.update_directly(relation, row, multiplicity):
                    return
        with self._gate:
            live.update(relation, row, multiplicity)
            # Such rows may go to machine code from now on, without this method where they can.
            faster = live.install_update(relation, MethodType(Maintainer.update, self))
            if faster is not None:
                self.update = faster  # type: ignore[method-assign]  # it calls this otherwise

    def update_batch(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None = None
    ) -> None:
        """Many updates to one relation; all or, if one is refused, none."""
        self.update_batches([(relation, rows, multiplicities)])

    def update_batches(self, batches: list[tuple[str, Any, Iterable[int] | None]]) -> None:
        """Many updates to several relations as one: each with its rows and multiplicities.

        All or, if one is refused, none; subscribers hear of one change.
        """
        batch_list = batches if isinstance(batches, list) else [batches]
        if not all(isinstance(each, tuple) and len(each) == 3 for each in batch_list):
            raise SchemaError(
                "update_batches() takes a list of tuples: relation, rows and multiplicities"
            )
        tables = [(name, as_table(rows, name), counts) for name, rows, counts in batch_list]
        with self._gate:
            self._live.update_batches(tables)

    def exclusive(self) -> AbstractContextManager[None]:
        """A block in which no other thread reads or changes; subscribers hear after its end."""
        return self._gate

    def check_batch(
        self,
        relation: str,
        rows: Any,
        multiplicities: Iterable[int] | None = None,
        loading: bool = False,
    ) -> None:
        """Refuse rows that `update_batch` or `load` would refuse, and change nothing."""
        self._live.net_changes(relation, as_table(rows, relation), multiplicities, loading)

    def flush(self) -> None:
        """Apply what a lazy maintainer has put off; reading does this by itself."""
        with self._gate:
            self._live.flush()

    # --- reading ----------------------------------------------------------------------------------

    def enumerate(self, given: Mapping[str, Any] | None = None) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples, in head order, with their payloads.

        The payload is the count, or a tuple of the aggregates. Inputs of an access pattern are
        given. Updating meanwhile ends the enumeration with an error.
        """
        inputs = check_inputs(self.query, given)
        self.flush()
        return self._live.enumerate(inputs, self._live.version)

    def enumerate_batches(
        self, given: Mapping[str, Any] | None = None, rows: int = 1 << 16
    ) -> Iterator["RecordBatch"]:
        """The output as Arrow record batches of at most so many rows.

        Columns are the outputs, then `count`, or a column for each aggregate.
        """
        inputs = check_inputs(self.query, given)
        if type(rows) is not int or not 0 < rows < 1 << 31:
            raise QueryError(f"rows={rows!r}: expected a whole number from 1 to 2^31 - 1")
        with self._gate:
            self._live.flush()
            return self._live.enumerate_batches(inputs, rows)

    def lookup(self, row: Row, given: Mapping[str, Any] | None = None) -> Any:
        """The payload of one output tuple; zero, or None for aggregates, if it is absent."""
        inputs = check_inputs(self.query, given)
        if not isinstance(row, tuple) or len(row) != len(self.query.outputs):
            raise SchemaError(f"{row!r} does not fit the output ({', '.join(self.query.outputs)})")
        check_hashable(row)
        with self._gate:
            self._live.flush()
            return self._user_payload(self._live.element(row, inputs))

    def value(self, given: Mapping[str, Any] | None = None) -> Any:
        """The result of a query without output variables."""
        if self.query.outputs:
            head = ", ".join(self.query.outputs)
            raise QueryError(f"query {self.query.name} has outputs ({head}): use enumerate()")
        inputs = check_inputs(self.query, given)
        with self._gate:
            self._live.flush()
            return self.payload.result(self._live.element((), inputs))

    def exists(self, given: Mapping[str, Any] | None = None) -> bool:
        """Whether there is any output tuple; without outputs, whether the count is not zero."""
        if self.query.outputs:
            return next(self.enumerate(given), None) is not None
        inputs = check_inputs(self.query, given)
        with self._gate:
            self._live.flush()
            return not self.payload.ring.is_zero(self._live.element((), inputs))

    def subscribe(self, callback: Callable[[list[OutputChange]], None]) -> int:
        """Call with the change of the output after every update or batch; returns the token that
        `unsubscribe` takes.

        Rows are outputs, then inputs. A tuple whose min or max cannot be told, because deletes
        have overtaken their inserts, is told when it can. A callback may update and read in its
        turn: what that changes is told next. All hear every change in its order, but with several
        threads maybe from the call of another one.
        """
        self._check_subscriber(callback)
        with self._gate:
            self._live.flush()
            self._live.runner.stop_singles()
            return self._live.subscribers.add(callback)

    def subscribe_batches(self, callback: Callable[["RecordBatch"], None]) -> int:
        """Like `subscribe`, with the change as an Arrow record batch: the outputs, then the counts
        or aggregates before and after, which are null where a tuple is absent.

        >>> from viewkeep import maintain
        >>> live, heard = maintain("Q(a) = R(a, b)", engine="compiled"), []
        >>> token = live.subscribe_batches(heard.append)
        >>> live.update_batch("R", [(1, 2), (1, 3)])
        >>> heard[0].to_pylist()
        [{'a': 1, 'count before': None, 'count after': 2}]
        """
        self._check_subscriber(callback)
        if missing := missing_libraries():
            raise MissingLibraryError(f"Arrow batches need {missing}: {INSTALL}")
        with self._gate:
            self._live.flush()
            self._live.runner.stop_singles()
            return self._live.subscribers.add_for_batches(callback)

    def _check_subscriber(self, callback: object) -> None:
        """Refuse what cannot be told, or called."""
        if self.query.inputs and not self.program.listed:
            raise QueryError(
                f"query {self.query.name} has inputs: its changes are told where the output is "
                'kept, as with strategy="viewtree", output="list"'
            )
        if not self.options.keep_inputs:
            raise QueryError("subscribe() needs the inputs: use keep_inputs=True")
        if not callable(callback):
            raise QueryError(f"subscribe() takes a function, not {callback!r}")

    def unsubscribe(self, token: int) -> None:
        """Call a subscriber no more."""
        with self._gate:
            self._live.subscribers.remove(token)
            if not self._live.subscribers:
                self._live.runner.resume_singles()

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that a tuple of an atom of the query would make."""
        with self._gate:
            self._live.flush()
            return self._live.runner.output_change(atom, row, payload)

    @property
    def analysis(self) -> Analysis:
        """What is possible for the query."""
        return analyze_query(self.query)

    def _user_payload(self, element: Any) -> Any:
        if self.query.aggregates and self.payload.ring.is_zero(element):
            return None
        return self.payload.result(element)

    # --- saving -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, which is replaced only when all is written.

        The compiled engine writes an Arrow file.
        """
        header = {"query": self.query, "options": self.options, "program": self.program}
        with self._gate:
            self._live.save(path, header)

    @staticmethod
    @checked
    def restore(path: str | os.PathLike[str]) -> "Maintainer":
        """Read what `save` wrote. Only restore files you trust: they hold pickled values.

        The file of a compiled engine is mapped into memory, and must stay as it is meanwhile.
        """
        if is_arrow_file(path):
            return Maintainer._from_arrow(path)
        state = read_state(path)
        if "view" in state:
            raise ViewkeepError(
                f"cannot restore {path}: it holds a view: use SqlMaintainer.restore"
            )
        try:
            maintainer = Maintainer(state["query"], state["options"], state["program"])
            maintainer._live.restore(state)
        except Exception as error:  # a file that was tampered with may hold anything
            raise damaged_file_error(path, error) from error
        return maintainer

    def __reduce__(self) -> tuple[Callable[[bytes], "Maintainer"], tuple[bytes]]:
        """A pickle of the query, its options and its rows; what cannot be pickled is refused."""
        with self._gate:
            state = (self.query, self.options, self.program, self._live.contents())
        try:
            return _unpickled, (pickle.dumps(state, protocol=5),)
        except Exception as error:  # values and functions of the user's own may refuse in any way
            raise ViewkeepError(f"cannot copy or pickle {self!r}: {error}") from error

    @staticmethod
    def _from_arrow(path: str | os.PathLike[str]) -> "Maintainer":
        def new_maintainer(header: Mapping[str, Any]) -> tuple["Maintainer", Runner]:
            maintainer = Maintainer(header["query"], header["options"], header["program"])
            return maintainer, maintainer._live.runner

        restored = restore_compiled(path, new_maintainer)
        restored._live.mark_restored()
        return restored


def _unpickled(pickled: bytes) -> Maintainer:
    """What `Maintainer.__reduce__` pickled."""
    query, options, program, contents = pickle.loads(pickled)
    copy = Maintainer(query, options, program)
    copy._live.fill(contents)
    return copy


@overload
def maintain(  # type: ignore[overload-overlap]  # with tables, text is SQL
    query: str,
    strategy: str = ...,
    engine: str = ...,
    *,
    tables: Any,
    keys: Iterable[str] = ...,
    static: Iterable[str] = ...,
    insert_only: bool = ...,
    mode: str = ...,
    trust: bool = ...,
) -> "SqlMaintainer": ...


@overload
def maintain(query: ConjunctiveQuery | str, *args: Any, **options: Any) -> Maintainer: ...


@overload
def maintain(query: Sequence[ConjunctiveQuery], *args: Any, **options: Any) -> "Workload": ...


def maintain(
    query: ConjunctiveQuery | str | Sequence[ConjunctiveQuery],
    strategy: str = "auto",
    engine: str = "auto",
    epsilon: float | Mapping[str, float] | str | None = None,
    ring: Ring[Any] | None = None,
    output: str = "factorized",
    mode: str = "eager",
    fds: Iterable[str] = (),
    static: Iterable[str] = (),
    insert_only: bool = False,
    foreign_keys: Iterable[str] = (),
    keys: Iterable[str] = (),
    degrees: Iterable[str] = (),
    lifts: Mapping[str, Callable[[Any], Any]] | None = None,
    space: str = "fast",
    check: bool = False,
    keep_inputs: bool = True,
    tables: Any = None,
    trust: bool = False,
) -> Any:
    """Keep a query's result fresh under updates; several queries may ride on each other.

    With `tables`, the query is SQL over them: CREATE TABLE statements, or by name `vk.Table`, types
    by column, Arrow schemas, or frames, of which the types are read and no rows. Rows are checked
    against types and keys, unless `trust` says that they need not be.

    `epsilon` sets what is heavy for the adaptive strategy: one exponent of N, one for each
    relation, or a preset ("first-order", "factorized", "factorized:R"); by default the best one, as
    `explain` tells it. `space="linear"` splits
    counts on all join variables, so that views take O(N) for an epsilon of 1/2 or more. `check`
    tests the invariants of heavy and light parts after every update. `keep_inputs=False` lets
    the compiled engine forget rows that no later update needs: faster, but without subscribers.

    >>> live = maintain("Q(y, x, z) = R(y, x) * S(y, z)")
    >>> live.update("R", (1, 2))
    >>> live.update("S", (1, 3))
    >>> list(live.enumerate())
    [((1, 2, 3), 1)]
    """
    thresholds = Thresholds.read(epsilon, space)
    constraints = Constraints.parse(fds, keys, foreign_keys, degrees, static, insert_only)
    options = Options(strategy, output, mode, ring, lifts, thresholds, check, engine, keep_inputs)
    if tables is not None:
        from viewkeep.network.sql_maintainer import maintain_sql  # it is made of maintainers

        if fds or foreign_keys or degrees:
            raise QueryError("fds, foreign_keys and degrees of SQL are declared with its tables")
        if not isinstance(query, str):
            raise QueryError(f"tables are for a view in SQL, not for {query!r}")
        return maintain_sql(query, tables, options, keys, static, insert_only, trust)
    parsed = parse(query) if isinstance(query, str) else query
    if isinstance(parsed, ConjunctiveQuery):
        return Maintainer(parsed.with_constraints(constraints), options)
    if ring is not None or lifts is not None:
        raise QueryError("several queries are maintained over counts: give no ring or lifts")
    from viewkeep.workload import Workload  # a workload is made of maintainers

    if not isinstance(parsed, Iterable):
        raise QueryError(f"expected a query or a list of queries, not {parsed!r}")
    queries = [each if isinstance(each, ConjunctiveQuery) else parse(each) for each in parsed]
    return Workload(queries, constraints, options)


def engine_obstacle(query: ConjunctiveQuery) -> str:
    """Why the compiled engine cannot run a query; nothing if it can.

    >>> engine_obstacle(parse("Q(a; min(b)) = R(a, b)"))
    ''
    >>> engine_obstacle(parse("Q(a; min(-b)) = R(a, b)"))
    'min(-b) is of an expression, which machine code does not keep in order'
    """
    return payload_obstacle(plan_payload(query), query)
