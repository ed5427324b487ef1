"""The text of heaps: lists of an index whose first entry is the smallest value, or the largest.

No entry comes before its parent in the order: that of place i is at (i - 1) / WAYS. A new entry
rises past larger parents; the last one fills the gap of an entry that leaves, and rises or sinks.
Either takes O(log n) moves, few on average, and every row that moves learns its new position.

An order is a function that tells whether one code comes before another; null comes last. Texts are
compared byte by byte in their dictionary, whose address `t` stands in the state: UTF-8 has the
order of code points.
"""

from collections.abc import Iterator

from viewkeep.engine.compiled.formats import NULL, PLAIN
from viewkeep.engine.compiled.function import Function

WAYS_BITS = 3
WAYS = 1 << WAYS_BITS
"""Children of an entry: they lie side by side, in one or two lines of the processor's cache."""

PLACES, BYTES = 3, 6
"""Words of a dictionary of texts (`texts.py`): its places, and the bytes of all texts."""

_FLOAT_BITS = """\
    if a < 0:
        a = a ^ 9223372036854775807
    if b < 0:
        b = b ^ 9223372036854775807"""
"""Of the bits of a negative float, all but the sign are turned round."""

_TEXT = f"""\
    first = t[{PLACES}] + (a - {PLAIN}) * 16
    second = t[{PLACES}] + (b - {PLAIN}) * 16
    n = first[1]
    if second[1] < n:
        n = second[1]
    difference = compare(t[{BYTES}] + first[0], t[{BYTES}] + second[0], n)
    if difference == 0:
        difference = first[1] - second[1]
    if difference < 0:
        return 1
    return 0"""


def order_text(order: str) -> Iterator[Function]:
    """Whether the code a comes before b: `min_i`, `max_f`, `min_t`, ..."""
    function, kind = order.split("_")
    if function == "any":
        yield Function(f"before_{order}", "t, a, b", ["    return 0"], inline=True)
        return
    lines = [f"    if a == b or a == {NULL}:", "        return 0"]
    lines += [f"    if b == {NULL}:", "        return 1"]
    first, second = ("a", "b") if function == "min" else ("b", "a")
    if kind == "t":
        yield Function(f"text_{order}", "t, a, b", [_TEXT])
        lines += [f"    return text_{order}(t, {first}, {second})"]
    else:
        lines += [_FLOAT_BITS] if kind == "f" else []
        lines += [f"    if {first} < {second}:", "        return 1", "    return 0"]
    yield Function(f"before_{order}", "t, a, b", lines, inline=True)


def rise_lines(order: str, find: str, place: int) -> Iterator[str]:
    """Lines that move the gap `here` of the list at `base` up until `value` may stand in it.

    `find` looks up the row of the code `other`, whose word `place` tells its position.
    """
    yield "while here > 0:"
    yield f"    above = (here - 1) >> {WAYS_BITS}"
    yield "    other = base[above]"
    yield f"    if before_{order}(t, value, other) == 0:"
    yield "        break"
    yield from (f"    {line}" for line in _move_lines(find, place))
    yield "    here = above"


def sink_lines(order: str, find: str, place: int) -> Iterator[str]:
    """Lines that move the gap down, in a list of n entries."""
    yield f"below = (here << {WAYS_BITS}) + 1"
    yield "while below < n:"
    yield "    first = below"
    yield "    other = base[below]"
    yield f"    end = below + {WAYS}"
    yield "    if end > n:"
    yield "        end = n"
    yield "    below = below + 1"
    yield "    while below < end:"
    yield f"        if before_{order}(t, base[below], other) != 0:"
    yield "            other = base[below]"
    yield "            first = below"
    yield "        below = below + 1"
    yield f"    if before_{order}(t, other, value) == 0:"
    yield "        break"
    yield from (f"    {line}" for line in _move_lines(find, place))
    yield "    here = first"
    yield f"    below = (here << {WAYS_BITS}) + 1"


def _move_lines(find: str, place: int) -> Iterator[str]:
    yield "base[here] = other"
    yield f"mover = {find}"
    yield f"mover[{place}] = here"
