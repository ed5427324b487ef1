"""Lifting functions g_X : Dom(X) -> D, applied to a variable just before it is summed away.

Marginalisation takes a mapping from variables to lifts; a variable without one lifts to the
ring's one. COUNT lifts nothing; SUM(C * D) lifts C and D to their values (ivm_lecture part 1,
"Factor Payloads Enable Different Aggregates").
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from viewkeep.rings.ring import Ring

D = TypeVar("D")

Lift: TypeAlias = Callable[[Any], D]
Lifts: TypeAlias = Mapping[str, Lift[D]]


def one_lift(ring: Ring[D]) -> Lift[D]:
    """g(x) = 1: the variable only counts. The same as giving no lift."""
    return lambda _: ring.one


def value_lift(ring: Ring[D]) -> Lift[D]:
    """g(x) = x, for rings whose elements are data values.

    >>> from viewkeep.rings.reals import REALS
    >>> value_lift(REALS)(3)
    3.0
    """
    return ring.from_value


def function_lift(ring: Ring[D], function: Callable[[Any], Any]) -> Lift[D]:
    """g(x) = function(x), as an element of the ring.

    >>> from viewkeep.rings.integers import INTEGERS
    >>> function_lift(INTEGERS, len)("four")
    4
    """
    return lambda value: ring.from_value(function(value))


def product_lift(*lifts: Lift[Any]) -> Lift[tuple[Any, ...]]:
    """g(x) = (g1(x), ..., gk(x)), into a product of rings.

    >>> from viewkeep.rings.integers import INTEGERS
    >>> product_lift(one_lift(INTEGERS), value_lift(INTEGERS))(7)
    (1, 7)
    """
    return lambda value: tuple([lift(value) for lift in lifts])
