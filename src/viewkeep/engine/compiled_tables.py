"""The text of tables and lists: open addressing with rows side by side, pools of dense lists.

A table probes linearly from the place that the hash names. Removing a row shifts back the rows
that follow it, so that no tombstones are left: probing costs the same after any number of updates.
Tables grow at three quarters and shrink at an eighth. The first key word of a free place is EMPTY,
which no value is coded as.

Functions are shared by all tables of a shape: key words, row words. `d` is the address of the
table's words in the state: rows, mask, entries, limit, borrowed.
"""

from collections.abc import Iterator

from viewkeep.engine.compiled_layout import LOADING, Index, Memory, Store

EMPTY = -(2**63)
"""No key: values are coded within 63 bits."""

SMALLEST = 16
"""Places of an empty table."""

_MULTIPLIERS = (-7046029254386353131, -4417276706812531889, -8663945395140668459, 5545529020109919103)


def keys(count: int, stem: str = "k") -> list[str]:
    """Variables for a key."""
    return [f"{stem}{i}" for i in range(count)]


def joined(*parts: list[str]) -> str:
    """Arguments of a call."""
    return ", ".join(each for part in parts for each in part)


def hash_text(count: int) -> str:
    """Mixes the words of a key; the middle bits are used."""
    lines = [f"def hash_{count}({joined(keys(count))}):", "    h = 0"]
    for i in range(count):
        multiplier = _MULTIPLIERS[i % len(_MULTIPLIERS)]
        lines += [f"    h = (h + k{i}) * {multiplier}", "    h = h ^ (h >> 32)"]
    return "\n".join([*lines, f"    return (h * {_MULTIPLIERS[1]}) >> 20", ""])


def table_text(arity: int, stride: int) -> str:
    """Find, insert, remove and resize, for rows of this shape."""
    names, shape = keys(arity), f"{arity}_{stride}"
    same = " and ".join(
        ["first == k0", *(f"row[{i}] == k{i}" for i in range(1, arity))]
    )
    own = joined([f"row[{i}]" for i in range(arity)])
    fill = [f"    row[{i}] = k{i}" for i in range(arity)]
    fill += [f"    row[{i}] = 0" for i in range(arity, stride)]
    copy = [f"            gap[{i}] = row[{i}]" for i in range(stride)]
    return f"""
def find_{shape}(d, {joined(names)}):
    rows = d[0]
    mask = d[1]
    i = hash_{arity}({joined(names)}) & mask
    while 1:
        row = rows + i * {8 * stride}
        first = row[0]
        if {same}:
            return row
        if first == {EMPTY}:
            return 0
        i = (i + 1) & mask
    return 0

def seek_{shape}(d, {joined(names)}):
    return find_{shape}(d, {joined(names)})

def hint_{shape}(d, {joined(names)}):
    prefetch(d[0] + (hash_{arity}({joined(names)}) & d[1]) * {8 * stride})

def insert_{shape}(d, {joined(names)}):
    if d[2] >= d[3]:
        resize_{shape}(d, 2 * (d[1] + 1))
    rows = d[0]
    mask = d[1]
    i = hash_{arity}({joined(names)}) & mask
    row = rows + i * {8 * stride}
    while row[0] != {EMPTY}:
        i = (i + 1) & mask
        row = rows + i * {8 * stride}
    d[2] += 1
{chr(10).join(fill)}
    return row

def remove_{shape}(d, row):
    rows = d[0]
    mask = d[1]
    gap = row
    hole = (row - rows) // {8 * stride}
    i = hole
    while 1:
        i = (i + 1) & mask
        row = rows + i * {8 * stride}
        if row[0] == {EMPTY}:
            break
        home = hash_{arity}({own}) & mask
        if ((i - home) & mask) >= ((i - hole) & mask):
{chr(10).join(copy)}
            gap = row
            hole = i
    gap[0] = {EMPTY}
    d[2] -= 1
    if d[2] * 8 < mask and mask >= {SMALLEST}:
        resize_{shape}(d, (mask + 1) >> 1)

def resize_{shape}(d, room):
    old = d[0]
    end = old + (d[1] + 1) * {8 * stride}
    rows = claim(room * {8 * stride})
    for i in range(room):
        row = rows + i * {8 * stride}
        row[0] = {EMPTY}
    mask = room - 1
    row = old
    while row < end:
        if row[0] != {EMPTY}:
            i = hash_{arity}({own}) & mask
            gap = rows + i * {8 * stride}
            while gap[0] != {EMPTY}:
                i = (i + 1) & mask
                gap = rows + i * {8 * stride}
            move(gap, row, {8 * stride})
        row += {8 * stride}
    if d[4] == 0:
        release(old)
    d[0] = rows
    d[1] = mask
    d[3] = room - (room >> 2)
    d[4] = 0

def start_{shape}(d):
    rows = claim({SMALLEST * 8 * stride})
    for i in range({SMALLEST}):
        row = rows + i * {8 * stride}
        row[0] = {EMPTY}
    d[0] = rows
    d[1] = {SMALLEST - 1}
    d[2] = 0
    d[3] = {SMALLEST - SMALLEST // 4}
    d[4] = 0

def clear_{shape}(d):
    if d[4] == 0:
        release(d[0])
    start_{shape}(d)
"""


