"""Payloads and the relations that hold them.

`ring` says what a payload can do; one file per family of rings; `relation` is the finite map
from tuples to payloads that everything else is built on; `lifting` turns data values into
payloads just before a variable is summed away.
"""

from viewkeep.rings.boolean import BOOLEAN, Booleans
from viewkeep.rings.decimals import DECIMALS, Decimals
from viewkeep.rings.extrema import MAX, MIN, Extremum, Maximum, Minimum
from viewkeep.rings.factorized import FACTORIZED, Factorization, FactorizedRing
from viewkeep.rings.index import Index, Row
from viewkeep.rings.integers import INTEGERS, Integers
from viewkeep.rings.lifting import (
    Lift,
    Lifts,
    function_lift,
    one_lift,
    product_lift,
    value_lift,
)
from viewkeep.rings.matrix import MatrixRing, Moments
from viewkeep.rings.multiset import MULTISETS, Multiset, Multisets, OrderedMultiset
from viewkeep.rings.product import ProductRing
from viewkeep.rings.reals import REALS, Reals
from viewkeep.rings.regression import LinearModel, least_squares
from viewkeep.rings.relation import Relation
from viewkeep.rings.relational import RELATIONAL, Listing, RelationalRing
from viewkeep.rings.ring import Ring

__all__ = [
    "BOOLEAN",
    "DECIMALS",
    "FACTORIZED",
    "INTEGERS",
    "MAX",
    "MIN",
    "MULTISETS",
    "REALS",
    "RELATIONAL",
    "Booleans",
    "Decimals",
    "Extremum",
    "Factorization",
    "FactorizedRing",
    "Index",
    "Integers",
    "Lift",
    "Lifts",
    "LinearModel",
    "Listing",
    "MatrixRing",
    "Maximum",
    "Minimum",
    "Moments",
    "Multiset",
    "Multisets",
    "OrderedMultiset",
    "ProductRing",
    "Reals",
    "Relation",
    "RelationalRing",
    "Ring",
    "Row",
    "function_lift",
    "least_squares",
    "one_lift",
    "product_lift",
    "value_lift",
]
