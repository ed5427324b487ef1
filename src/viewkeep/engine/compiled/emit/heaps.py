"""The text of heaps: lists of an index whose first entry is the smallest value, or the largest.

No entry comes before its parent in the order: that of place i is at (i - 1) / WAYS. A new entry
rises past larger parents; the last one fills the gap of an entry that leaves, and rises or sinks.
Either takes O(log n) moves, few on average, and every row that moves learns its new position.

An order is compared by ranks: integers of which the smallest belongs to the first value, and the
largest to null.
"""

from collections.abc import Iterator

from viewkeep.engine.compiled.formats import NULL
from viewkeep.engine.compiled.function import Function

WAYS_BITS = 3
WAYS = 1 << WAYS_BITS
"""Children of an entry: they lie side by side, in one or two lines of the processor's cache."""

_NULL_LAST = [f"    if k == {NULL}:", "        return k"]
_FLOAT_RANK = ["    if k < 0:", "        k = k ^ 9223372036854775807"]
_RANKS = {
    "min_i": ["    return k"],
    "max_i": [*_NULL_LAST, "    return 0 - k"],
    "min_f": [*_FLOAT_RANK, "    return k"],
    "max_f": [*_NULL_LAST, *_FLOAT_RANK, "    return -1 - k"],
}
"""Floats are coded as their bits: of negative ones, all but the sign is turned round."""


def rank_text(order: str) -> Function:
    """The rank of a code."""
    return Function(f"rank_{order}", "k", _RANKS[order], inline=True)


def rise_lines(order: str, find: str, place: int) -> Iterator[str]:
    """Lines that move the gap `here` of the list at `base` up until `value` may stand in it.

    `find` looks up the row of the code `other`, whose word `place` tells its position.
    """
    yield f"rank = rank_{order}(value)"
    yield "while here > 0:"
    yield f"    above = (here - 1) >> {WAYS_BITS}"
    yield "    other = base[above]"
    yield f"    if rank_{order}(other) <= rank:"
    yield "        break"
    yield from (f"    {line}" for line in _move_lines(find, place))
    yield "    here = above"


def sink_lines(order: str, find: str, place: int) -> Iterator[str]:
    """Lines that move the gap down, in a list of n entries."""
    yield f"below = (here << {WAYS_BITS}) + 1"
    yield "while below < n:"
    yield "    first = below"
    yield "    other = base[below]"
    yield f"    least = rank_{order}(other)"
    yield f"    end = below + {WAYS}"
    yield "    if end > n:"
    yield "        end = n"
    yield "    below = below + 1"
    yield "    while below < end:"
    yield f"        next_rank = rank_{order}(base[below])"
    yield "        if next_rank < least:"
    yield "            least = next_rank"
    yield "            first = below"
    yield "        below = below + 1"
    yield "    if least >= rank:"
    yield "        break"
    yield "    other = base[first]"
    yield from (f"    {line}" for line in _move_lines(find, place))
    yield "    here = first"
    yield f"    below = (here << {WAYS_BITS}) + 1"


def _move_lines(find: str, place: int) -> Iterator[str]:
    yield "base[here] = other"
    yield f"mover = {find}"
    yield f"mover[{place}] = here"
