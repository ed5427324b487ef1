"""From steps of the trigger language to nested Python functions that count what they do."""

from collections.abc import Callable, Iterator
from typing import Any

from viewkeep.plan.program import (
    UPDATE,
    Access,
    Block,
    Branch,
    Collect,
    Join,
    Step,
    Union,
    Update,
)
from viewkeep.rings import Relation, Ring
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


class StepCompiler:
    """Builds functions over given maps; variables are numbered, so that bindings are a list."""

    def __init__(
        self,
        maps: dict[str, Relation[Any]],
        ring: Ring[Any],
        counter: list[int],
        numbers: dict[str, int],
    ) -> None:
        self.maps, self.ring, self.counter = maps, ring, counter
        self.locals: dict[str, dict[Row, Any]] = {}
        self._numbers = numbers

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

    def reading(self, steps: tuple[Step, ...], bound: frozenset[str]) -> Read:
        """Joins as nested generators: output tuples come one by one."""
        known = [bound]
        for step in steps:
            assert isinstance(step, Join | Union)  # enumerators only read
            known.append(known[-1] | set(step.opens))
        read: Read = _one
        for step, before in zip(reversed(steps), reversed(known[:-1]), strict=True):
            if isinstance(step, Union):
                read = self._compile_union(step, before, read)
            elif isinstance(step, Join):
                read = self._compile_read(step, before, read)
        return read

    def _compile_union(self, step: Union, before: frozenset[str], then: Read) -> Read:
        opens = tuple(v for v in step.opens if v not in before)
        families = [self._family(branch, before, step.opens) for branch in step.branches]
        numbers, key = [self._numbers[v] for v in opens], self._key(opens)
        ring = self.ring

        def members(bindings: Bindings) -> Iterator[tuple[Bindings, Read, Read]]:
            for over, enumerate_set, look_up in families:
                for own in over(bindings):
                    yield own, enumerate_set, look_up

        def in_turn(bindings: Bindings, payload: Any) -> Iterator[Any]:
            for own, enumerate_set, _ in members(bindings):
                for weight in enumerate_set(own, payload):
                    for number in numbers:
                        bindings[number] = own[number]
                    yield from then(bindings, weight)

        def look_up_all(bindings: Bindings, payload: Any) -> Iterator[Any]:
            found = [
                weight for own, _, look_up in members(bindings) for weight in look_up(own, payload)
            ]
            if found:
                yield from then(bindings, _sum(ring, found))

        def distinct(bindings: Bindings, payload: Any) -> Iterator[Any]:
            sets = [
                _Set(own, enumerate_set, look_up, key, numbers, payload)
                for own, enumerate_set, look_up in members(bindings)
            ]
            for value in union(sets):
                for number, each in zip(numbers, value):  # noqa: B905 - built together
                    bindings[number] = each
                weights = [weight for each in sets for weight in each.weights(value)]
                yield from then(bindings, _sum(ring, weights))

        if not opens:
            return look_up_all
        return in_turn if step.disjoint else distinct

    def _family(
        self, branch: Branch, before: frozenset[str], opens: tuple[str, ...]
    ) -> tuple[Callable[[Bindings], Iterator[Bindings]], Read, Read]:
        """The sets of a branch, how each is enumerated, and how one value is looked up in it."""
        bind = self.reading(branch.over, before)
        known = before.union(*(join.opens for join in branch.over))
        one = self.ring.one

        def over(bindings: Bindings) -> Iterator[Bindings]:
            inner = list(bindings)
            for _ in bind(inner, one):
                yield list(inner)

        enumerate_set = self.reading(branch.steps, known)
        return over, enumerate_set, self.reading(branch.steps, known | set(opens))

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


class _Set:
    """One set of a union: its values in turn, and whether it has a value."""

    __slots__ = ("_bindings", "_enumerate", "_key", "_look_up", "_numbers", "_payload", "_values")

    def __init__(
        self,
        bindings: Bindings,
        enumerate_set: Read,
        look_up: Read,
        key: Key,
        numbers: list[int],
        payload: Any,
    ) -> None:
        self._bindings, self._look_up, self._key = bindings, look_up, key
        self._numbers, self._payload = numbers, payload
        inner = list(bindings)
        self._values = (key(inner) for _ in enumerate_set(inner, payload))

    def next(self) -> Row | None:
        """The next value, None after the last."""
        return next(self._values, None)

    def weights(self, value: Row) -> list[Any]:
        """The payloads of a value: one if the set has it, else none."""
        for number, each in zip(self._numbers, value):  # noqa: B905 - built together
            self._bindings[number] = each
        return list(self._look_up(self._bindings, self._payload))

    def __contains__(self, value: Row) -> bool:
        return bool(self.weights(value))


def union(sets: list[_Set]) -> Iterator[Row]:
    """The distinct values of all sets; each asks every set at most once.

    A value that a later set has too is given up for that set's next one: so the later set is
    ahead by as many values as were met, and never tells one of them again.
    """
    for first, each in enumerate(sets):
        while (value := each.next()) is not None:
            for later in sets[first + 1 :]:
                if value in later:
                    value = later.next()
                    assert value is not None  # it is ahead of no more values than it has
            yield value


def _sum(ring: Ring[Any], weights: list[Any]) -> Any:
    total = weights[0]
    for weight in weights[1:]:
        total = ring.add(total, weight)
    return total


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


def accumulate(ring: Ring[Any], total: dict[Row, Any], row: Row, payload: Any) -> None:
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