CLAIM = """
def claim(size):
    # Pages of 2 MB for large tables: random access misses fewer address translations.
    if size < 4194304:
        return allocate(size)
    place = aligned(2097152, (size + 2097151) & -2097152)
    advise(place, (size + 2097151) & -2097152, 14)
    return place
"""


def list_text(width: int) -> str:
    """Lists of entries of so many words, in blocks of a pool that hold a power of two of them.

    `g` is the address of a list's words: its offset in the pool, its length, its size class.
    `pool`: words, used, room, borrowed, then the first free block of each class.
    """
    return f"""
def take_{width}(pool, size):
    block = pool[4 + size]
    if block != 0:
        place = pool[0] + (block - 1) * 8
        pool[4 + size] = place[0]
        return block - 1
    used = pool[1]
    if used + ({width} << size) > pool[2]:
        room = 2 * (used + ({width} << size))
        words = claim(room * 8)
        move(words, pool[0], used * 8)
        if pool[3] == 0:
            release(pool[0])
        pool[0] = words
        pool[2] = room
        pool[3] = 0
    pool[1] = used + ({width} << size)
    return used

def give_{width}(pool, size, block):
    place = pool[0] + block * 8
    place[0] = pool[4 + size]
    pool[4 + size] = block + 1

def push_{width}(pool, g):
    n = g[1]
    size = g[2]
    if n == (1 << size) >> 1:
        block = take_{width}(pool, size)
        if n != 0:
            move(pool[0] + block * 8, pool[0] + g[0] * 8, n * {8 * width})
            give_{width}(pool, size - 1, g[0])
        g[0] = block
        g[2] = size + 1
    g[1] = n + 1
    return pool[0] + (g[0] + n * {width}) * 8

def pop_{width}(pool, g):
    n = g[1] - 1
    size = g[2] - 1
    g[1] = n
    if n == 0:
        give_{width}(pool, size, g[0])
        g[2] = 0
        return 0
    if n * 4 <= (1 << size) and size > 2:
        block = take_{width}(pool, size - 1)
        move(pool[0] + block * 8, pool[0] + g[0] * 8, n * {8 * width})
        give_{width}(pool, size, g[0])
        g[0] = block
        g[2] = size
    return 0
"""


START_POOL = """
def start_pool(p):
    p[0] = claim(128)
    p[1] = 0
    p[2] = 16
    p[3] = 0
    for i in range(4, 52):
        p[i] = 0

def clear_pool(p):
    if p[3] == 0:
        release(p[0])
    start_pool(p)
"""


