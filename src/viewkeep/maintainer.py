"""Maintenance of queries in one process: the whole flow from a query to a live result."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

from viewkeep.analysis import Analysis, analyze_query
from viewkeep.arguments import checked
from viewkeep.engine.frames import as_table
from viewkeep.engine.gate import Gate
from viewkeep.engine.intake import (
    Change,
    Row,
    check_hashable,
    given_inputs,
    intakes_of,
    known_relation,
)
from viewkeep.engine.interpreter.check import Checker
from viewkeep.engine.interpreter.partitions import Partition
from viewkeep.engine.pending import Pending
from viewkeep.engine.runner import Runner, restore_compiled
from viewkeep.engine.save import damaged, is_arrow_file, read_state
from viewkeep.engine.subscribers import OutputChange as OutputChange
from viewkeep.engine.subscribers import Subscribers
from viewkeep.engine.switching import Engine, Engines, obstacle
from viewkeep.errors import QueryError, SchemaError, ViewkeepError
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

    from viewkeep.workload import Workload

_PORTION = 64
"""Output tuples that the compiled engine gives at a time."""

_OFTEN = 4096
"""After so many single updates, it is asked whether compiling pays."""


class Maintainer:
    """A query kept up to date; made by `maintain`.

    Results always equal the query run from scratch on what was loaded and updated, also while
    some multiplicities are negative. An error leaves everything as it was. Threads may share a
    maintainer: they take turns.
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
        self._intakes = intakes_of(query, self.payload)
        self._subscribers = Subscribers(self._state)
        self._pending = Pending(self.payload.ring)
        self._lazy = options.mode == "lazy"
        self._version = 0
        self._checker = Checker(self.program, self.payload.ring) if options.check else None
        engines = Engines(
            options.engine, self.program, self.payload, query, options.check, options.keep_inputs
        )
        # Counts can always be added and multiplied; other payloads may refuse halfway.
        fallible = bool(query.aggregates) or options.ring is not None
        self._gate = Gate(self._subscribers.deliver)
        self._lock = self._gate.lock
        self._runner = Runner(engines, self.payload.ring, fallible, self._checker, self._gate)
        self._singles = self._runner.singles

    def __repr__(self) -> str:
        return f"<Maintainer of {self.query} by {self.program.strategy}>"

    @property
    def engine(self) -> Engine:
        """What runs the program now."""
        return self._runner.engine

    @property
    def engine_reason(self) -> str:
        """Why the compiled engine is not used; nothing if it is, or may come to be."""
        return self._runner.reason

    def explain(self) -> str:
        """How the query is maintained: its strategy, the engine, and why it is that one.

        >>> print(maintain("Q(a; min(b)) = R(a, b)", engine="compiled").explain())
        Q(a; min(b)) = R(a, b)
        strategy viewtree
        engine reference: the ordered multisets are not numbers of 64 bits
        """
        name = "compiled" if self._runner.compiled else "reference"
        reason = f": {self.engine_reason}" if self.engine_reason else ""
        return f"{self.query}\nstrategy {self.program.strategy}\nengine {name}{reason}"

    # --- changing ---------------------------------------------------------------------------------

    def load(self, data: Mapping[str, Any]) -> None:
        """Preprocessing: fill the relations, in one pass where the query's class allows it.

        On a maintainer that already holds data, the rows are added as a batch.
        """
        if not isinstance(data, Mapping):
            raise SchemaError(f"load() takes rows by relation, not {type(data).__name__}")
        tables = {relation: as_table(rows, relation) for relation, rows in data.items()}
        with self._gate:
            self._load(tables)

    def _load(self, data: Mapping[str, Any]) -> None:
        fresh = not (self._now or self._pending or self._subscribers)
        if fresh and self._runner.load_tables(data):
            self._version += 1
            return
        changes = [
            change
            for relation, rows in data.items()
            for change in self._checked(relation, rows, None, loading=True)
        ]
        if not fresh:
            if all(atom in self._runner.triggers for atom, _, _ in changes):
                self._take(changes)
            else:
                self._reload(changes)
            return
        self._runner.load(changes)
        self._version += bool(changes)

    def update(self, relation: str, row: Row, multiplicity: int = 1) -> None:
        """Insert one tuple; with a negative multiplicity, delete it."""
        runner = self._runner
        if not runner.careful:
            with self._lock:
                if not (self._lazy or self._subscribers or runner.careful):
                    intake = known_relation(self._intakes, relation, self.query)
                    changes = intake.changes(row, multiplicity)
                    if (self._version + 1) % _OFTEN:
                        self._version += 1
                        for atom, key, payload in changes:
                            runner.triggers[atom](key, payload)
                        return
                    runner.note(_OFTEN)  # from now on another engine may run, which can refuse
        with self._gate:
            self._update(relation, row, multiplicity)

    def _update(self, relation: str, row: Row, multiplicity: int) -> None:
        """One tuple, whatever engine runs."""
        try:
            single = self._singles.get(relation)
        except TypeError:  # what cannot be hashed is the name of no relation
            single = None
        if single is not None:
            lost = single(row, multiplicity)
            if lost is None:
                self._version += 1
                return
            if lost:
                self._runner.overflowed()
        changes = known_relation(self._intakes, relation, self.query).changes(row, multiplicity)
        self._take(changes)
        if self._runner.compiled and not self._lazy:
            self._learn(relation)

    def _learn(self, relation: str) -> None:
        """Such rows may go to machine code from now on, without this method where they can."""
        made = self._runner.learn(relation, MethodType(Maintainer.update, self), self._redo)
        if made is not None:
            self.update = made  # type: ignore[method-assign]  # it calls the method otherwise

    def _redo(self, relation: str, row: Row, multiplicity: int = 1) -> None:
        """An update that left 64 bits in machine code, which has taken it back."""
        with self._gate:
            self._runner.overflowed()
            self._update(relation, row, multiplicity)

    def update_batch(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None = None
    ) -> None:
        """Many updates to one relation; all or, if one is refused, none."""
        table = as_table(rows, relation)
        with self._gate:
            if not self._lazy and not isinstance(table, Iterator):
                known_relation(self._intakes, relation, self.query)
                if self._runner.apply_table(relation, table, multiplicities):
                    self._version += 1
                    return
            self._take(self._checked(relation, table, multiplicities))

    def check_batch(
        self,
        relation: str,
        rows: Any,
        multiplicities: Iterable[int] | None = None,
        loading: bool = False,
    ) -> None:
        """Refuse rows that `update_batch` or `load` would refuse, and change nothing."""
        self._checked(relation, as_table(rows, relation), multiplicities, loading)

    def _checked(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None, loading: bool = False
    ) -> list[Change]:
        """The net changes of a batch, atom by atom, after every row was checked."""
        intake = known_relation(self._intakes, relation, self.query)
        return sorted(intake.net_changes(rows, multiplicities, loading), key=itemgetter(0))

    def _take(self, changes: list[Change]) -> None:
        self._version += 1
        if self._lazy:
            self.engine.counter[0] += self._pending.add(changes)
        else:
            self._subscribers.tell(self._apply(changes))

    def flush(self) -> None:
        """Apply what a lazy maintainer has put off; reading does this by itself."""
        with self._gate:
            if self._pending:
                before = self._apply(self._pending.changes())
                self._pending.clear()
                self._subscribers.tell(before)

    def _catch_up(self) -> None:
        if self._lazy:
            self.flush()

    def _apply(self, changes: list[Change]) -> dict[Row, Any]:
        return self._runner.apply(changes, self._subscribers)

    def _reload(self, changes: Iterable[Change]) -> None:
        """Add rows of static relations, which no trigger takes: preprocessing once more."""
        self.flush()
        before = self._subscribers.start()
        if self._subscribers:
            self._subscribers.note(before, self._heads())
        self._runner.add(changes)
        self._version += 1
        if self._subscribers:
            self._subscribers.tell(dict.fromkeys(self._heads()) | before)

    def _heads(self) -> list[Row]:
        """All output tuples, with the inputs where the output is a list over them."""
        if self.program.listed is not None:
            return list(self.engine.maps[self.program.listed])
        return [row for row, _ in self._runner.enumerate({})]

    # --- reading ----------------------------------------------------------------------------------

    def enumerate(self, given: Mapping[str, Any] | None = None) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples, in head order, with their payloads.

        The payload is the count, or a tuple of the aggregates. Inputs of an access pattern are
        given. Updating meanwhile ends the enumeration with an error.
        """
        inputs = given_inputs(self.query, given)
        self._catch_up()
        return self._read(inputs, self._now)

    def _read(self, inputs: dict[str, Any], version: int) -> Iterator[tuple[Row, Any]]:
        """Tuple by tuple, while nothing changes; other threads have their turn in between."""
        width, result = len(self.query.outputs), self.payload.result
        with self._gate:
            self._check_version(version)
            rows, compiled = self._runner.enumerate(inputs), self._runner.compiled
        while not compiled:
            with self._lock:
                self._check_version(version)
                for row, payload in rows:
                    step = row[:width], result(payload)
                    break
                else:
                    return
            yield step
        while True:
            with self._gate:
                self._check_version(version)
                portion = list(islice(rows, _PORTION))
            if not portion:
                return
            for row, payload in portion:
                yield row[:width], result(payload)
                self._check_version(version)

    def enumerate_batches(
        self, given: Mapping[str, Any] | None = None, rows: int = 1 << 16
    ) -> Iterator["RecordBatch"]:
        """The output as Arrow record batches of at most so many rows.

        Columns are the outputs, then `count`, or a column for each aggregate.
        """
        inputs = given_inputs(self.query, given)
        if type(rows) is not int or not 0 < rows < 1 << 31:
            raise QueryError(f"rows={rows!r}: expected a whole number from 1 to 2^31 - 1")
        with self._gate:
            self.flush()
            found = self._runner.batches(inputs, self.query, self.payload, rows)
            return self._batches(found, self._now)

    def _batches(self, found: Iterator["RecordBatch"], version: int) -> Iterator["RecordBatch"]:
        while True:
            with self._gate:
                self._check_version(version)
                batch = next(found, None)
            if batch is None:
                return
            yield batch

    def memory(self) -> dict[str, int]:
        """Bytes that the compiled engine holds for each map; fused maps share them."""
        with self._gate:
            return self._runner.memory()

    @property
    def _now(self) -> int:
        """A number that every change changes."""
        return self._version + self._runner.updates

    def _check_version(self, version: int) -> None:
        if self._now != version:
            raise ViewkeepError("the data changed during an enumeration: start a new one")

    def lookup(self, row: Row, given: Mapping[str, Any] | None = None) -> Any:
        """The payload of one output tuple; zero, or None for aggregates, if it is absent."""
        inputs = given_inputs(self.query, given)
        if not isinstance(row, tuple) or len(row) != len(self.query.outputs):
            raise SchemaError(f"{row!r} does not fit the output ({', '.join(self.query.outputs)})")
        check_hashable(row)
        with self._gate:
            self._catch_up()
            return self._present(self._element(row, inputs))

    def value(self, given: Mapping[str, Any] | None = None) -> Any:
        """The result of a query without output variables."""
        if self.query.outputs:
            head = ", ".join(self.query.outputs)
            raise QueryError(f"query {self.query.name} has outputs ({head}): use enumerate()")
        inputs = given_inputs(self.query, given)
        with self._gate:
            self._catch_up()
            return self.payload.result(self._element((), inputs))

    def exists(self, given: Mapping[str, Any] | None = None) -> bool:
        """Whether there is any output tuple; without outputs, whether the count is not zero."""
        if self.query.outputs:
            return next(self.enumerate(given), None) is not None
        inputs = given_inputs(self.query, given)
        with self._gate:
            self._catch_up()
            return not self.payload.ring.is_zero(self._element((), inputs))

    def subscribe(self, callback: Callable[[list[OutputChange]], None]) -> None:
        """Call with the change of the output after every update or batch.

        Rows are outputs, then inputs. A tuple whose min or max cannot be told, because deletes
        have overtaken their inserts, is told when it can. A callback may update and read in its
        turn: what that changes is told next. All hear every change in its order, but with several
        threads maybe from the call of another one.
        """
        if self.query.inputs and not self.program.listed:
            raise QueryError(
                f"query {self.query.name} has inputs: its changes are told where the output is "
                'kept, as with strategy="viewtree", output="list"'
            )
        if not self.options.keep_inputs:
            raise QueryError("subscribe() needs the inputs: use keep_inputs=True")
        if not callable(callback):
            raise QueryError(f"subscribe() takes a function, not {callback!r}")
        with self._gate:
            self.flush()
            self._runner.stop_singles()
            self._subscribers.add(callback)

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that a tuple of an atom of the query would make."""
        with self._gate:
            self._catch_up()
            return self._runner.output_change(atom, row, payload)

    @property
    def steps(self) -> int:
        """Elementary steps so far: what the bounds are checked with."""
        return self.engine.steps

    @property
    def analysis(self) -> Analysis:
        """What is possible for the query."""
        return analyze_query(self.query)

    def sizes(self) -> dict[str, int]:
        """How many entries each map has."""
        with self._gate:
            return self.engine.sizes()

    def partitions(self) -> tuple[Partition, ...]:
        """What is heavy now, for programs that tell heavy values from light ones."""
        with self._gate:
            self.flush()
            return () if self.engine.partitions is None else self.engine.partitions.state()

    def _element(self, row: Row, inputs: dict[str, Any]) -> Any:
        head = row
        if len(self.program.enumerator.head) > len(row):
            head = (*row, *(inputs[v] for v in self.query.inputs))
        return self._runner.held(lambda: self.engine.lookup(head, inputs))

    def _present(self, element: Any) -> Any:
        if self.query.aggregates and self.payload.ring.is_zero(element):
            return None
        return self.payload.result(element)

    def _state(self, head: Row) -> Any:
        inputs = dict(zip(self.query.inputs, head[len(self.query.outputs) :], strict=True))
        element = self._runner.held(lambda: self.engine.lookup(head, inputs))
        return None if self.payload.ring.is_zero(element) else self.payload.result(element)

    # --- saving -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, which is replaced only when all is written.

        The compiled engine writes an Arrow file.
        """
        with self._gate:
            self.flush()
            header = {
                "query": self.query,
                "options": self.options,
                "program": self.program,
                "steps": self.steps,
            }
            self._runner.save(path, header)

    @staticmethod
    @checked
    def restore(path: str | os.PathLike[str]) -> "Maintainer":
        """Read what `save` wrote. Only restore files you trust: they hold pickled values.

        The file of a compiled engine is mapped into memory, and must stay as it is meanwhile.
        """
        if is_arrow_file(path):
            return Maintainer._from_arrow(path)
        state = read_state(path)
        try:
            restored = Maintainer(state["query"], state["options"], state["program"])
            restored._runner.restore(state["maps"], state["base"], state["steps"])
        except Exception as error:  # a file that was tampered with may hold anything
            raise damaged(path, error) from error
        restored._version = 1
        return restored

    @staticmethod
    def _from_arrow(path: str | os.PathLike[str]) -> "Maintainer":
        def begin(header: Mapping[str, Any]) -> tuple["Maintainer", Runner]:
            made = Maintainer(header["query"], header["options"], header["program"])
            return made, made._runner

        restored = restore_compiled(path, begin)
        restored._version = 1
        return restored


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
) -> Any:
    """Keep a query's result fresh under updates; several queries may ride on each other.

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
    parsed = parse(query) if isinstance(query, str) else query
    options = Options(strategy, output, mode, ring, lifts, thresholds, check, engine, keep_inputs)
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
    'the ordered multisets are not numbers of 64 bits'
    """
    return obstacle(plan_payload(query))
