"""Loops over the groups of maps: what steps that change maps and steps that read them share."""

from collections.abc import Callable, Iterator
from typing import Any

from viewkeep.plan.program import Access
from viewkeep.rings import Relation, Ring

Row = tuple[Any, ...]
Bindings = list[Any]
"""Values by the number of their variable."""

Read = Callable[[Bindings, Any], Iterator[Any]]
Key = Callable[[Any], Row]
"""Reads the key of a map from a row or from bindings."""

ROW, PAYLOAD = 0, 1
"""Places in an entry of a relation."""


class JoinCompiler:
    """Builds functions over given maps; variables are numbered, so that bindings are a list."""

    def __init__(
        self,
        maps: dict[str, Relation[Any]],
        ring: Ring[Any],
        counter: list[int],
        numbers: dict[str, int],
    ) -> None:
        self.maps, self.ring, self.counter = maps, ring, counter
        self._numbers = numbers

    def _compile_groups(
        self, accesses: tuple[Access, ...], before: frozenset[str], opens: tuple[str, ...]
    ) -> Read:
        """A generator of weights that binds the opened variables, over the smallest group."""
        sides = [self._compile_side(access, before, opens) for access in accesses]
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
            side_groups = [side[0](bindings) for side in sides]
            counter[0] += len(sides)
            if not all(side_groups):
                return
            smallest = min(range(len(sides)), key=lambda i: len(side_groups[i] or ()))
            _, places, numbers, _, weigh = sides[smallest]
            others = [side for i, side in enumerate(sides) if i != smallest]
            for entry in side_groups[smallest] or ():
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

    def _compile_side(
        self, access: Access, before: frozenset[str], opens: tuple[str, ...]
    ) -> tuple[Any, list[int], list[int], Any, bool]:
        """How to find a group, what it binds, how to find one entry, and whether it weighs."""
        relation = self.maps[access.map]
        columns = tuple(v for v in relation.schema if v in before)
        places = [relation.schema.index(v) for v in opens]
        numbers = [self._numbers[v] for v in opens]
        find, key = relation.find_entry, self._key_reader(access.arguments)

        def entry(bindings: Bindings) -> Any:
            return find(key(bindings))

        if not columns:
            everything = relation.entries
            return (lambda bindings: everything), places, numbers, entry, access.weigh
        group_of, group_key = relation.index_on(columns).find_group, self._key_reader(columns)
        return (
            (lambda bindings: group_of(group_key(bindings))),
            places,
            numbers,
            entry,
            access.weigh,
        )

    def _key_reader(self, variables: tuple[str, ...]) -> Key:
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
