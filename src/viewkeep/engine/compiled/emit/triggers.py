"""From steps of the trigger language to text."""

from collections.abc import Sequence

from viewkeep.engine.compiled.emit.loops import LoopWriter
from viewkeep.engine.compiled.emit.maps import function_name, words
from viewkeep.engine.compiled.emit.tables import call_arguments, descriptor
from viewkeep.engine.compiled.emit.text import Names, Payload, Then
from viewkeep.engine.compiled.layout import Store, without_opens
from viewkeep.engine.compiled.rings import COUNT
from viewkeep.plan.program import Access, Branch, Collect, Join, Step, Union, Update


class StepWriter(LoopWriter):
    """Writes lists of steps, each inside the ones before it."""

    def steps(self, steps: Sequence[Step], names: Names, payload: Payload, then: Then) -> None:
        """The steps, each inside the ones before it, and at the end `then`."""
        if not steps:
            then(names, payload)
            return
        step, rest = steps[0], steps[1:]
        match step:
            case Update():
                self._write_update(step, names, payload, rest, then)
            case Collect():
                self.add(self.memory.stores[self._local(step.local)], names, payload)
                self.steps(rest, names, payload, then)
            case Union():
                self._write_union(step, names, payload, rest, then)
            case Join():
                join = without_opens(step, names)
                if not join.opens:
                    self._write_look_up(join.accesses, names, payload, rest, then)
                elif summed := self._step_to_sum(rest, names, payload):
                    self._write_loop_and_sum(join, names, payload, rest, summed)
                else:
                    self.loop(join, names, payload, lambda n, p: self.steps(rest, n, p, then))

    def add(self, store: Store, names: Names, payload: Payload) -> str:
        """Add a payload to an entry; the variable that tells whether it appeared or vanished."""
        row = self._write_row_to_change(store, names)
        key, change = [names[v] for v in store.key], self.fresh("change")
        arguments = call_arguments([descriptor(store.table.at), row], key, payload.spelled())
        call = f"{function_name('add', store)}(s, {arguments})"
        self.emit(f"{change} = {call}")
        return change

    def _write_update(
        self, step: Update, names: Names, payload: Payload, rest: Sequence[Step], then: Then
    ) -> None:
        if step.target in self.ignored:
            self.steps(rest, names, payload, then)
            return
        change = self.add(self.memory.stores[step.target], names, payload)
        if not step.live:
            self.steps(rest, names, payload, then)
        elif rest:
            with self.inside(f"if {change} != 0:"):
                self.steps(rest, names, Payload(COUNT, (change,)), then)

    def _write_look_up(
        self,
        accesses: Sequence[Access],
        names: Names,
        payload: Payload,
        rest: Sequence[Step],
        then: Then,
    ) -> None:
        if not accesses:
            self.steps(rest, names, payload, then)
            return
        access = accesses[0]
        store = self.memory.stores[access.map]
        row = self.row(store, names)
        with self.inside(f"if {row} != 0:"), self.inside(f"if {self._present_test(store, row)}:"):
            weighed = self.times(payload, words(store, row)) if access.weigh else payload
            self._write_look_up(accesses[1:], names, weighed, rest, then)

    def _present_test(self, store: Store, row: str) -> str:
        return f"not ({store.shape.zero_test(words(store, row))})"

    # --- sums over loops --------------------------------------------------------------------------

    def _step_to_sum(
        self, rest: Sequence[Step], names: Names, payload: Payload
    ) -> Update | Collect | None:
        """The last step if it adds all results of a loop to one entry, so that their sum can be
        added once."""
        plain = bool(rest) and all(isinstance(step, Join) for step in rest[:-1])
        last = rest[-1] if plain else None
        if isinstance(last, Update | Collect) and set(last.key) <= set(names):
            return last
        return None

    def _write_loop_and_sum(
        self,
        join: Join,
        names: Names,
        payload: Payload,
        rest: Sequence[Step],
        last: Update | Collect,
    ) -> None:
        target = last.target if isinstance(last, Update) else self._local(last.local)
        store = self.memory.stores[target]
        total = store.shape.names(self.fresh("sum") + "_")
        zeros = zip(total, store.shape.zeros(), strict=True)
        self.emit(*(f"{name} = {zero}" for name, zero in zeros))

        def accumulate(_: Names, term: Payload) -> None:
            sums = store.shape.add(total, term.spelled())
            self.emit(*(f"{name} = {new}" for name, new in zip(total, sums, strict=True)))

        self.loop(join, names, payload, lambda n, p: self.steps(rest[:-1], n, p, accumulate))
        with self.inside(f"if not ({store.shape.zero_test(total)}):"):
            self.add(store, names, Payload(store.shape, tuple(total)))

    # --- unions -----------------------------------------------------------------------------------

    def _write_union(
        self, step: Union, names: Names, payload: Payload, rest: Sequence[Step], then: Then
    ) -> None:
        """All sets of a union in turn; the caller sums payloads of equal values."""
        phase = None
        if self.cursors is not None:
            phase, start = self.next_cursor, self.fresh("start")
            self.next_cursor += 1
            self.emit(f"{start} = c[{phase}]", f"c[{phase}] = 0")
        for number, branch in enumerate(step.branches):
            if phase is None or self.cursors is None:
                self._write_branch(branch, names, payload, rest, then)
                continue
            self.cursors.append((phase, str(number)))
            with self.inside(f"if {start} <= {number}:"):
                self._write_branch(branch, names, payload, rest, then)
            self.cursors.pop()

    def _write_branch(
        self, branch: Branch, names: Names, payload: Payload, rest: Sequence[Step], then: Then
    ) -> None:
        one = Payload(payload.shape, None)

        def over(bound: Names, _: Payload) -> None:
            self.steps((*branch.steps, *rest), bound, payload, then)

        self.steps(branch.over, names, one, over)
