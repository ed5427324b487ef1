"""A live query: its engine, its pending changes and its subscribers.

The path of a change has one name for each act: `update` takes a row, `submit` applies its changes
or puts them off, `Runner.apply` applies all or none.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from viewkeep.engine.gate import Gate
from viewkeep.engine.intake import Change, Row, find_intake, intakes_of
from viewkeep.engine.interpreter.check import Checker
from viewkeep.engine.pending import PendingChanges
from viewkeep.engine.runner import Runner, TableBatch
from viewkeep.engine.subscribers import OutputChange, Subscribers
from viewkeep.engine.switching import Engines
from viewkeep.errors import ViewkeepError
from viewkeep.plan.payload import Payload
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # has no stubs

_PORTION = 64
"""Output tuples that the compiled engine gives at a time."""

_OFTEN = 4096
"""After so many single updates, it is asked whether compiling pays."""


@dataclass(frozen=True)
class LiveOptions:
    """How a live query is run."""

    engine: str
    lazy: bool
    check: bool
    keep_inputs: bool
    fallible: bool
    """Whether payloads may refuse to be added or multiplied halfway."""


class LiveQuery:
    """What a maintainer maintains; its methods are called with the gate entered."""

    def __init__(
        self, query: ConjunctiveQuery, payload: Payload, program: Program, options: LiveOptions
    ) -> None:
        self.query, self.payload, self.program = query, payload, program
        self._lazy = options.lazy
        self._intakes = intakes_of(query, payload)
        self._pending = PendingChanges(payload.ring)
        self._version = 0
        self.subscribers = Subscribers(self._output_state, self._batch_of_changes)
        self.gate = Gate(self.subscribers.deliver)
        checker = Checker(program, payload.ring) if options.check else None
        engines = Engines(
            options.engine, program, payload, query, options.check, options.keep_inputs
        )
        self.runner = Runner(engines, payload.ring, options.fallible, checker, self.gate)

    # --- changing ---------------------------------------------------------------------------------

    def load(self, tables: Mapping[str, Any]) -> None:
        """Fill the relations; rows that come on top of others are a batch."""
        is_empty = not (self.version or self._pending or self.subscribers)
        if is_empty and self.runner.load_tables(tables):
            self._version += 1
            return
        changes = [
            change
            for relation, rows in tables.items()
            for change in self.net_changes(relation, rows, None, loading=True)
        ]
        if is_empty:
            self.runner.load(changes)
            self._version += bool(changes)
        elif all(atom in self.runner.triggers for atom, _, _ in changes):
            self.submit(changes)
        else:
            self._reload(changes)

    def update_directly(self, relation: str, row: Row, multiplicity: int) -> bool:
        """Run the triggers for one tuple if nothing can refuse it; returns whether it did.

        The lock alone is held: nobody is told, and no engine but this one has run.
        """
        runner = self.runner
        if self._lazy or self.subscribers or runner.careful:
            return False
        changes = find_intake(self._intakes, relation, self.query).changes(row, multiplicity)
        if not (self._version + 1) % _OFTEN:
            runner.note(_OFTEN)  # from now on another engine may run, which can refuse
            return False
        self._version += 1
        for atom, key, payload in changes:
            runner.triggers[atom](key, payload)
        return True

    def update(self, relation: str, row: Row, multiplicity: int) -> None:
        """Insert or delete one tuple, by machine code where that takes it."""
        try:
            single = self.runner.singles.get(relation)
        except TypeError:  # what cannot be hashed is the name of no relation
            single = None
        if single is not None:
            overflow = single(row, multiplicity)
            if overflow is None:
                self._version += 1
                return
            if overflow:
                self.runner.leave_64_bits()
        self.submit(find_intake(self._intakes, relation, self.query).changes(row, multiplicity))

    def update_after_overflow(self, relation: str, row: Row, multiplicity: int = 1) -> None:
        """Take an update that left 64 bits in machine code, which has taken it back."""
        with self.gate:
            self.runner.leave_64_bits()
            self.update(relation, row, multiplicity)

    def install_update(
        self, relation: str, python: Callable[..., None]
    ) -> Callable[..., None] | None:
        """Install the machine-code path for `relation`. Returns a replacement for `update` the
        first time, else None; what that does not take goes to `python`."""
        if self._lazy or not self.runner.compiled:
            return None
        return self.runner.install_update(relation, python, self.update_after_overflow)

    def update_batches(self, batches: Sequence[TableBatch]) -> None:
        """Many updates to some relations as one; all or, if one is refused, none."""
        if not self._lazy and not any(isinstance(rows, Iterator) for _, rows, _ in batches):
            for relation, _, _ in batches:
                find_intake(self._intakes, relation, self.query)
            if self.runner.apply_tables(batches, self.subscribers):
                self._version += 1
                return
        changes = [self.net_changes(*batch) for batch in batches]
        self.submit([change for each in changes for change in each])

    def net_changes(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None, loading: bool = False
    ) -> list[Change]:
        """The net changes of a batch, atom by atom, after every row was checked."""
        intake = find_intake(self._intakes, relation, self.query)
        return sorted(intake.net_changes(rows, multiplicities, loading), key=itemgetter(0))

    def submit(self, changes: list[Change]) -> None:
        """Apply changes and tell subscribers, or put them off until somebody reads."""
        self._version += 1
        if self._lazy:
            self.runner.engine.counter[0] += self._pending.add(changes)
        else:
            self.subscribers.tell(self.runner.apply(changes, self.subscribers))

    def flush(self) -> None:
        """Apply what was put off."""
        if self._pending:
            before = self.runner.apply(self._pending.changes(), self.subscribers)
            self._pending.clear()
            self.subscribers.tell(before)

    def _reload(self, changes: Iterable[Change]) -> None:
        """Add rows of static relations, which no trigger takes: preprocessing once more."""
        self.flush()
        before = self.subscribers.start()
        if self.subscribers:
            self.subscribers.note(before, self._heads())
        self.runner.add(changes)
        self._version += 1
        if self.subscribers:
            self.subscribers.tell(dict.fromkeys(self._heads()) | before)

    def _batch_of_changes(self, changes: list[OutputChange]) -> "RecordBatch":
        from viewkeep.engine.compiled.observed import batch_of_changes  # loads Arrow

        return batch_of_changes(self.query, changes)

    def _heads(self) -> list[Row]:
        """All output tuples, with the inputs where the output is a list over them."""
        if self.program.listed is not None:
            return list(self.runner.engine.maps[self.program.listed])
        return [row for row, _ in self.runner.enumerate({})]

    # --- reading ----------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """A number that every change changes."""
        return self._version + self.runner.updates

    def check_version(self, version: int) -> None:
        """Raise an error where something changed since then."""
        if self.version != version:
            raise ViewkeepError("the data changed during an enumeration: start a new one")

    def enumerate(self, inputs: dict[str, Any], version: int) -> Iterator[tuple[Row, Any]]:
        """Tuple by tuple, while nothing changes; other threads have their turn in between."""
        width, result = len(self.query.outputs), self.payload.result
        with self.gate:
            self.check_version(version)
            rows, compiled = self.runner.enumerate(inputs), self.runner.compiled
        while not compiled:
            with self.gate.lock:
                self.check_version(version)
                for row, payload in rows:
                    step = row[:width], result(payload)
                    break
                else:
                    return
            yield step
        while True:
            with self.gate:
                self.check_version(version)
                portion = list(islice(rows, _PORTION))
            if not portion:
                return
            for row, payload in portion:
                yield row[:width], result(payload)
                self.check_version(version)

    def enumerate_batches(self, inputs: dict[str, Any], rows: int) -> Iterator["RecordBatch"]:
        """Arrow record batches of at most so many rows, while nothing changes."""
        batches = self.runner.batches(inputs, self.query, self.payload, rows)
        return self._batches_of_version(batches, self.version)

    def _batches_of_version(
        self, batches: Iterator["RecordBatch"], version: int
    ) -> Iterator["RecordBatch"]:
        while True:
            with self.gate:
                self.check_version(version)
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def element(self, row: Row, inputs: dict[str, Any]) -> Any:
        """The ring element of one output tuple."""
        head = row
        if len(self.program.enumerator.head) > len(row):
            head = (*row, *(inputs[v] for v in self.query.inputs))
        return self.runner.or_refuse(lambda: self.runner.engine.lookup(head, inputs))

    def _output_state(self, head: Row) -> Any:
        """The payload that subscribers are told of an output tuple; None if it is absent."""
        inputs = dict(zip(self.query.inputs, head[len(self.query.outputs) :], strict=True))
        element = self.runner.or_refuse(lambda: self.runner.engine.lookup(head, inputs))
        return None if self.payload.ring.is_zero(element) else self.payload.result(element)

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        """Write everything to a file."""
        self.flush()
        self.runner.save(path, {**header, "steps": self.runner.engine.steps})

    def contents(self) -> dict[str, Any]:
        """All that a copy needs: the inputs, and what of them is heavy."""
        self.flush()
        engine = self.runner.engine
        inputs = list(engine.inputs())
        return {"inputs": inputs, "layout": engine.layout(), "steps": engine.steps}

    def fill(self, contents: Mapping[str, Any]) -> None:
        """Take up the contents of another live query."""
        payloads = {(atom, row): payload for atom, row, payload in contents["inputs"]}
        self.runner.or_refuse(lambda: self.runner.rebuild(payloads, contents["layout"]))
        self.runner.engine.counter[0] = contents["steps"]
        self.mark_restored()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what the reference engine saved."""
        self.runner.restore(state["maps"], state["base"], state["steps"])
        self.mark_restored()

    def mark_restored(self) -> None:
        """Note that there is data, so that later loads add to it."""
        self._version = 1
