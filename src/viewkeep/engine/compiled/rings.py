"""Rings whose elements are a fixed number of 64-bit words, and the text of their operations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from viewkeep.rings import MatrixRing, Moments, ProductRing, Ring
from viewkeep.rings.integers import Integers
from viewkeep.rings.numbers import Numbers
from viewkeep.rings.reals import Reals

if TYPE_CHECKING:
    from viewkeep.engine.compiled.values import Coder

WORDS_AT_MOST = 100
"""Operations are written out word by word; beyond this they would be very long."""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Unfit(Exception):  # noqa: N818 - no error: another engine takes over
    """A value that the compiled engine cannot hold: the reference engine must take over."""


class Overflow(Unfit):
    """A sum or a product that left 64 bits; everything is as it was before."""


def kind_words(kind: str) -> int:
    """How many words a number takes: i and f one, 2, 3, ... so many."""
    return int(kind) if kind.isdigit() else 1


class Retype(Unfit):
    """Values of another type than the engine was made for: one with this coder takes over."""

    def __init__(self, coder: "Coder", reason: str = "values of several types") -> None:
        super().__init__(reason)
        self.coder = coder


@dataclass(frozen=True)
class RingShape:
    """The numbers of an element: i for integers, f for floats, 2, 3, ... for integers of so many
    words; and how elements become numbers."""

    kinds: str
    multiply: Callable[[Sequence[str], Sequence[str]], list[str]]
    encode: Callable[[Any], list[int | float]]
    decode: Callable[[Sequence[Any]], Any]
    one: tuple[int | float, ...]

    @property
    def size(self) -> int:
        """How many words an element takes."""
        return sum(map(kind_words, self.kinds))

    @property
    def places(self) -> list[tuple[int, str]]:
        """At which word each number starts, and its kind."""
        starts = accumulate(map(kind_words, self.kinds), initial=0)
        return [(start, kind) for start, kind in zip(starts, self.kinds, strict=False)]

    def names(self, stem: str) -> list[str]:
        """A variable for each number; names tell what it is."""
        return [f"{_name_mark(kind)}{stem}{i}" for i, kind in enumerate(self.kinds)]

    def add(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """left + right, word by word."""
        return [_sum_text(*each) for each in zip(self.kinds, left, right, strict=True)]

    def negate(self, element: Sequence[str]) -> list[str]:
        """Minus the element."""
        return [
            f"0.0 - {word}" if kind == "f" else f"subtract({zero_text(kind)}, {word})"
            for kind, word in zip(self.kinds, element, strict=True)
        ]

    def ones(self) -> list[str]:
        """The words of one."""
        return [number_text(k, word) for k, word in zip(self.kinds, self.one, strict=True)]

    def zeros(self) -> list[str]:
        """The words of zero."""
        return [zero_text(kind) for kind in self.kinds]

    def zero_test(self, element: Sequence[str]) -> str:
        """The text that tells whether an element is zero."""
        zeros = ["0.0" if kind == "f" else "0" for kind in self.kinds]
        return " and ".join(f"{word} == {zero}" for word, zero in zip(element, zeros))  # noqa: B905


def _name_mark(kind: str) -> str:
    return f"w{kind}_" if kind.isdigit() else "f_" if kind == "f" else ""


def number_text(kind: str, number: float) -> str:
    """A constant of a kind."""
    return f"wide{kind}({number})" if kind.isdigit() else repr(number)


def zero_text(kind: str) -> str:
    """Zero, of a kind."""
    return number_text(kind, 0.0 if kind == "f" else 0)


def shape_of(ring: Ring[Any]) -> RingShape | str:
    """The words of a ring's elements, or why there are none."""
    if type(ring) not in (Integers, Numbers, Reals, ProductRing, MatrixRing):
        # A class that is derived from one of these may add and multiply in its own way.
        return f"the {ring.name} are not numbers of 64 bits"
    match ring:
        case Integers():
            return _INTEGER
        case Numbers():
            return _NUMBER
        case Reals():
            return _FLOAT
        case ProductRing(rings=rings):
            return _product_shape(rings)
        case MatrixRing():
            return _matrix_shape(ring)
    raise AssertionError(ring)  # all are named above


COUNT: RingShape
"""The shape of counts: one integer."""


def _sum_text(kind: str, left: str, right: str) -> str:
    return f"{left} + {right}" if kind == "f" else f"add({left}, {right})"


def _product_text(kind: str, left: str, right: str) -> str:
    return f"({left}) * ({right})" if kind == "f" else f"multiply({left}, {right})"


