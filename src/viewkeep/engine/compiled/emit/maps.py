"""The text of maps: adding to an entry, and keeping its indexes up to date."""

from collections.abc import Iterator, Sequence

from viewkeep.engine.compiled.emit.heaps import order_text, rise_lines, sink_lines
from viewkeep.engine.compiled.emit.tables import (
    CLAIM,
    POOL,
    call_arguments,
    descriptor,
    hash_text,
    keys,
    list_text,
    table_text,
)
from viewkeep.engine.compiled.function import Function, Heat
from viewkeep.engine.compiled.layout import DICTIONARY, LOADING, NEGATIVE, Index, Memory, Store
from viewkeep.engine.compiled.rings import RingShape


def words(store: Store, row: str = "row") -> list[str]:
    """All numbers of a map's payload in a row."""
    return numbers_at(store.shape, row, store.word)


def numbers_at(shape: RingShape, base: str, start: int = 0) -> list[str]:
    """The numbers of an element that starts at a word."""
    return [number_at(kind, base, str(start + place)) for place, kind in shape.places]


def set_numbers(shape: RingShape, base: str, start: int, values: Sequence[str]) -> list[str]:
    """The statements that write an element."""
    return [
        set_number(kind, base, str(start + place), value)
        for (place, kind), value in zip(shape.places, values, strict=True)
    ]


def number_at(kind: str, base: str, place: str) -> str:
    """A number that starts at a word."""
    if kind == "i":
        return f"{base}[{place}]"
    return f"{'float' if kind == 'f' else f'wide{kind}'}_at({base}, {place})"


def set_number(kind: str, base: str, place: str, value: str) -> str:
    """The statement that writes a number."""
    if kind == "i":
        return f"{base}[{place}] = {value}"
    return f"set_{'float' if kind == 'f' else f'wide{kind}'}_at({base}, {place}, {value})"


def column_place(kind: str, row: str) -> str:
    """The word of a column at which a row's number starts."""
    return f"{row} * {kind}" if kind.isdigit() else row


def entry_width(store: Store, index: Index) -> int:
    """How many words an entry of an index's list has."""
    return len(index.rest) + (store.shape.size if index.carries else 0)


def function_name(verb: str, store: Store) -> str:
    """What a function of a map is called: maps that lie alike share it."""
    return f"{verb}__{signature(store)}"


def signature(store: Store) -> str:
    """What the functions of a map depend on, wherever in the state the map is."""
    base, place = store.table.at, store.key.index
    parts = [store.table.shape, str(store.word), store.shape.kinds]
    for index in store.indexes:
        columns = [str(place(v)) for v in (*index.columns, *index.rest)]
        flags = f"{len(index.columns)}{'c' * index.carries}{'t' * index.temporary}{index.order}"
        offsets = f"{index.groups.at - base}_{index.pool - base}"
        parts.append("_".join((*columns, flags, str(index.place), offsets)))
    return "__".join(parts + ["counted"] * store.counted)