def word(store: Store, i: int, row: str = "row") -> str:
    """A word of a map's payload in a row."""
    place = store.word + i
    return f"float_at({row}, {place})" if store.shape.kinds[i] == "f" else f"{row}[{place}]"


def words(store: Store, row: str = "row") -> list[str]:
    """All words of a map's payload in a row."""
    return [word(store, i, row) for i in range(store.shape.width)]


def set_word(kind: str, base: str, place: int, value: str) -> str:
    """The statement that writes a word."""
    return f"set_float_at({base}, {place}, {value})" if kind == "f" else f"{base}[{place}] = {value}"


def descriptor(at: int) -> str:
    """The address of words of the state."""
    return f"s + {8 * at}"


def entry_width(store: Store, index: Index) -> int:
    """How many words an entry of an index's list has."""
    return len(index.rest) + (store.shape.width if index.carries else 0)


def function_name(verb: str, store: Store) -> str:
    """What a function of a map is called: maps that lie alike share it."""
    return f"{verb}__{signature(store)}"


def signature(store: Store) -> str:
    """What the functions of a map depend on, wherever in the state the map is."""
    base, place = store.table.at, store.key.index
    parts = [store.table.shape, str(store.word), store.shape.kinds]
    for index in store.indexes:
        columns = [str(place(v)) for v in (*index.columns, *index.rest)]
        flags = f"{len(index.columns)}{'c' * index.carries}{'t' * index.temporary}"
        offsets = f"{index.groups.at - base}_{index.pool - base}"
        parts.append("_".join((*columns, flags, str(index.place), offsets)))
    return "__".join(parts)


def store_text(store: Store) -> Iterator[str]:
    """`add`: the payload to an entry of a map, whose row is there; 1 it appeared, -1 it vanished.

    The row stays, even if all its maps are zero now: who holds it removes it (`settle`). `b` is
    the address of the table's words in the state; those of its indexes come after them.
    """
    arity, shape = len(store.key), store.shape
    names, payload = keys(arity), shape.names("p")
    old, new = shape.names("o"), shape.names("n")
    lines = [f"def {function_name('add', store)}(s, b, row, {joined(names, payload)}):"]
    lines += [f"    {o} = {w}" for o, w in zip(old, words(store), strict=True)]
    lines += [f"    {n} = {total}" for n, total in zip(new, shape.add(old, payload), strict=True)]
    lines += [
        "    " + set_word(k, "row", store.word + i, n)
        for i, (k, n) in enumerate(zip(shape.kinds, new, strict=True))
    ]
    lines += [f"    if {shape.zero_test(old)}:", f"        if {shape.zero_test(new)}:"]
    lines += ["            return 0"]
    for number, index in enumerate(store.indexes):
        arguments = joined(names, new if index.carries else [])
        lines += _guarded(index, f"{_index_name('append', store, number)}(b, row, {arguments})")
    lines += ["        return 1", f"    if {shape.zero_test(new)}:"]
    for number, index in enumerate(store.indexes):
        lines += _guarded(index, f"{_index_name('leave', store, number)}(b, row, {joined(names)})")
    lines += ["        return -1"]
    for number, index in enumerate(store.indexes):
        if index.carries:
            call = f"{_index_name('rewrite', store, number)}(b, row, {joined(names, new)})"
            lines += [line[4:] for line in _guarded(index, call)]
    yield "\n".join([*lines, "    return 0", ""])
    for number, index in enumerate(store.indexes):
        yield from _index_text(store, index, number)


def _guarded(index: Index, call: str) -> list[str]:
    if index.temporary:
        return [f"        if s[{LOADING}] != 0:", f"            {call}"]
    return [f"        {call}"]


def _index_name(verb: str, store: Store, number: int) -> str:
    return f"{function_name(verb, store)}__{number}"


def _behind(store: Store, at: int) -> str:
    """The address of words that come after those of the map's table."""
    return f"b + {8 * (at - store.table.at)}"


