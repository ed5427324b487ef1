"""From steps that read to nested generators: output tuples come one by one."""

from collections.abc import Callable, Iterator
from typing import Any

from viewkeep.engine.interpreter.joins import PAYLOAD, Bindings, JoinCompiler, Key, Read, Row
from viewkeep.plan.program import Branch, Join, Step, Union
from viewkeep.rings import Ring


class ReadCompiler(JoinCompiler):
    """Builds generators of payloads that bind the variables of output tuples."""

    def reading(self, steps: tuple[Step, ...], bound: frozenset[str]) -> Read:
        """Joins as nested generators: output tuples come one by one."""
        bound_before = [bound]
        for step in steps:
            assert isinstance(step, Join | Union)  # enumerators only read
            bound_before.append(bound_before[-1] | set(step.opens))
        read: Read = _yield_payload
        for step, before in zip(reversed(steps), reversed(bound_before[:-1]), strict=True):
            if isinstance(step, Union):
                read = self._compile_union(step, before, read)
            elif isinstance(step, Join):
                read = self._compile_read(step, before, read)
        return read

    def _compile_union(self, step: Union, before: frozenset[str], then: Read) -> Read:
        opens = tuple(v for v in step.opens if v not in before)
        families = [self._compile_family(branch, before, step.opens) for branch in step.branches]
        numbers, key = [self._numbers[v] for v in opens], self._key_reader(opens)
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
            weights = [
                weight for own, _, look_up in members(bindings) for weight in look_up(own, payload)
            ]
            if weights:
                yield from then(bindings, _sum_of_payloads_read(ring, weights))

        def distinct(bindings: Bindings, payload: Any) -> Iterator[Any]:
            sets = [
                _Set(own, enumerate_set, look_up, key, numbers, payload)
                for own, enumerate_set, look_up in members(bindings)
            ]
            for value in union(sets):
                for number, each in zip(numbers, value):  # noqa: B905 - built together
                    bindings[number] = each
                weights = [weight for each in sets for weight in each.weights(value)]
                yield from then(bindings, _sum_of_payloads_read(ring, weights))

        if not opens:
            return look_up_all
        return in_turn if step.disjoint else distinct

    def _compile_family(
        self, branch: Branch, before: frozenset[str], opens: tuple[str, ...]
    ) -> tuple[Callable[[Bindings], Iterator[Bindings]], Read, Read]:
        """The sets of a branch, how each is enumerated, and how one value is looked up in it."""
        bind = self.reading(branch.over, before)
        bound = before.union(*(join.opens for join in branch.over))
        one = self.ring.one

        def over(bindings: Bindings) -> Iterator[Bindings]:
            inner = list(bindings)
            for _ in bind(inner, one):
                yield list(inner)

        enumerate_set = self.reading(branch.steps, bound)
        return over, enumerate_set, self.reading(branch.steps, bound | set(opens))

    def _compile_read(self, step: Join, before: frozenset[str], then: Read) -> Read:
        opens = tuple(v for v in step.opens if v not in before)
        if opens:
            groups = self._compile_groups(step.accesses, before, opens)

            def loop(bindings: Bindings, payload: Any) -> Iterator[Any]:
                for weight in groups(bindings, payload):
                    yield from then(bindings, weight)

            return loop
        finds = [
            (self.maps[a.map].find_entry, self._key_reader(a.arguments), a.weigh)
            for a in step.accesses
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


def _sum_of_payloads_read(ring: Ring[Any], weights: list[Any]) -> Any:
    total = weights[0]
    for weight in weights[1:]:
        total = ring.add(total, weight)
    return total


def _yield_payload(bindings: Bindings, payload: Any) -> Iterator[Any]:
    yield payload