def store_text(store: Store, memory: Memory) -> Iterator[Function]:
    """`add`: the payload to an entry of a map, whose row is there; 1 it appeared, -1 it vanished.

    The row stays, even if all its maps are zero now: who holds it removes it (`settle`). `b` is
    the address of the table's words in the state; those of its indexes come after them.
    """
    arity, shape = len(store.key), store.shape
    names, payload = keys(arity), shape.names("p")
    old, new = shape.names("o"), shape.names("n")
    lines = [f"    {o} = {w}" for o, w in zip(old, words(store), strict=True)]
    lines += [f"    {n} = {total}" for n, total in zip(new, shape.add(old, payload), strict=True)]
    lines += [f"    {line}" for line in set_numbers(shape, "row", store.word, new)]
    lines += _negative_lines(old[0], new[0], memory) if store.counted else []
    lines += [f"    if {shape.zero_test(old)}:", f"        if {shape.zero_test(new)}:"]
    lines += ["            return 0"]
    for number, index in enumerate(store.indexes):
        arguments = call_arguments(names, new if index.carries else [])
        lines += _guarded_call(
            index, f"{_index_function_name('append', store, number)}(b, row, {arguments})"
        )
    lines += ["        return 1", f"    if {shape.zero_test(new)}:"]
    for number, index in enumerate(store.indexes):
        lines += _guarded_call(
            index,
            f"{_index_function_name('leave', store, number)}(b, row, {call_arguments(names)})",
        )
    lines += ["        return -1"]
    for number, index in enumerate(store.indexes):
        if index.carries:
            function = _index_function_name("rewrite", store, number)
            call = f"{function}(b, row, {call_arguments(names, new)})"
            lines += [line[4:] for line in _guarded_call(index, call)]
    yield Function(
        function_name("add", store),
        f"s, b, row, {call_arguments(names, payload)}",
        [*lines, "    return 0"],
        inline=not store.indexes,
        heat=Heat.HOT,
    )
    for number, index in enumerate(store.indexes):
        yield from _index_functions(store, index, number, memory)


def _negative_lines(old: str, new: str, memory: Memory) -> list[str]:
    """Lines that keep the number of negative counts."""
    place = memory.areas[NEGATIVE]
    return [
        f"    if {old} < 0:",
        f"        s[{place}] -= 1",
        f"    if {new} < 0:",
        f"        s[{place}] += 1",
    ]


def _guarded_call(index: Index, call: str) -> list[str]:
    if index.temporary:
        return [f"        if s[{LOADING}] != 0:", f"            {call}"]
    return [f"        {call}"]


def _index_function_name(verb: str, store: Store, number: int) -> str:
    return f"{function_name(verb, store)}__{number}"


def _index_address(store: Store, at: int) -> str:
    """The address of words that come after those of the map's table."""
    return f"b + {8 * (at - store.table.at)}"


def _index_functions(store: Store, index: Index, number: int, memory: Memory) -> Iterator[Function]:
    place = {v: f"k{i}" for i, v in enumerate(store.key)}
    width, arity = entry_width(store, index), len(index.columns)
    names, payload = call_arguments(keys(len(store.key))), store.shape.names("p")
    pool, groups = _index_address(store, index.pool), _index_address(store, index.groups.at)
    key = call_arguments([place[v] for v in index.columns])
    find = f"    g = find_{index.groups.shape}({groups}, {key})" if arity else f"    g = {groups}"
    write = [f"    entry[{i}] = {place[v]}" for i, v in enumerate(index.rest)]
    carried = [
        f"    {line}" for line in set_numbers(store.shape, "entry", len(index.rest), payload)
    ]
    parameters = f"b, row, {call_arguments([names], payload if index.carries else [])}"
    lines = [find]
    if arity:
        insert = f"insert_{index.groups.shape}({groups}, {key})"
        lines += ["    if g == 0:", f"        g = {insert}", f"    g += {8 * arity}"]
    if index.order:
        lines += _rise_lines(store, index, memory)
    else:
        lines += [f"    row[{index.place}] = g[1]", f"    entry = push_{width}({pool}, g)", *write]
    lines += carried if index.carries else []
    yield Function(_index_function_name("append", store, number), parameters, lines)
    if index.carries:
        entry = f"p[0] + (g[0] + row[{index.place}] * {width}) * 8"
        lines = [find, f"    g += {8 * arity}", f"    p = {pool}", f"    entry = {entry}"]
        yield Function(
            _index_function_name("rewrite", store, number), parameters, [*lines, *carried]
        )
    yield _leave_index_text(store, index, number, find, memory)


def _find_other(store: Store, index: Index) -> str:
    """The row of the value `other` of the same group."""
    (value,) = index.rest
    key = ["other" if v == value else f"k{i}" for i, v in enumerate(store.key)]
    return f"find_{store.table.shape}(b, {call_arguments(key)})"