def _scalar_shape(kind: str, encode: Callable[[Any], int | float]) -> RingShape:
    return RingShape(
        kind,
        lambda left, right: [_product_text(kind, left[0], right[0])],
        lambda element: [encode(element)],
        lambda words: words[0],
        (1.0 if kind == "f" else 1,),
    )


def encode_integer(element: Any) -> int:
    """An integer of 64 bits."""
    if not isinstance(element, int):
        raise Unfit(f"{element!r} is not a whole number")
    if not _SMALLEST <= element <= _LARGEST:
        raise Unfit(f"{element} needs more than 64 bits")
    return int(element)


def _encode_number(element: Any) -> int:
    """Sums are exact: of integers in 64 bits; floats and decimals need the reference engine."""
    if not isinstance(element, int):
        raise Unfit(f"exact sums of {type(element).__name__} values do not fit 64 bits")
    return encode_integer(element)


_INTEGER = COUNT = _scalar_shape("i", encode_integer)
_NUMBER = _scalar_shape("i", _encode_number)
_FLOAT = _scalar_shape("f", float)


def _product_shape(rings: tuple[Ring[Any], ...]) -> RingShape | str:
    shapes = [shape_of(ring) for ring in rings]
    for shape in shapes:
        if isinstance(shape, str):
            return shape
    parts = [shape for shape in shapes if isinstance(shape, RingShape)]
    kinds = "".join(part.kinds for part in parts)
    if len(kinds) > WORDS_AT_MOST:
        return f"elements of {len(kinds)} words are too long"
    places = list(_word_places(parts))

    def multiply(left: Sequence[str], right: Sequence[str]) -> list[str]:
        return [w for part, cut in places for w in part.multiply(left[cut], right[cut])]

    return RingShape(
        kinds,
        multiply,
        lambda element: [w for p, e in zip(parts, element, strict=True) for w in p.encode(e)],
        lambda words: tuple([part.decode(words[cut]) for part, cut in places]),
        tuple(word for part in parts for word in part.one),
    )


def _word_places(parts: list[RingShape]) -> Iterator[tuple[RingShape, slice]]:
    start = 0
    for part in parts:
        yield part, slice(start, start + len(part.kinds))
        start += len(part.kinds)


def _matrix_shape(ring: MatrixRing) -> RingShape | str:
    """Moments as vectors: the count, the sums, then the products on and above the diagonal."""
    scalar = shape_of(ring.scalars)
    if isinstance(scalar, str) or len(scalar.kinds) > 1:
        return scalar if isinstance(scalar, str) else "its scalars are no single numbers"
    size = len(ring.variables)
    cells = [(i, j) for i in range(size) for j in range(i, size)]
    width = 1 + size + len(cells)
    if width > WORDS_AT_MOST:
        return f"elements of {width} words are too long"
    kind, (one,) = scalar.kinds, scalar.one
    zero = one - one

    def encode(element: Moments) -> list[int | float]:
        sums, products = element.sums, element.products
        numbers = [element.count, *(sums.get(i, zero) for i in range(size))]
        numbers += [products.get(cell, zero) for cell in cells]
        return [scalar.encode(number)[0] for number in numbers]

    def decode(words: Sequence[Any]) -> Moments:
        sums = {i: words[1 + i] for i in range(size) if words[1 + i]}
        rest = zip(cells, words[1 + size :], strict=True)
        return Moments(words[0], sums, {cell: word for cell, word in rest if word})

    def multiply(left: Sequence[str], right: Sequence[str]) -> list[str]:
        return _matrix_product_text(kind, size, cells, left, right)

    return RingShape(kind * width, multiply, encode, decode, (one, *[zero] * (width - 1)))


def _matrix_product_text(
    kind: str, size: int, cells: list[tuple[int, int]], left: Sequence[str], right: Sequence[str]
) -> list[str]:
    """(c1 c2, c2 s1 + c1 s2, c2 Q1 + c1 Q2 + s1 s2^T + s2 s1^T)."""

    def crossed(place: int) -> str:
        return _sum_text(
            kind,
            _product_text(kind, left[place], right[0]),
            _product_text(kind, right[place], left[0]),
        )

    words = [_product_text(kind, left[0], right[0]), *(crossed(1 + i) for i in range(size))]
    for place, (i, j) in enumerate(cells, start=1 + size):
        outer = _sum_text(
            kind,
            _product_text(kind, left[1 + i], right[1 + j]),
            _product_text(kind, left[1 + j], right[1 + i]),
        )
        words.append(
            _sum_text(kind, f"({crossed(place)})" if kind == "f" else crossed(place), outer)
        )
    return words
