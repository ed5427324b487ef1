"""Heavy and light parts: where an update goes, and when tuples move
(triangle_ivm_epsilon, section 4: OnUpdate, MinorRebalancing, MajorRebalancing).

A split with thresholds N^t1 < N^t2 < ... sets its values in levels. With the threshold base N:

    size      floor(N / 4) <= |D| < N
    level i   1/2 N^ti <= degree (if i > 0) and degree < 3/2 N^t(i+1) (if there is a level above)

where the degree of a value is its largest one in the atoms of the split. The slack on both sides
pays for moving the tuples of a value; doubling and halving N pays for partitioning anew.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from viewkeep.plan.program import Part, Program, Split
from viewkeep.rings import Relation
from viewkeep.rings.index import PAYLOAD, ROW, key_function

Row = tuple[Any, ...]
Apply = Callable[[Row, Any], None]


@dataclass(frozen=True, slots=True)
class Partition:
    """What is heavy now: a split, its thresholds, and the values above the lowest level."""

    split: Split
    thresholds: tuple[float, ...]
    levels: dict[Row, int]
    degrees: dict[Row, int]

    def values(self, level: int) -> list[Row]:
        """The values of a level above the lowest, by falling degree."""
        values = [value for value, own in self.levels.items() if own == level]
        return sorted(values, key=lambda value: -self.degrees[value])


@dataclass(frozen=True, slots=True)
class Layout:
    """The threshold base, and the values above the lowest level of each split."""

    base: int
    levels: tuple[dict[Row, int], ...]


class LevelNote:
    """How to undo changes of levels: what each value had before it changed for the first time.

    It grows with what changes and not with what is heavy, so that noting costs no more than the
    changes themselves.
    """

    def __init__(self, base: int, splits: int) -> None:
        self._base = base
        self._before: list[dict[Row, int | None]] = [{} for _ in range(splits)]
        self._replaced: list[dict[Row, int] | None] = [None] * splits

    def __len__(self) -> int:
        return sum(map(len, self._before))

    def change(self, number: int, value: Row, level: int | None) -> None:
        """Note the level that a value of a split is about to lose; None is the lowest one."""
        if self._replaced[number] is None:
            self._before[number].setdefault(value, level)

    def replace(self, number: int, levels: dict[Row, int]) -> None:
        """Note all levels of a split, in a dict that nobody changes any more, before they are
        replaced."""
        if self._replaced[number] is None:
            self._replaced[number] = levels

    def layout(self, levels: list[dict[Row, int]]) -> Layout:
        """The layout when the note was begun, from the levels that there are now."""
        return Layout(
            self._base, tuple(self._levels_before(n, now) for n, now in enumerate(levels))
        )

    def _levels_before(self, number: int, now: dict[Row, int]) -> dict[Row, int]:
        replaced = self._replaced[number]
        levels = dict(now if replaced is None else replaced)
        for value, level in self._before[number].items():
            levels.pop(value, None)
            if level is not None:
                levels[value] = level
        return levels


class PartitionRebalancer:
    """The parts of all relations and the levels of all values, kept in balance.

    `triggers` run an update of one part; `moves` do so for the maps alone that depend on how
    relations are split; `reload` computes those maps anew.
    """

    def __init__(
        self,
        program: Program,
        maps: dict[str, Relation[Any]],
        counter: list[int],
        triggers: dict[tuple[int, str], Apply],
        moves: dict[tuple[int, str], Apply],
        negate: Callable[[Any], Any],
        reload: Callable[[], None],
    ) -> None:
        self.splits, self.parts, self._maps = program.splits, program.parts, maps
        self._counter, self._triggers, self._moves = counter, triggers, moves
        self._negate, self._reload = negate, reload
        self._skewed = [maps[each.name] for each in program.maps if each.parts]
        self.levels: list[dict[Row, int]] = [{} for _ in self.splits]
        self._members = [self._members_of(number) for number in range(len(self.splits))]
        self._places = {part.atom: self._places_of(part) for part in self.parts}
        self._by_levels = {(p.atom, tuple(level for _, level in p.levels)): p for p in self.parts}
        self.size = 0
        self.minor, self.major = 0, 0
        self.note: LevelNote | None = None
        self.set_base(1)

    def _members_of(self, number: int) -> list["_PartitionMember"]:
        return [
            _PartitionMember(self._maps, number, self.splits[number], atom, self.parts)
            for atom in self.splits[number].atoms
        ]

    def _places_of(self, part: Part) -> list[tuple[int, Callable[[Row], Row]]]:
        """The splits of an atom, each with the function that reads its value from a row."""
        schema = self._maps[part.map].schema
        return [
            (number, key_function(tuple(map(schema.index, self.splits[number].variables))))
            for number, _ in part.levels
        ]

    # --- updates --------------------------------------------------------------------------------

    def on_update(self, atom: int) -> Apply:
        """The trigger of an atom: the part's own trigger, then whatever balance asks for."""
        places, levels, counter = self._places[atom], self.levels, self._counter
        defaults = [self.splits[number].default for number, _ in places]
        parts = {
            levels: (self._maps[part.map], self._triggers[atom, part.map])
            for (owner, levels), part in self._by_levels.items()
            if owner == atom
        }

        def update(row: Row, payload: Any) -> None:
            row_levels = []
            for (number, value_of), default in zip(places, defaults):  # noqa: B905 - as long
                counter[0] += 1
                row_levels.append(levels[number].get(value_of(row), default))
            part, trigger = parts[tuple(row_levels)]
            before = len(part)
            trigger(row, payload)
            grown = len(part) - before
            if grown:
                self.size += grown
                self._rebalance_row(row, places)

        return update

    def _rebalance_row(self, row: Row, places: list[tuple[int, Callable[[Row], Row]]]) -> None:
        if self.size >= self.base:
            self.set_base(2 * self.base)
            self._rebalance_all()
        elif self.size < self.base // 4:
            self.set_base(self.base // 2 - 1)
            self._rebalance_all()
        else:
            for number, value_of in places:
                self._rebalance_value(number, value_of(row))

    def _rebalance_value(self, number: int, value: Row) -> None:
        """Minor rebalancing: move the tuples of one value if its degree has left its level."""
        default, thetas = self.splits[number].default, self._thetas[number]
        level = self.levels[number].get(value, default)
        degree = self._largest_degree(number, value, level)
        above = level < len(thetas) and degree >= 1.5 * thetas[level]
        below = level > default and degree < 0.5 * thetas[level - 1]
        if above or below:
            self._move_tuples(number, value, level, _level_of_degree(degree, thetas, default))
        elif not degree or level > 0:
            self._write_level(number, value, level if degree else 0)

    def _largest_degree(self, number: int, value: Row, level: int) -> int:
        members = self._members[number]
        self._counter[0] += sum(member.look_ups for member in members)
        return max(member.degree(value, level) for member in members)

    def _move_tuples(self, number: int, value: Row, source: int, target: int) -> None:
        self.minor += 1
        moves, negate, counter = self._moves, self._negate, self._counter
        for member in self._members[number]:
            for part, rows in member.rows(value, source):
                other = self._by_levels[part.atom, _levels_with(part.levels, number, target)]
                leave, join = moves[part.atom, part.map], moves[part.atom, other.map]
                here, there = self._maps[part.map], self._maps[other.map]
                for row, payload in rows:
                    counter[0] += 1
                    try:
                        leave(row, negate(payload))
                        join(row, payload)
                    except Exception:
                        # A ring may refuse; whoever mends that reads all tuples from the parts.
                        if here.find_entry(row) is None and there.find_entry(row) is None:
                            here.add(row, payload)
                        raise
        self._set_level(number, value, target)

    def _set_level(self, number: int, value: Row, level: int) -> None:
        present = level and any(member.degree(value, level) for member in self._members[number])
        self._write_level(number, value, level if present else 0)

    def _write_level(self, number: int, value: Row, level: int) -> None:
        """Set the level of a value, and note the one it had; the lowest level is not kept."""
        levels = self.levels[number]
        before = levels.get(value)
        if before == (level or None):
            return
        if self.note is not None:
            self.note.change(number, value, before)
        if level:
            levels[value] = level
        else:
            del levels[value]

    # --- whole databases ------------------------------------------------------------------------

    def set_base(self, base: int) -> None:
        """The threshold base N, and with it the thresholds."""
        self.base = base
        self._thetas = [tuple(base**t for t in split.thresholds) for split in self.splits]

    def _rebalance_all(self) -> None:
        """Major rebalancing: partition strictly by the new thresholds, compute the views anew."""
        self.major += 1
        rows = [
            (part.atom, entry[ROW], entry[PAYLOAD])
            for part in self.parts
            if part.levels
            for entry in self._maps[part.map].entries
        ]
        for relation in self._skewed:
            relation.clear()
        self._partition_rows(rows)
        self._reload()

    def load(self, rows: list[tuple[int, Row, Any]], layout: Layout | None = None) -> None:
        """Fill the parts: strictly, with room for the database to grow and shrink, or as it was."""
        self.size = len(rows)
        if layout is None:
            self.set_base(2 * self.size + 1)
            self._partition_rows(rows)
        else:
            self.set_base(layout.base)
            self.levels[:] = [dict(levels) for levels in layout.levels]
            self._fill_parts(rows)

    def begin_note(self) -> LevelNote:
        """Note from now on how levels change, until `end_note`."""
        self.note = LevelNote(self.base, len(self.splits))
        return self.note

    def end_note(self) -> None:
        """Note no more."""
        self.note = None

    def layout(self) -> Layout:
        """What is heavy now, for a load that must give just this state."""
        return Layout(self.base, tuple(dict(levels) for levels in self.levels))

    def _partition_rows(self, rows: list[tuple[int, Row, Any]]) -> None:
        degrees = [Counter[tuple[int, Row]]() for _ in self.splits]
        for atom, row, _ in rows:
            self._counter[0] += 1
            for number, value_of in self._places[atom]:
                degrees[number][atom, value_of(row)] += 1
        for number, split in enumerate(self.splits):
            largest: dict[Row, int] = {}
            for (_, value), degree in degrees[number].items():
                largest[value] = max(degree, largest.get(value, 0))
            if self.note is not None:
                self.note.replace(number, self.levels[number])
            thetas, levels = self._thetas[number], dict[Row, int]()
            self.levels[number] = levels
            for value, degree in largest.items():
                if level := _level_of_degree(degree, thetas, split.default):
                    levels[value] = level
        self._fill_parts(rows)

    def _fill_parts(self, rows: list[tuple[int, Row, Any]]) -> None:
        for atom, row, payload in rows:
            self._counter[0] += 1
            places = self._places[atom]
            row_levels = tuple([self.levels[n].get(value_of(row), 0) for n, value_of in places])
            self._maps[self._by_levels[atom, row_levels].map].add(row, payload)

    def recover(self, base: int) -> None:
        """Take up the levels from parts that were filled by hand."""
        self.set_base(base)
        self.size = sum(len(self._maps[part.map]) for part in self.parts)
        for number, members in enumerate(self._members):
            self.levels[number].clear()
            for member in members:
                self.levels[number].update(member.levels())

    # --- reading --------------------------------------------------------------------------------

    def state(self) -> tuple[Partition, ...]:
        """What is heavy now, split by split."""
        return tuple(
            Partition(
                split,
                self._thetas[number],
                dict(self.levels[number]),
                {
                    value: max(member.degree(value, level) for member in self._members[number])
                    for value, level in self.levels[number].items()
                },
            )
            for number, split in enumerate(self.splits)
        )


class _PartitionMember:
    """An atom of a split: its degrees and rows by value, whatever the levels in other splits."""

    def __init__(
        self,
        maps: dict[str, Relation[Any]],
        number: int,
        split: Split,
        atom: int,
        parts: tuple[Part, ...],
    ) -> None:
        own = [(dict(part.levels)[number], part) for part in parts if part.atom == atom]
        schema = maps[own[0][1].map].schema
        columns = tuple(v for v in schema if v in split.variables)
        self._key = key_function(tuple(map(split.variables.index, columns)))
        self._value = key_function(tuple(map(schema.index, split.variables)))
        self._parts: dict[int, list[tuple[Part, Relation[Any], Any]]] = {}
        for level, part in own:
            find = maps[part.map].index_on(columns).find_group
            self._parts.setdefault(level, []).append((part, maps[part.map], find))
        self.look_ups = len(self._parts[0])

    def degree(self, value: Row, level: int) -> int:
        """In how many tuples of the atom the value is; all are in parts of its level."""
        key = self._key(value)
        return sum([len(find(key) or ()) for _, _, find in self._parts[level]])

    def rows(self, value: Row, level: int) -> Iterator[tuple[Part, list[tuple[Row, Any]]]]:
        """The tuples with the value in each part of a level."""
        key = self._key(value)
        for part, _, find in self._parts[level]:
            yield part, [(entry[ROW], entry[PAYLOAD]) for entry in find(key) or ()]

    def levels(self) -> Iterator[tuple[Row, int]]:
        """The values above the lowest level, by the parts that their tuples are in."""
        for level, parts in self._parts.items():
            for _, relation, _ in parts if level else ():
                yield from ((self._value(entry[ROW]), level) for entry in relation.entries)


def _level_of_degree(degree: int, thetas: tuple[float, ...], default: int) -> int:
    return max(sum(degree >= theta for theta in thetas), default)


def _levels_with(levels: tuple[tuple[int, int], ...], number: int, level: int) -> tuple[int, ...]:
    return tuple(level if own == number else level_before for own, level_before in levels)
