"""Where rows at the same places differ, column by column.

Equality is that of `changes.values.same`: NULL and NaN equal themselves, and 0.0 equals -0.0.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.changes.values import same
from viewkeep.tables.arrow_rows import column_values

Mask = npt.NDArray[np.bool_]


def differing_rows(old: pa.Table, new: pa.Table, names: Iterable[str]) -> Mask:
    """Whether the rows at each place differ in one of these columns.

    >>> old = pa.table({"a": [1, None, 3], "b": [float("nan"), 1.0, 2.0]})
    >>> new = pa.table({"a": [1, None, 3], "b": [float("nan"), None, -2.0]})
    >>> differing_rows(old, new, ["a", "b"]).tolist()
    [False, True, True]
    """
    mask = np.zeros(old.num_rows, np.bool_)
    for name in names:
        mask |= differing_values(old[name], new[name])
    return mask


def differing_values(old: pa.ChunkedArray, new: pa.ChunkedArray) -> Mask:
    """Whether the values at each place differ."""
    if pa.types.is_nested(old.type):
        if old.equals(new):
            return np.zeros(len(old), np.bool_)
        pairs = zip(column_values(old), column_values(new), strict=True)
        return np.fromiter((not same(*pair) for pair in pairs), np.bool_, len(old))
    different = pc.not_equal(old, new)
    if pa.types.is_floating(old.type):
        different = pc.and_(different, pc.invert(pc.and_(pc.is_nan(old), pc.is_nan(new))))
    if old.null_count or new.null_count:
        different = pc.coalesce(different, pc.xor(pc.is_null(old), pc.is_null(new)))
    mask: Mask = different.to_numpy()
    return mask
