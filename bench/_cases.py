"""What is measured: queries, how they are maintained, and the exponents that theory promises."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench._families import Limit


@dataclass(frozen=True)
class Case:
    """A query with the predicted exponent of an update, per relation, and of the delay.

    Amortized cases are averages over whole streams from an empty database, and back unless
    inserts only are allowed. Where views may become quadratic, sizes grow more slowly.
    """

    title: str
    query: str
    updates: Mapping[str, float]
    delay: float = 0
    strategy: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    amortized: bool = False
    quadratic: bool = False

    def sized(self, size: int) -> int:
        """The degree of the heavy value that makes about so many entries of views."""
        if self.quadratic:
            return 4 * math.isqrt(size)
        # Streams are replayed in several orders, so shorter ones have to do.
        return size // 4 if self.amortized else size


TRIANGLE = "Q() = R(a, b) * S(b, c) * T(c, a)"
PATH = "Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)"
CHAIN = "Q(z, y, x, w) = R(x, w) * S(x, y) * T(y, z)"
MOVIES = "Q(m, t, c, n) = Title(m, t) * MovieCompanies(m, c) * CompanyName(c, n)"
RETAILER = (
    "Q(locn, dateid, ksn, zip) = Inventory(locn, dateid, ksn) * Weather(locn, dateid) * "
    "Location(locn, zip) * Census(zip)"
)


def constant(*relations: str) -> dict[str, float]:
    """Constant update time for all of these."""
    return dict.fromkeys(relations, 0)


CASES = (
    Case("q-hierarchical", "Q(y, x, z) = R(y, x) * S(y, z)", constant("R", "S")),
    Case("q-hierarchical", "Q(a) = R(a, b) * S(a, c) * T(a)", constant("R", "S", "T")),
    Case("q-hierarchical, sums", "Q(a; sum(b * c)) = R(a, b) * S(a, c)", constant("R", "S")),
    Case("q-hierarchical, product", "Q(a, c) = R(a, b) * S(c)", constant("R", "S")),
    Case(
        "q-hierarchical, lecture",
        "Q(a, b, c) = R(a, b, d) * S(a, b) * T(a, c, e) * U(a, c, f)",
        constant("R", "S", "T", "U"),
    ),
    Case(
        "dependencies, example 4.12",
        CHAIN,
        constant("R", "S", "T"),
        options={"fds": ("x -> y", "y -> z")},
        limits=(Limit("S", (0,)), Limit("T", (0,))),
    ),
    Case(
        "dependencies, retailer",
        RETAILER,
        constant("Location", "Census", "Weather", "Inventory"),
        options={"fds": ("zip -> locn",)},
        limits=(Limit("Location", (1,)),),
    ),
    Case(
        "bounded degrees",
        CHAIN,
        constant("R", "S", "T"),
        options={"degrees": ("S: x -> y <= 3", "T: y -> z <= 2")},
        limits=(Limit("S", (0,), 3), Limit("T", (0,), 2)),
    ),
    Case(
        "access pattern, triangle",
        "Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)",
        constant("E"),
    ),
    Case("access pattern", "Q(a | b) = S(a, b) * T(b)", constant("S", "T")),
    Case(
        "static, linear",
        "Q(a, b, c) = R(a, d) * S(a, b) * T(b, c)",
        constant("R", "S"),
        options={"static": ("T",)},
    ),
    Case(
        "static, quadratic",
        "Q(a, c, d) = R(a, d) * S(a, b) * T(b, c) * U(d)",
        constant("R", "U"),
        options={"static": ("S", "T")},
        quadratic=True,
    ),
    Case(
        "foreign keys, out of order",
        MOVIES,
        constant("Title", "MovieCompanies", "CompanyName"),
        options={
            "foreign_keys": ("MovieCompanies.m -> Title.m", "MovieCompanies.c -> CompanyName.c")
        },
        limits=(Limit("Title", (0,)), Limit("CompanyName", (0,))),
        amortized=True,
    ),
    Case(
        "inserts only, path of 3",
        PATH,
        constant("R", "S", "T"),
        options={"insert_only": True},
        amortized=True,
    ),
    Case(
        "inserts only, path of 4",
        "Q(a, b, c, d, e) = R(a, b) * S(b, c) * T(c, d) * U(d, e)",
        constant("R", "S", "T", "U"),
        options={"insert_only": True},
        amortized=True,
    ),
    Case(
        "inserts only, star",
        "Q(a, b, c, x, y, z) = F(a, b, c) * A(a, x) * B(b, y) * C(c, z)",
        constant("F", "A", "B", "C"),
        options={"insert_only": True},
        amortized=True,
    ),
    Case("triangle", TRIANGLE, {"R": 1, "S": 1, "T": 1}, strategy="delta"),
    Case("triangle", TRIANGLE, {"R": 1, "S": 1, "T": 1}, strategy="recursive", quadratic=True),
    Case("triangle", TRIANGLE, {"R": 0, "S": 1, "T": 1}, strategy="viewtree", quadratic=True),
    Case("path of 3", PATH, {"R": 0, "S": 0, "T": 1}, strategy="viewtree"),
    Case(
        "q-hierarchical, as a list",
        "Q(y, x, z) = R(y, x) * S(y, z)",
        {"R": 1, "S": 1},
        strategy="viewtree",
        options={"output": "list"},
        quadratic=True,
    ),
)