def _dictionary(store: Store, memory: Memory) -> str:
    """The address of the dictionary of texts."""
    return f"b[{memory.areas[DICTIONARY] - store.table.at}]"


def _rise_lines(store: Store, index: Index, memory: Memory) -> list[str]:
    """Lines that put the value of a row into the heap of its group."""
    (value,) = index.rest
    pool, find = _index_address(store, index.pool), _find_other(store, index)
    lines = [
        f"t = {_dictionary(store, memory)}",
        "here = g[1]",
        f"p = {pool}",
        f"push_{entry_width(store, index)}(p, g)",
        "base = p[0] + g[0] * 8",
        f"value = k{store.key.index(value)}",
        *rise_lines(index.order, find, index.place),
        "base[here] = value",
        f"row[{index.place}] = here",
    ]
    return [f"    {line}" for line in lines]


def _fill_gap_lines(store: Store, index: Index, memory: Memory) -> list[str]:
    """Lines that close the gap `here` of a heap with its last value."""
    find = _find_other(store, index)
    lines = [
        "if here != n:",
        f"    t = {_dictionary(store, memory)}",
        "    base = p[0] + g[0] * 8",
        "    value = base[n]",
        *(f"    {line}" for line in rise_lines(index.order, find, index.place)),
        *(f"    {line}" for line in sink_lines(index.order, find, index.place)),
        "    base[here] = value",
        "    other = value",
        f"    mover = {find}",
        f"    mover[{index.place}] = here",
    ]
    return [f"    {line}" for line in lines]


def _leave_index_text(
    store: Store, index: Index, number: int, find: str, memory: Memory
) -> Function:
    """The last entry of the list moves into the gap, and its row learns its new position."""
    width, arity, table = entry_width(store, index), len(index.columns), store.table
    rest = {v: f"last[{i}]" for i, v in enumerate(index.rest)}
    moved = call_arguments([rest.get(v, f"k{i}") for i, v in enumerate(store.key)])
    fill = [
        "    if here != n:",
        f"        last = p[0] + (g[0] + n * {width}) * 8",
        f"        entry = p[0] + (g[0] + here * {width}) * 8",
        *(f"        entry[{i}] = last[{i}]" for i in range(width)),
        f"        other = find_{table.shape}(b, {moved})",
        f"        other[{index.place}] = here",
    ]
    lines = [
        find,
        f"    g += {8 * arity}",
        f"    p = {_index_address(store, index.pool)}",
        f"    here = row[{index.place}]",
        "    n = g[1] - 1",
        *(_fill_gap_lines(store, index, memory) if index.order else fill),
        f"    pop_{width}(p, g)",
    ]
    if arity:
        groups = f"{_index_address(store, index.groups.at)}, g - {8 * arity}"
        lines += ["    if n == 0:", f"        remove_{index.groups.shape}({groups})"]
    parameters = f"b, row, {call_arguments(keys(len(store.key)))}"
    return Function(_index_function_name("leave", store, number), parameters, lines)


def memory_text(memory: Memory) -> Iterator[Function]:
    """All functions of tables, lists and maps, and `start`, which makes everything empty."""
    yield CLAIM
    yield from POOL
    indexes = [(store, index) for store in memory.stores.values() for index in store.indexes]
    keyed = [table for table in memory.tables if table.key]
    yield from (hash_text(count) for count in sorted({len(table.key) for table in keyed}))
    for shape in sorted({(len(table.key), table.stride) for table in keyed}):
        yield from table_text(*shape)
    for order in sorted({index.order for _, index in indexes if index.order}):
        yield from order_text(order)
    for width in sorted({entry_width(*each) for each in indexes}):
        yield from list_text(width)
    for store in {signature(store): store for store in memory.stores.values()}.values():
        yield from store_text(store, memory)
    lines = [f"    start_{table.shape}({descriptor(table.at)})" for table in keyed]
    lines += [f"    start_pool({descriptor(index.pool)})" for _, index in indexes]
    yield Function("start", "s", [*lines, "    return 0"], public=True)