def _index_text(store: Store, index: Index, number: int) -> Iterator[str]:
    place = {v: f"k{i}" for i, v in enumerate(store.key)}
    width, arity = entry_width(store, index), len(index.columns)
    names, payload = joined(keys(len(store.key))), store.shape.names("p")
    pool, groups = _behind(store, index.pool), _behind(store, index.groups.at)
    key = joined([place[v] for v in index.columns])
    find = f"    g = find_{index.groups.shape}({groups}, {key})" if arity else f"    g = {groups}"
    write = [f"    entry[{i}] = {place[v]}" for i, v in enumerate(index.rest)]
    carried = [
        "    " + set_word(k, "entry", len(index.rest) + i, p)
        for i, (k, p) in enumerate(zip(store.shape.kinds, payload, strict=True))
    ]
    given = joined([names], payload if index.carries else [])
    lines = [f"def {_index_name('append', store, number)}(b, row, {given}):", find]
    if arity:
        insert = f"insert_{index.groups.shape}({groups}, {key})"
        lines += ["    if g == 0:", f"        g = {insert}", f"    g += {8 * arity}"]
    lines += [f"    row[{index.place}] = g[1]", f"    entry = push_{width}({pool}, g)", *write]
    yield "\n".join([*lines, *(carried if index.carries else []), ""])
    if index.carries:
        entry = f"p[0] + (g[0] + row[{index.place}] * {width}) * 8"
        lines = [f"def {_index_name('rewrite', store, number)}(b, row, {given}):", find]
        lines += [f"    g += {8 * arity}", f"    p = {pool}", f"    entry = {entry}"]
        yield "\n".join([*lines, *carried, ""])
    yield _leave_text(store, index, number, find)


def _leave_text(store: Store, index: Index, number: int, find: str) -> str:
    """The last entry of the list moves into the gap, and its row learns its new position."""
    width, arity, table = entry_width(store, index), len(index.columns), store.table
    rest = {v: f"last[{i}]" for i, v in enumerate(index.rest)}
    moved = joined([rest.get(v, f"k{i}") for i, v in enumerate(store.key)])
    lines = [
        f"def {_index_name('leave', store, number)}(b, row, {joined(keys(len(store.key)))}):",
        find,
        f"    g += {8 * arity}",
        f"    p = {_behind(store, index.pool)}",
        f"    here = row[{index.place}]",
        "    n = g[1] - 1",
        "    if here != n:",
        f"        last = p[0] + (g[0] + n * {width}) * 8",
        f"        entry = p[0] + (g[0] + here * {width}) * 8",
        *(f"        entry[{i}] = last[{i}]" for i in range(width)),
        f"        other = find_{table.shape}(b, {moved})",
        f"        other[{index.place}] = here",
        f"    pop_{width}(p, g)",
    ]
    if arity:
        groups = f"{_behind(store, index.groups.at)}, g - {8 * arity}"
        lines += ["    if n == 0:", f"        remove_{index.groups.shape}({groups})"]
    return "\n".join([*lines, ""])


def memory_text(memory: Memory) -> Iterator[str]:
    """All functions of tables, lists and maps, and `start`, which makes everything empty."""
    yield CLAIM
    yield START_POOL
    indexes = [(store, index) for store in memory.stores.values() for index in store.indexes]
    keyed = [table for table in memory.tables if table.key]
    yield from (hash_text(count) for count in sorted({len(table.key) for table in keyed}))
    yield from (table_text(*shape) for shape in sorted({(len(t.key), t.stride) for t in keyed}))
    yield from (list_text(width) for width in sorted({entry_width(*each) for each in indexes}))
    for store in {signature(store): store for store in memory.stores.values()}.values():
        yield from store_text(store)
    lines = ["def start(s):"]
    for table in memory.tables:
        if table.key:
            lines.append(f"    start_{table.shape}({descriptor(table.at)})")
    lines += [f"    start_pool({descriptor(index.pool)})" for _, index in indexes]
    yield "\n".join([*lines, "    return 0", ""])
