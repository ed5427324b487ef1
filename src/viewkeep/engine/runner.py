"""Applies changes to an engine, all or none, and goes over to another engine where that is due."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from viewkeep.engine.compiled.rings import Overflow, Retype, Unfit
from viewkeep.engine.gate import Gate
from viewkeep.engine.intake import Change, Row
from viewkeep.engine.interpreter.check import Checker
from viewkeep.engine.interpreter.engine import ReferenceEngine
from viewkeep.engine.interpreter.partitions import Layout
from viewkeep.engine.save import write_state
from viewkeep.engine.subscribers import Subscribers, Told
from viewkeep.engine.switching import INSTALL, Engine, Engines, copy_state, missing_libraries
from viewkeep.errors import RingError, ViewkeepError
from viewkeep.plan.payload import Payload
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.rings import Ring

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # has no stubs

    from viewkeep.engine.compiled.engine import CompiledEngine

Result = TypeVar("Result")

TableBatch = tuple[str, Any, Any]
"""A relation, rows, and their multiplicities, or None where each is inserted once."""

Single = Callable[[Row, int], bool | None]
"""Takes a row: None if that is done, True if a number left 64 bits and the row was taken back,
False if it did nothing."""


class Runner:
    """The engine of a maintainer.

    `fallible` tells that payloads may refuse to be added or multiplied halfway.
    """

    def __init__(
        self,
        engines: Engines,
        ring: Ring[Any],
        fallible: bool,
        checker: Checker | None,
        gate: Gate,
    ) -> None:
        self._engines, self._ring, self._fallible = engines, ring, fallible
        self._checker, self._gate = checker, gate
        self.singles: dict[str, Single] = {}
        """By relation, machine code that takes single rows of plain integers."""
        self._connected: set[str] = set()
        """Relations whose single rows go to machine code by `update` itself."""
        self._updates, self._counter = 0, ctypes.c_int64()
        self.direct = checker is None
        self.engine: Engine = engines.first()
        self.use(self.engine)

    def use(self, engine: Engine) -> None:
        """Go on with this engine."""
        self._updates, self._gate.address = self.updates, 0
        self.engine = engine
        self.triggers = engine.triggers
        if isinstance(engine, ReferenceEngine):
            self._counter = ctypes.c_int64()
        else:
            self._counter = engine.updates()
        self.compiled = not isinstance(engine, ReferenceEngine)
        self.singles.clear()
        self._connected.clear()
        # Otherwise changes cannot fail, and may go to the triggers one by one.
        self.careful = self._fallible or self.compiled or self._checker is not None

    @property
    def updates(self) -> int:
        """How many updates have come straight to machine code."""
        return self._updates + self._counter.value

    @property
    def reason(self) -> str:
        """Why the compiled engine is not used; nothing if it is, or may come to be."""
        return "" if self.compiled else self._engines.reason

    def note(self, changes: int) -> None:
        """Compile now if that pays for so many further changes."""
        if not self.compiled and self._engines.pays(changes):
            self.compile()

    def compile(self) -> None:
        """Go over to the compiled engine, if there can be one."""
        engine = self._engines.compiled()
        if engine is not None:
            self._move_to(engine)

    def _move_to(self, engine: Engine) -> None:
        """Go over to an empty engine; where that fails, stay and note why."""
        try:
            other = self._typed_move(engine)
        except Exception as error:
            self._engines.give_up(error)
        else:
            self.use(other)

    def _typed_move(self, engine: Engine) -> Engine:
        """The empty engine, or one for other types, with all that the present one holds."""
        while True:
            try:
                return copy_state(self.engine, engine)
            except Retype as reason:
                engine = self._engines.with_coder(reason.coder)

    def or_refuse(self, action: Callable[[], Result]) -> Result:
        """Run an action; if the compiled engine cannot hold its numbers, the action has changed
        nothing, and another engine takes over."""
        while True:
            try:
                return action()
            except Unfit as reason:
                self.refuse(reason)

    def refuse(self, reason: Unfit) -> None:
        """Go over to a compiled engine for other types, or to the reference engine; an overflow
        where 64 bits were asked for is an error."""
        if isinstance(reason, Retype):
            try:
                engine: Engine = self._engines.with_coder(reason.coder)
                self.use(self._typed_move(engine))
                return
            except Unfit as unfit:
                reason = unfit
            except ViewkeepError as error:
                raise RingError(f"{reason}, and no other engine can take over: {error}") from None
            except Exception as error:
                reason = Unfit(f"compiling failed ({type(error).__name__}: {error})")
        if isinstance(reason, Overflow) and self._engines.kind == "compiled":
            problem = f'{reason}: engine="auto" goes on without limit where 64 bits end'
            raise RingError(problem) from None
        try:
            other = copy_state(self.engine, self._engines.reference())
        except ViewkeepError as error:
            problem = f"{reason}, and the reference engine cannot take over: {error}"
            raise RingError(problem) from None
        self._engines.reason = str(reason)
        self.use(other)

    # --- changes ----------------------------------------------------------------------------------

    def load(self, changes: list[Change]) -> None:
        """Fill an empty engine."""
        self.note(len(changes))
        self.or_refuse(lambda: self._load(changes))
        self._tidy(len(changes))

    def _load(self, changes: list[Change]) -> None:
        try:
            self.engine.load(changes)
        except Exception:
            self.use(self._engines.like(self.engine))
            raise

    def apply(self, changes: list[Change], subscribers: Subscribers) -> dict[Row, Any]:
        """Apply all changes, or none where the ring refuses one; returns the states of output
        tuples that subscribers knew before."""
        self.note(len(changes))
        before = self.or_refuse(lambda: self._run_triggers(changes, subscribers))
        self._tidy(len(changes))
        return before

    def _tidy(self, changes: int) -> None:
        """Have the compiled engine forget values, now that no code is on its way to a table."""
        if not isinstance(self.engine, ReferenceEngine):
            self.engine.tidy(changes)

    def _run_triggers(self, changes: list[Change], subscribers: Subscribers) -> dict[Row, Any]:
        """Run the triggers of all changes; what a refused one leaves is undone."""
        before = subscribers.start()
        engine = self.engine
        if not isinstance(engine, ReferenceEngine) and self._is_columnar(engine, subscribers):
            self._run_columns(engine, engine.encode_all(changes), subscribers)
            return before
        payloads: dict[tuple[int, Row], Any] = {}
        fallible = self._fallible or self.compiled
        undo = self._begin_undo(len(changes)) if fallible else None
        try:
            for atom, key, payload in changes:
                if subscribers:
                    subscribers.note(before, engine.output_change(atom, key, payload))
                if fallible:
                    payloads.setdefault((atom, key), engine.input_payload(atom, key))
                self.triggers[atom](key, payload)
                if self._checker is not None:
                    self._checker.check(engine)
        except Exception:
            if undo is not None and payloads:  # otherwise no trigger has run
                self.rebuild(payloads, undo())
            elif not fallible:
                self.rebuild(payloads)
            raise
        finally:
            self._end_undo()
        return before

    def _is_columnar(self, engine: "CompiledEngine", subscribers: Subscribers) -> bool:
        """Whether machine code runs whole batches, and tells subscribers if there are some."""
        return self._checker is None and (not subscribers or engine.observes)

    def _run_columns(
        self, engine: "CompiledEngine", batches: list[tuple[int, Any]], subscribers: Subscribers
    ) -> None:
        """Run coded batches, all or none, and queue what subscribers are to be told."""
        if not subscribers:
            engine.apply_columns(batches)
            return
        from viewkeep.engine.compiled.observed import observed_batch, observed_rows  # loads Arrow

        observed = engine.apply_observed(batches)
        told = Told(
            lambda: observed_rows(engine, observed), lambda: observed_batch(engine, observed)
        )
        subscribers.queue_told(told)

    def _begin_undo(self, changes: int) -> Callable[[], Layout | None] | None:
        """Start an undo note; the result restores the present layout after changes that are refused
        halfway.

        None where a change that is refused has left nothing: the compiled engine takes a single
        one back by itself.
        """
        engine = self.engine
        if isinstance(engine, ReferenceEngine):
            partitions = engine.partitions
            if partitions is None:
                return lambda: None
            note = partitions.begin_note()
            return lambda: note.layout(partitions.levels)
        if changes == 1 and self._checker is None:
            return None
        layout = engine.layout()
        return lambda: layout

    def _end_undo(self) -> None:
        if isinstance(self.engine, ReferenceEngine) and self.engine.partitions is not None:
            self.engine.partitions.end_note()

    # --- tables and single rows -------------------------------------------------------------------

    def load_tables(self, data: Mapping[str, Any]) -> bool:
        """Fill an empty engine column by column; whether that could be done."""
        sizes = [len(rows) for rows in data.values() if hasattr(rows, "__len__")]
        self.note(sum(sizes))
        if isinstance(self.engine, ReferenceEngine) or len(sizes) < len(data):
            return False
        return self.or_refuse(lambda: self._load_columns(data, sum(sizes)))

    def _load_columns(self, data: Mapping[str, Any], size: int) -> bool:
        if isinstance(self.engine, ReferenceEngine):
            return False
        engine, contents = self.engine, dict[int, Any]()
        for relation, rows in data.items():
            batches = engine.batches(relation, rows, None, loading=True)
            if batches is None or not all(engine.can_load(*each) for each in batches):
                return False
            contents.update(batches)
        try:
            engine.load_columns(contents)
        except Unfit:
            self.use(self._engines.like(engine))
            raise
        self._tidy(size)
        return True

    def apply_tables(self, changes: Sequence[TableBatch], subscribers: Subscribers) -> bool:
        """Apply changes column by column, all or none; whether that could be done."""
        size = sum(len(rows) for _, rows, _ in changes if hasattr(rows, "__len__"))
        self.note(size)
        return self.or_refuse(lambda: self._apply_columns(changes, size, subscribers))

    def _apply_columns(
        self, changes: Sequence[TableBatch], size: int, subscribers: Subscribers
    ) -> bool:
        engine = self.engine
        if isinstance(engine, ReferenceEngine) or not self._is_columnar(engine, subscribers):
            return False
        batches = list[tuple[int, Any]]()
        for relation, rows, multiplicities in changes:
            of_relation = engine.batches(relation, rows, multiplicities)
            if of_relation is None:
                return False
            batches += of_relation
        self._run_columns(engine, batches, subscribers)
        self._tidy(size)
        return True

    def install_update(
        self, relation: str, python: Callable[..., None], on_overflow: Callable[..., None]
    ) -> Callable[..., None] | None:
        """Install the machine-code path for `relation`. Returns a replacement for `update` the
        first time, else None: `python` takes what it cannot, `on_overflow` what left 64 bits."""
        engine = self.engine
        if isinstance(engine, ReferenceEngine) or not self.direct or relation in self._connected:
            return None
        if not engine.takes_singles(relation):
            return None
        replacement = None
        if not self._connected:
            replacement, self._gate.link = engine.updater(python, on_overflow)
        self._connected.add(relation)
        if (single := engine.single(relation)) is not None:
            self.singles[relation] = single
        self._gate.address = engine.connect(self._gate.link, sys.intern(relation))
        return replacement

    def leave_64_bits(self) -> None:
        """Go over to the reference engine: a single row overflowed, and was taken back."""
        if self.compiled:
            self.refuse(Overflow("a sum or a product does not fit 64 bits"))

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that a tuple of an atom would make."""
        change = self.or_refuse(lambda: self.engine.output_change(atom, row, payload))
        self._tidy(1)
        return change

    def stop_singles(self) -> None:
        """Disconnect machine code from `update`, since every change must be seen from now on."""
        self.direct = False
        self.singles.clear()
        self._connected.clear()
        self._gate.address = 0

    def resume_singles(self) -> None:
        """Let machine code be connected with `update` again, since nobody is told any more."""
        self.direct = self._checker is None

    def add(self, changes: Iterable[Change]) -> None:
        """Add to the inputs, static ones too, which no trigger takes: preprocessing once more."""
        totals = dict[tuple[int, Row], Any]()
        for atom, key, payload in changes:
            present = self.engine.input_payload(atom, key)
            total = payload if present is None else self._ring.add(present, payload)
            totals[atom, key] = None if self._ring.is_zero(total) else total
        self.or_refuse(lambda: self.rebuild(totals))

    def rebuild(self, payloads: dict[tuple[int, Row], Any], layout: Layout | None = None) -> None:
        """Load the engine anew from its inputs, with some payloads as they were; None: absent."""
        inputs = {(atom, row): payload for atom, row, payload in self.engine.inputs()}
        present = [(*place, p) for place, p in (inputs | payloads).items() if p is not None]
        engine = self._engines.like(self.engine)
        engine.load(present, layout)
        engine.counter[0] += self.engine.counter[0]
        self.use(engine)

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        """Write the engine's memory, or the contents of its maps."""
        engine = self.engine
        if isinstance(engine, ReferenceEngine):
            base = None if engine.partitions is None else engine.partitions.base
            maps = {name: list(relation.items()) for name, relation in engine.maps.items()}
            write_state(path, {**header, "base": base, "maps": maps})
            return
        from viewkeep.engine.compiled.files import write_engine  # loads Arrow

        engine.forget_unused()
        write_engine(path, engine, header)

    def restore(self, maps: dict[str, list[tuple[Row, Any]]], base: int, steps: int) -> None:
        """Take up the contents of all maps."""
        engine = self._engines.reference()
        for name, entries in maps.items():
            for row, payload in entries:
                engine.maps[name].add(row, payload)
        if engine.partitions is not None:
            engine.partitions.recover(base)
        engine.counter[0] = steps
        empty = self.engine
        self.use(engine)
        if not isinstance(empty, ReferenceEngine):
            self._move_to(empty)

    # --- reading ----------------------------------------------------------------------------------

    def enumerate(self, inputs: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        """Output tuples with their payloads."""
        return self._portions(inputs) if self.compiled else self.engine.enumerate(inputs)

    def _portions(self, inputs: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        """Output tuples; the reference engine takes over if the compiled one cannot hold the first
        of them."""
        rows = self.or_refuse(lambda: self._first_and_rest(inputs))
        if rows is None:
            return
        first, rest = rows
        yield first
        try:
            yield from rest
        except Overflow as reason:
            self.refuse(reason)
            raise RingError(f"{reason}: enumerate once more") from None

    def batches(
        self, inputs: dict[str, Any], query: ConjunctiveQuery, payload: Payload, rows: int
    ) -> "Iterator[RecordBatch]":
        """Output tuples as Arrow record batches."""
        if missing := missing_libraries():
            raise ViewkeepError(f"Arrow batches need {missing}: {INSTALL}")
        from viewkeep.engine.compiled.output import batches_of  # loads Arrow

        if not isinstance(self.engine, ReferenceEngine):
            self.or_refuse(self._check_order)
        return batches_of(self.engine, self.enumerate, inputs, query, payload, rows)

    def _check_order(self) -> None:
        if not isinstance(self.engine, ReferenceEngine):
            self.engine.check_order()

    def memory(self) -> dict[str, int]:
        """Bytes of each map's table and indexes."""
        if isinstance(self.engine, ReferenceEngine):
            raise ViewkeepError("memory is known of the compiled engine only")
        return self.engine.memory()

    def _first_and_rest(
        self, inputs: dict[str, Any]
    ) -> tuple[tuple[Row, Any], Iterator[tuple[Row, Any]]] | None:
        rows = iter(self.engine.enumerate(inputs))
        first = next(rows, None)
        return None if first is None else (first, rows)


Restored = TypeVar("Restored")


def restore_compiled(
    path: str | os.PathLike[str],
    begin: Callable[[Mapping[str, Any]], tuple[Restored, Runner]],
) -> Restored:
    """What `begin` makes of the header of a file, with the engine of that file."""
    if missing := missing_libraries():
        raise ViewkeepError(f"cannot restore {path}: it needs {missing}: {INSTALL}")
    from viewkeep.engine.compiled.files import read_engine  # loads Arrow

    begun: list[tuple[Restored, Runner]] = []

    def make(header: Mapping[str, Any], coder: Any) -> Any:
        begun.append(begin(header))
        return begun[0][1]._engines.with_coder(coder)

    engine, header = read_engine(path, make)
    restored, runner = begun[0]
    engine.counter[0] = header["steps"]
    runner.use(engine)
    return restored
