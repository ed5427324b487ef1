"""Aggregates in Python, as plainly as they can be written."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import localcontext
from functools import reduce
from operator import or_, xor
from typing import Any

from viewkeep.query.algebra import AggregateColumn


def of_values(function: str, values: Sequence[Any], typed: Callable[[Any], Any]) -> Any:
    """An aggregate of at least one value, of which none is NULL."""
    match function:
        case "sum":
            return typed(_sum(values))
        case "avg":
            return typed(_mean(values))
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "median":
            return float(statistics.median(values))
        case "stddev_samp":
            return statistics.stdev(values) if len(values) > 1 else None
        case "var_pop":
            return float(statistics.pvariance(values))
        case "bit_xor":
            return reduce(xor, values)
        case "bit_or":
            return reduce(or_, values)
        case "mode":
            counts = Counter(values)
            return min(value for value in counts if counts[value] == max(counts.values()))
    raise AssertionError(f"{function} is not among the aggregates of tests")


def of_several(aggregate: AggregateColumn, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """An aggregate of two arguments."""
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    values = [a for a, _ in pairs if a is not None]
    match aggregate.function:
        case "max_by":
            found = [(b, a is not None, a) for a, b in pairs if b is not None]
            return max(found, key=_nulls_first)[2] if found else None
        case "min_by":
            found = [(b, a is not None, a) for a, b in pairs if b is not None]
            return min(found, key=_nulls_first)[2] if found else None
        case "percentile_cont":
            return _percentile(sorted(values), float(pairs[0][1])) if values else None
        case "listagg":
            return pairs[0][1].join(sorted(values)) if values else None
        case "covar_pop":
            return _covariance(both) if both else None
        case "corr":
            return _correlation(both)
    raise AssertionError(f"{aggregate.function} is not among the aggregates of tests")


def _nulls_first(found: tuple[Any, bool, Any]) -> tuple[Any, ...]:
    return found[:2] if found[2] is None else found


def _percentile(values: Sequence[Any], share: float) -> float:
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return float(values[low] + (place - low) * (values[high] - values[low]))


def _covariance(pairs: Sequence[tuple[Any, Any]]) -> float:
    first, second = (statistics.fmean(side) for side in zip(*pairs, strict=True))
    return sum((a - first) * (b - second) for a, b in pairs) / len(pairs)


def _correlation(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    spreads = [statistics.pstdev(side) for side in zip(*pairs, strict=True)]
    if not pairs or 0 in spreads:
        return None
    return _covariance(pairs) / (spreads[0] * spreads[1])


def _sum(values: Sequence[Any]) -> Any:
    """With all digits of decimals."""
    with localcontext(prec=200):
        return sum(values)


def _mean(values: Sequence[Any]) -> Any:
    with localcontext(prec=200):
        return sum(values) / len(values)
