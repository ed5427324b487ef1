"""The text of tables and lists: open addressing with rows side by side, pools of dense lists.

A table probes linearly from the place that the hash names. Removing a row shifts back the rows
that follow it, so that no tombstones are left: probing costs the same after any number of updates.
Tables grow at three quarters and shrink at an eighth. The first key word of a free place is EMPTY,
which no value is coded as.

Functions are shared by all tables of a shape: key words, row words. `d` is the address of the
table's words in the state: rows, mask, entries, limit, borrowed.
"""

from collections.abc import Iterator

from viewkeep.engine.compiled.function import Function, Heat

EMPTY = -(2**63)
"""No key: values are coded within 63 bits."""

SMALLEST = 16
"""Places of an empty table."""

_MULTIPLIERS = (
    -7046029254386353131,
    -4417276706812531889,
    -8663945395140668459,
    5545529020109919103,
)


def keys(count: int, stem: str = "k") -> list[str]:
    """Variables for a key."""
    return [f"{stem}{i}" for i in range(count)]


def call_arguments(*parts: list[str]) -> str:
    """Arguments of a call."""
    return ", ".join(each for part in parts for each in part)


def hash_text(count: int) -> Function:
    """Mixes the words of a key; the middle bits are used."""
    lines = ["    h = 0"]
    for i in range(count):
        multiplier = _MULTIPLIERS[i % len(_MULTIPLIERS)]
        lines += [f"    h = (h + k{i}) * {multiplier}", "    h = h ^ (h >> 32)"]
    lines += [f"    return (h * {_MULTIPLIERS[1]}) >> 20"]
    return Function(f"hash_{count}", call_arguments(keys(count)), lines, inline=True)


def table_text(arity: int, stride: int) -> Iterator[Function]:
    """Find, insert, remove and resize, for rows of this shape."""
    names, shape = keys(arity), f"{arity}_{stride}"
    key = f"d, {call_arguments(names)}"
    same = " and ".join(["first == k0", *(f"row[{i}] == k{i}" for i in range(1, arity))])
    own = call_arguments([f"row[{i}]" for i in range(arity)])
    fill = [f"    row[{i}] = k{i}" for i in range(arity)]
    fill += [f"    row[{i}] = 0" for i in range(arity, stride)]
    copy = [f"            gap[{i}] = row[{i}]" for i in range(stride)]
    find = f"""\
    rows = d[0]
    mask = d[1]
    i = hash_{arity}({call_arguments(names)}) & mask
    while 1:
        row = rows + i * {8 * stride}
        first = row[0]
        if {same}:
            return row
        if first == {EMPTY}:
            return 0
        i = (i + 1) & mask
    return 0"""
    insert = f"""\
    if d[2] >= d[3]:
        resize_{shape}(d, 2 * (d[1] + 1))
    rows = d[0]
    mask = d[1]
    i = hash_{arity}({call_arguments(names)}) & mask
    row = rows + i * {8 * stride}
    while row[0] != {EMPTY}:
        i = (i + 1) & mask
        row = rows + i * {8 * stride}
    d[2] += 1
{chr(10).join(fill)}
    return row"""
    remove = f"""\
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
        resize_{shape}(d, (mask + 1) >> 1)"""
    resize = f"""\
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
    d[4] = 0"""
    start = f"""\
    rows = claim({SMALLEST * 8 * stride})
    for i in range({SMALLEST}):
        row = rows + i * {8 * stride}
        row[0] = {EMPTY}
    d[0] = rows
    d[1] = {SMALLEST - 1}
    d[2] = 0
    d[3] = {SMALLEST - SMALLEST // 4}
    d[4] = 0"""
    clear = f"""\
    if d[4] == 0:
        release(d[0])
    start_{shape}(d)"""
    place = f"d[0] + (hash_{arity}({call_arguments(names)}) & d[1]) * {8 * stride}"
    seek = f"seek_{shape}"
    yield Function(f"find_{shape}", key, [find], inline=True, heat=Heat.LOOK_UP, outlined=seek)
    yield Function(seek, key, [f"    return find_{shape}({key})"], public=True, heat=Heat.LOOK_UP)
    yield Function(f"hint_{shape}", key, [f"    prefetch({place})"], inline=True)
    yield Function(f"insert_{shape}", key, [insert])
    yield Function(f"remove_{shape}", "d, row", [remove])
    yield Function(f"resize_{shape}", "d, room", [resize])
    yield Function(f"start_{shape}", "d", [start])
    yield Function(f"clear_{shape}", "d", [clear])


CLAIM = Function(
    "claim",
    "size",
    [
        "    # Pages of 2 MB for large tables: random access misses fewer address translations.",
        "    if size < 4194304:",
        "        return allocate(size)",
        "    place = aligned(2097152, (size + 2097151) & -2097152)",
        "    advise(place, (size + 2097151) & -2097152, 14)",
        "    return place",
    ],
)


def list_text(width: int) -> Iterator[Function]:
    """Lists of entries of so many words, in blocks of a pool that hold a power of two of them.

    `g` is the address of a list's words: its offset in the pool, its length, its size class.
    `pool`: words, used, room, borrowed, then the first free block of each class.
    """
    take = f"""\
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
    return used"""
    give = """\
    place = pool[0] + block * 8
    place[0] = pool[4 + size]
    pool[4 + size] = block + 1"""
    push = f"""\
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
    return pool[0] + (g[0] + n * {width}) * 8"""
    pop = f"""\
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
    return 0"""
    yield Function(f"take_{width}", "pool, size", [take])
    yield Function(f"give_{width}", "pool, size, block", [give])
    yield Function(f"push_{width}", "pool, g", [push])
    yield Function(f"pop_{width}", "pool, g", [pop])


POOL = (
    Function(
        "start_pool",
        "p",
        [
            "    p[0] = claim(128)",
            "    p[1] = 0",
            "    p[2] = 16",
            "    p[3] = 0",
            "    for i in range(4, 52):",
            "        p[i] = 0",
        ],
    ),
    Function(
        "clear_pool", "p", ["    if p[3] == 0:", "        release(p[0])", "    start_pool(p)"]
    ),
)


def descriptor(at: int) -> str:
    """The address of words of the state."""
    return f"s + {8 * at}"
