"""From steps of the trigger language to nested Python functions that count what they do."""

from collections.abc import Callable
from typing import Any

from viewkeep.engine.interpreter.joins import PAYLOAD, Bindings, JoinCompiler, Key, Row
from viewkeep.plan.program import (
    UPDATE,
    Access,
    Block,
    Collect,
    Join,
    Step,
    Update,
)
from viewkeep.rings import Relation, Ring
from viewkeep.rings.index import key_function

Run = Callable[[Any, Any], None]
"""Steps, run on a row or on bindings, and on a payload."""

Keys = Callable[[tuple[str, ...]], Key]
"""How some variables are read."""


class StepCompiler(JoinCompiler):
    """Builds functions that run the blocks of triggers."""

    def __init__(
        self,
        maps: dict[str, Relation[Any]],
        ring: Ring[Any],
        counter: list[int],
        numbers: dict[str, int],
    ) -> None:
        super().__init__(maps, ring, counter, numbers)
        self.locals: dict[str, dict[Row, Any]] = {}

    def trigger(
        self, blocks: tuple[Block, ...], parameters: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        """The blocks of a trigger, one after another, as a function of the updated row."""
        parts = [self._compile_block(block, parameters) for block in blocks]
        if len(parts) == 1:
            return parts[0]

        def run_all(row: Row, payload: Any) -> None:
            for part in parts:
                part(row, payload)

        return run_all

    def _compile_block(
        self, block: Block, parameters: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        if block.source == UPDATE:
            return self.on_row(block.steps, parameters)
        run = self.on_row(block.steps, block.variables)
        local, counter = block.source, self.counter

        def over_local(_: Row, __: Any) -> None:
            for row, payload in self.locals.pop(local, {}).items():
                counter[0] += 1
                run(row, payload)

        return over_local

    def on_row(
        self, steps: tuple[Step, ...], variables: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        """The steps as a function of a row; up to the first loop they read the row itself."""
        bound = frozenset(variables)
        opening = (i for i, step in enumerate(steps) if isinstance(step, Join) and step.opens)
        loop = next(opening, len(steps))
        then = self._compile_binding(steps[loop:], variables) if steps[loop:] else _run_nothing

        def key(names: tuple[str, ...]) -> Callable[[Row], Row]:
            # A tuple of a tuple is that tuple: nothing is copied where the whole row is wanted.
            return tuple if names == variables else key_function(_variable_places(variables, names))

        return self._compile_steps(steps[:loop], bound, key, then)

    def _compile_binding(
        self, steps: tuple[Step, ...], variables: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        """The steps as a function of a row, whose values are bound before they run."""
        run = self._compile_steps(steps, frozenset(variables), self._key_reader)
        numbers, size = [self._numbers[v] for v in variables], len(self._numbers)

        def bind(row: Row, payload: Any) -> None:
            bindings: Bindings = [None] * size
            for number, value in zip(numbers, row):  # noqa: B905 - checked, and this is hot
                bindings[number] = value
            run(bindings, payload)

        return bind

    def _compile_steps(
        self, steps: tuple[Step, ...], bound: frozenset[str], key: Keys, then: Run | None = None
    ) -> Run:
        """The steps as one function, built from the last to the first; `then` comes after them."""
        bound_before = [bound]
        for step in steps:
            opens = step.opens if isinstance(step, Join) else ()
            bound_before.append(bound_before[-1] | set(opens))
        run: Run = then or _run_nothing
        for step, before in zip(reversed(steps), reversed(bound_before[:-1]), strict=True):
            match step:
                case Join():
                    run = self._compile_join(step, before, key, run)
                case Update():
                    run = self._compile_update(step, key(step.key), run)
                case Collect():
                    run = self._compile_collect(step, key(step.key), run)
        return run

    def _compile_update(self, step: Update, key: Key, then: Run) -> Run:
        change, counter = self.maps[step.target].change, self.counter
        if step.live:

            def update_live(bindings: Bindings, payload: Any) -> None:
                counter[0] += 1
                appeared = change(key(bindings), payload)
                if appeared:
                    then(bindings, appeared)

            return update_live

        def update(bindings: Bindings, payload: Any) -> None:
            counter[0] += 1
            change(key(bindings), payload)
            then(bindings, payload)

        return update

    def _compile_collect(self, step: Collect, key: Key, then: Run) -> Run:
        ring, counter, locals_, local = self.ring, self.counter, self.locals, step.local

        def collect(bindings: Bindings, payload: Any) -> None:
            counter[0] += 1
            accumulate(ring, locals_.setdefault(local, {}), key(bindings), payload)
            then(bindings, payload)

        return collect

    def _compile_join(self, step: Join, before: frozenset[str], key: Keys, then: Run) -> Run:
        opens = tuple(v for v in step.opens if v not in before)
        if not opens:
            return self._compile_lookup(step.accesses, key, then)
        groups = self._compile_groups(step.accesses, before, opens)

        def loop(bindings: Bindings, payload: Any) -> None:
            for weight in groups(bindings, payload):
                then(bindings, weight)

        return loop

    def _compile_lookup(self, accesses: tuple[Access, ...], key: Keys, then: Run) -> Run:
        counter, multiply = self.counter, self.ring.multiply
        run = then
        for access in reversed(accesses):
            find, key_of = self.maps[access.map].find_entry, key(access.arguments)
            run = _lookup_step(find, key_of, access.weigh, counter, multiply, run)
        return run


def _variable_places(variables: tuple[str, ...], names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(variables.index, names))


def _lookup_step(
    find: Callable[[Row], Any],
    key: Key,
    weigh: bool,
    counter: list[int],
    multiply: Callable[[Any, Any], Any],
    then: Run,
) -> Run:
    if weigh:

        def weighed(bindings: Bindings, payload: Any) -> None:
            counter[0] += 1
            entry = find(key(bindings))
            if entry is not None:
                then(bindings, multiply(payload, entry[PAYLOAD]))

        return weighed

    def checked(bindings: Bindings, payload: Any) -> None:
        counter[0] += 1
        if find(key(bindings)) is not None:
            then(bindings, payload)

    return checked


def _run_nothing(bindings: Bindings, payload: Any) -> None:
    """The end of a list of steps."""


def accumulate(ring: Ring[Any], total: dict[Row, Any], row: Row, payload: Any) -> None:
    """Add to the payload of a row; what becomes zero is removed."""
    sum_before = total.get(row)
    value = payload if sum_before is None else ring.add(sum_before, payload)
    if ring.is_zero(value):
        total.pop(row, None)
    else:
        total[row] = value
