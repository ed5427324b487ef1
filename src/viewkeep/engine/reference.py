"""The reference engine: pure Python, any ring, any hashable values, every step counted.

It is the definition of correct, and the instrument that measures the bounds. Steps become nested
functions once per program, so that an update runs without looking at the program again. A step is
a map look-up, an insert, a removal or an iteration.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from viewkeep.plan.program import (
    NOTHING,
    UPDATE,
    Access,
    Block,
    Collect,
    Join,
    Program,
    Step,
    Update,
)
from viewkeep.rings import INTEGERS, Relation, Ring
from viewkeep.rings.index import key_function

Row = tuple[Any, ...]
Bindings = list[Any]
"""Values by the number of their variable."""

Run = Callable[[Any, Any], None]
"""Steps, run on a row or on bindings, and on a payload."""

Read = Callable[[Bindings, Any], Iterator[Any]]
Key = Callable[[Any], Row]
"""Reads the key of a map from a row or from bindings."""

Keys = Callable[[tuple[str, ...]], Key]
"""How some variables are read."""

ROW, PAYLOAD = 0, 1
"""Places in an entry of a relation."""


class ReferenceEngine:
    """The maps of one program, and its triggers as functions."""

    def __init__(self, program: Program, ring: Ring[Any]) -> None:
        self.program, self.ring = program, ring
        self.counter = [0]
        self.maps: dict[str, Relation[Any]] = {}
        for each in program.maps:
            self.maps[each.name] = Relation(each.key, INTEGERS if each.live else ring)
            for columns in each.indexes:
                self.maps[each.name].index_on(columns)
        self._locals: dict[str, dict[Row, Any]] = {}
        self._numbers = _number_variables(program)
        self.triggers = {
            t.atom: self._compile_trigger(t.blocks, t.parameters) for t in program.triggers
        }
        self._changes = {
            t.atom: self._compile_change(t.parameters, t.output) for t in program.triggers
        }
        enumerator, given = program.enumerator, frozenset(copy for copy, _ in program.inputs)
        self._enumerate = self._compile_reading(enumerator.steps, given)
        self._lookup = self._compile_reading(enumerator.steps, given | set(enumerator.head))

    @property
    def steps(self) -> int:
        """Elementary steps so far."""
        return self.counter[0]

    # --- updates --------------------------------------------------------------------------------

    def apply(self, atom: int, row: Row, payload: Any) -> None:
        """Run the trigger of an atom for one tuple."""
        self.triggers[atom](row, payload)

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that this tuple of an atom makes."""
        change: dict[Row, Any] = {}
        self._locals[_OUTPUT] = change
        self._changes[atom](row, payload)
        return change

    def load(self, contents: Iterable[tuple[int, Row, Any]], names: dict[int, str]) -> None:
        """Fill the inputs, then every other map in one pass over what it is made from."""
        for atom, row, payload in contents:
            self.counter[0] += 1
            self.maps[names[atom]].add(row, payload)
        for block in self.program.loading:
            self._load_block(block)

    def _load_block(self, block: Block) -> None:
        run = self._compile_on_row(block.steps, block.variables)
        if block.source == NOTHING:
            run((), self.ring.one)
            return
        for entry in self.maps[block.source].entries:
            self.counter[0] += 1
            run(entry[ROW], entry[PAYLOAD] if block.weigh else 1)

    # --- reading --------------------------------------------------------------------------------

    def enumerate(self, given: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; the inputs are given."""
        bindings = self._given(given)
        head = [self._numbers[v] for v in self.program.enumerator.head]
        found = self._enumerate(bindings, self.ring.one)
        rows = ((tuple([bindings[i] for i in head]), payload) for payload in found)
        if self.program.enumerator.distinct:
            is_zero = self.ring.is_zero
            return ((row, payload) for row, payload in rows if not is_zero(payload))
        return iter(self._summed(rows).items())

    def lookup(self, row: Row, given: dict[str, Any]) -> Any:
        """The payload of one output tuple."""
        bindings = self._given(given)
        for variable, value in zip(self.program.enumerator.head, row, strict=True):
            bindings[self._numbers[variable]] = value
        total = self.ring.zero
        for payload in self._lookup(bindings, self.ring.one):
            total = self.ring.add(total, payload)
        return total

    def _given(self, given: dict[str, Any]) -> Bindings:
        bindings: Bindings = [None] * len(self._numbers)
        for copy, original in self.program.inputs:
            bindings[self._numbers[copy]] = given[original]
        return bindings

    def _summed(self, rows: Iterable[tuple[Row, Any]]) -> dict[Row, Any]:
        total: dict[Row, Any] = {}
        for row, payload in rows:
            _accumulate(self.ring, total, row, payload)
        return total

    # --- from steps to functions ------------------------------------------------------------------

    def _compile_trigger(
        self, blocks: tuple[Block, ...], parameters: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        parts = [self._compile_block(block, parameters) for block in blocks]
        if len(parts) == 1:
            return parts[0]

        def trigger(row: Row, payload: Any) -> None:
            for part in parts:
                part(row, payload)

        return trigger

    def _compile_block(
        self, block: Block, parameters: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        if block.source == UPDATE:
            return self._compile_on_row(block.steps, parameters)
        run = self._compile_on_row(block.steps, block.variables)
        local, counter = block.source, self.counter

        def over_local(_: Row, __: Any) -> None:
            for row, payload in self._locals.pop(local, {}).items():
                counter[0] += 1
                run(row, payload)

        return over_local

    def _compile_on_row(
        self, steps: tuple[Step, ...], variables: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        """The steps as a function of a row; up to the first loop they read the row itself."""
        bound = frozenset(variables)
        opening = (i for i, step in enumerate(steps) if isinstance(step, Join) and step.opens)
        loop = next(opening, len(steps))
        then = self._compile_binding(steps[loop:], variables) if steps[loop:] else _done

        def key(wanted: tuple[str, ...]) -> Callable[[Row], Row]:
            # A tuple of a tuple is that tuple: nothing is copied where the whole row is wanted.
            return tuple if wanted == variables else key_function(_places(variables, wanted))

        return self._compile(steps[:loop], bound, key, then)

    def _compile_binding(
        self, steps: tuple[Step, ...], variables: tuple[str, ...]
    ) -> Callable[[Row, Any], None]:
        """The steps as a function of a row, whose values are bound before they run."""
        run = self._compile(steps, frozenset(variables), self._key)
        numbers, size = [self._numbers[v] for v in variables], len(self._numbers)

        def bind(row: Row, payload: Any) -> None:
            bindings: Bindings = [None] * size
            for number, value in zip(numbers, row):  # noqa: B905 - checked, and this is hot
                bindings[number] = value
            run(bindings, payload)

        return bind

    def _compile_change(
        self, parameters: tuple[str, ...], steps: tuple[Step, ...]
    ) -> Callable[[Row, Any], None]:
        collect = Collect(_OUTPUT, self.program.enumerator.head)
        return self._compile_trigger((Block(UPDATE, parameters, (*steps, collect)),), parameters)

    def _compile(
        self, steps: tuple[Step, ...], bound: frozenset[str], key: Keys, then: Run | None = None
    ) -> Run:
        """The steps as one function, built from the last to the first; `then` comes after them."""
        known = [bound]
        for step in steps:
            opens = step.opens if isinstance(step, Join) else ()
            known.append(known[-1] | set(opens))
        run: Run = then or _done
        for step, before in zip(reversed(steps), reversed(known[:-1]), strict=True):
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
        ring, counter, locals_, local = self.ring, self.counter, self._locals, step.local

        def collect(bindings: Bindings, payload: Any) -> None:
            counter[0] += 1
            _accumulate(ring, locals_.setdefault(local, {}), key(bindings), payload)
            then(bindings, payload)

        return collect

    def _compile_join(self, step: Join, before: frozenset[str], key: Keys, then: Run) -> Run:
        opens = tuple(v for v in step.opens if v not in before)
        if not opens:
            return self._compile_lookup(step.accesses, key, then)
        groups = self._groups(step.accesses, before, opens)

        def loop(bindings: Bindings, payload: Any) -> None:
            for weight in groups(bindings, payload):
                then(bindings, weight)

        return loop

    def _compile_lookup(self, accesses: tuple[Access, ...], key: Keys, then: Run) -> Run:
        counter, multiply = self.counter, self.ring.multiply
        run = then
        for access in reversed(accesses):
            find, key_of = self.maps[access.map].find_entry, key(access.arguments)
            run = _lookup(find, key_of, access.weigh, counter, multiply, run)
        return run

    def _groups(
        self, accesses: tuple[Access, ...], before: frozenset[str], opens: tuple[str, ...]
    ) -> Read:
        """A generator of weights that binds the opened variables, over the smallest group."""
        sides = [self._side(access, before, opens) for access in accesses]
        counter, multiply = self.counter, self.ring.multiply

        def over_one(bindings: Bindings, payload: Any) -> Iterator[Any]:
            group, places, numbers, _, weigh = sides[0]
            for entry in group(bindings) or ():
                counter[0] += 1
                row = entry[ROW]
                for number, place in zip(numbers, places):  # noqa: B905 - built together
                    bindings[number] = row[place]
                yield multiply(payload, entry[PAYLOAD]) if weigh else payload

        def over_smallest(bindings: Bindings, payload: Any) -> Iterator[Any]:
            found = [side[0](bindings) for side in sides]
            counter[0] += len(sides)
            if not all(found):
                return
            smallest = min(range(len(sides)), key=lambda i: len(found[i] or ()))
            _, places, numbers, _, weigh = sides[smallest]
            others = [side for i, side in enumerate(sides) if i != smallest]
            for entry in found[smallest] or ():
                counter[0] += 1
                row = entry[ROW]
                for number, place in zip(numbers, places):  # noqa: B905 - built together
                    bindings[number] = row[place]
                weight = multiply(payload, entry[PAYLOAD]) if weigh else payload
                for _, _, _, find, weigh_other in others:
                    counter[0] += 1
                    match = find(bindings)
                    if match is None:
                        break
                    if weigh_other:
                        weight = multiply(weight, match[PAYLOAD])
                else:
                    yield weight

        return over_one if len(sides) == 1 else over_smallest

    def _side(
        self, access: Access, before: frozenset[str], opens: tuple[str, ...]
    ) -> tuple[Any, list[int], list[int], Any, bool]:
        """How to find a group, what it binds, how to find one entry, and whether it weighs."""
        relation = self.maps[access.map]
        columns = tuple(v for v in relation.schema if v in before)
        places = [relation.schema.index(v) for v in opens]
        numbers = [self._numbers[v] for v in opens]
        find, key = relation.find_entry, self._key(access.arguments)

        def entry(bindings: Bindings) -> Any:
            return find(key(bindings))

        if not columns:
            everything = relation.entries
            return (lambda bindings: everything), places, numbers, entry, access.weigh
        group_of, group_key = relation.index_on(columns).find_group, self._key(columns)
        return (
            (lambda bindings: group_of(group_key(bindings))),
            places,
            numbers,
            entry,
            access.weigh,
        )

    def _compile_reading(self, steps: tuple[Step, ...], bound: frozenset[str]) -> Read:
        """Joins as nested generators: output tuples come one by one."""
        known = [bound]
        for step in steps:
            assert isinstance(step, Join)  # enumerators only read
            known.append(known[-1] | set(step.opens))
        read: Read = _one
        for step, before in zip(reversed(steps), reversed(known[:-1]), strict=True):
            assert isinstance(step, Join)
            read = self._compile_read(step, before, read)
        return read

    def _compile_read(self, step: Join, before: frozenset[str], then: Read) -> Read:
        opens = tuple(v for v in step.opens if v not in before)
        if opens:
            groups = self._groups(step.accesses, before, opens)

            def loop(bindings: Bindings, payload: Any) -> Iterator[Any]:
                for weight in groups(bindings, payload):
                    yield from then(bindings, weight)

            return loop
        finds = [
            (self.maps[a.map].find_entry, self._key(a.arguments), a.weigh) for a in step.accesses
        ]
        counter, multiply = self.counter, self.ring.multiply

        def lookup(bindings: Bindings, payload: Any) -> Iterator[Any]:
            for find, key, weigh in finds:
                counter[0] += 1
                entry = find(key(bindings))
                if entry is None:
                    return
                if weigh:
                    payload = multiply(payload, entry[PAYLOAD])
            yield from then(bindings, payload)

        return lookup

    def _key(self, variables: tuple[str, ...]) -> Key:
        """The function that reads these variables from the bindings, as a tuple."""
        numbers = [self._numbers[v] for v in variables]
        match numbers:
            case []:
                return lambda bindings: ()
            case [first]:
                return lambda bindings: (bindings[first],)
            case [first, second]:
                return lambda bindings: (bindings[first], bindings[second])
            case _:
                return lambda bindings: tuple([bindings[i] for i in numbers])


_OUTPUT = "output"
"""The local delta that takes the change of the output."""


def _number_variables(program: Program) -> dict[str, int]:
    names = [v for each in program.maps for v in each.key] + [copy for copy, _ in program.inputs]
    return {variable: number for number, variable in enumerate(dict.fromkeys(names))}


def _places(variables: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(variables.index, wanted))


def _lookup(
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


def _accumulate(ring: Ring[Any], total: dict[Row, Any], row: Row, payload: Any) -> None:
    known = total.get(row)
    value = payload if known is None else ring.add(known, payload)
    if ring.is_zero(value):
        total.pop(row, None)
    else:
        total[row] = value


def _done(bindings: Bindings, payload: Any) -> None:
    """The end of a list of steps."""


def _one(bindings: Bindings, payload: Any) -> Iterator[Any]:
    yield payload
