"""The survey's examples and figures (recent_increments_in_ivm), with what it prints."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench import corners
from bench._adaptive import CASES as ADAPTIVE
from bench._adaptive import HIERARCHICAL
from bench._cases import CASES, CHAIN, MOVIES, PATH, RETAILER, Case
from bench._covariance import Model, model_costs
from bench._paper_lecture import reduction_claims, sizes_note, triangle_claims
from bench._paper_page import Claim, Section, Show, counted, exact_claim, graded_claim, table
from bench.adaptive import Line, measure_adaptive
from bench.bounds import MARGIN, Measurement, measure
from bench.corners import CORNERS, Cost, Shop
from viewkeep.analysis import Analysis, analyze
from viewkeep.query.notation.parse import parse

TITLE = "The survey: Recent Increments in Incremental View Maintenance (2024)"
TEXT = (
    "`recent_increments_in_ivm`. Examples are exact; constant times are exponents of N fitted to "
    "step counts ([how](bounds.md)). Its figure 4 was measured on the Retailer data, which is not "
    "public: the same query runs here over made-up rows, and steps are compared, which do not "
    "depend on the machine."
)

# --- classes of the examples --------------------------------------------------------------------

Property = Callable[[Analysis], object]


def _constant(found: Analysis) -> bool:
    return found.bounds.constant


def _hierarchical(found: Analysis) -> bool:
    return bool(found.hierarchical)


def _q_hierarchical(found: Analysis) -> bool:
    return bool(found.q_hierarchical)


def _tractable(found: Analysis) -> bool:
    return bool(found.tractable_access_pattern)


def _preprocessing(found: Analysis) -> str:
    return str(found.bounds.preprocessing)


@dataclass(frozen=True)
class Example:
    """A query of the survey, a property of it, and what is printed."""

    place: str
    query: str
    title: str
    read: Property
    printed: object
    known: dict[str, Any]

    def claim(self) -> Claim:
        """The property as it is found."""
        given = "".join(
            f"; {name.replace('_', ' ')}: {_listed(v)}" for name, v in self.known.items()
        )
        found = self.read(analyze(self.query, **self.known))
        return exact_claim(self.place, f"{self.title}: `{self.query}`{given}", self.printed, found)


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "yes"


BOUNDED_PATH, STAR = "Q() = R(x) * S(x, y) * T(y)", "Q(y, x, z) = R(y, x) * S(y, z)"
STATIC_ONE = "Q(a, b, c) = R(a, d) * S(a, b) * T(b, c)"
STATIC_TWO = "Q(a, c, d) = R(a, d) * S(a, b) * T(b, c) * U(d)"
CHAIN_FDS = {"fds": ("x -> y", "y -> z")}
MOVIE_KEYS = {"foreign_keys": ("MovieCompanies.m -> Title.m", "MovieCompanies.c -> CompanyName.c")}

EXAMPLES = (
    Example("example 4.3", BOUNDED_PATH, "hierarchical", _hierarchical, False, {}),
    Example("example 4.3", HIERARCHICAL, "hierarchical", _hierarchical, True, {}),
    Example("example 4.3", HIERARCHICAL, "q-hierarchical", _q_hierarchical, False, {}),
    Example("example 4.4", STAR, "q-hierarchical", _q_hierarchical, True, {}),
    Example("example 4.5", PATH, "q-hierarchical", _q_hierarchical, False, {}),
    Example(
        "example 4.6",
        "Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)",
        "tractable",
        _tractable,
        True,
        {},
    ),
    Example(
        "example 4.6",
        "Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)",
        "tractable",
        _tractable,
        False,
        {},
    ),
    Example("example 4.6", "Q(a | b) = S(a, b) * T(b)", "tractable", _tractable, True, {}),
    Example("example 4.10", RETAILER, "hierarchical", _hierarchical, False, {}),
    Example("example 4.10", RETAILER, "constant", _constant, True, {"fds": ("zip -> locn",)}),
    Example("example 4.12", CHAIN, "constant", _constant, False, {}),
    Example("example 4.12", CHAIN, "constant", _constant, True, CHAIN_FDS),
    Example("example 4.13", MOVIES, "constant", _constant, True, MOVIE_KEYS),
    Example("example 4.14", STATIC_ONE, "constant", _constant, False, {}),
    Example("example 4.14", STATIC_ONE, "constant", _constant, True, {"static": ("T",)}),
    Example(
        "example 4.14",
        STATIC_TWO,
        "exponent of preprocessing",
        _preprocessing,
        "2",
        {"static": ("S", "T")},
    ),
    Example("section 4.6", PATH, "constant", _constant, True, {"insert_only": True}),
    Example("section 4.6", PATH, "constant", _constant, False, {}),
)


def cascade_claim() -> Claim:
    """Example 4.5: Q1 rides on Q2."""
    rider = parse("Q1(A, B, C, D) = R(A, B) * S(B, C) * T(C, D)")
    both = analyze([rider, parse("Q2(A, B, C) = R(A, B) * S(B, C)")])
    [cascade] = both.cascades
    printed = "Q1(A, B, C, D) = Q2(A, B, C) * T(C, D)"
    return exact_claim("example 4.5", "Q1 over Q2", printed, str(cascade.rewriting))


# --- measured exponents -------------------------------------------------------------------------

MEASURED = {
    "theorem 4.1, figure 3": "q-hierarchical",
    "theorem 4.8, example 4.6": "access pattern",
    "theorem 4.11, example 4.12": "dependencies, example 4.12",
    "theorem 4.11, example 4.10": "dependencies, retailer",
    "section 4.4, degrees": "bounded degrees",
    "example 4.13": "foreign keys, out of order",
    "example 4.14": "static, linear",
    "section 4.6": "inserts only, path of 3",
    "section 4.1, as a list": "q-hierarchical, as a list",
}
"""Where the survey claims it, and the case of `make bounds` that shows it."""


def bound_case(title: str) -> Case:
    """The first case of this title."""
    return next(case for case in CASES if case.title == title)


def bound_claim(place: str, case: Case, lines: Sequence[Measurement]) -> Claim:
    """Update and delay of the worst relation."""
    worst = max(lines, key=lambda line: line.update - line.predicted_update)
    printed = f"update {worst.predicted_update:g}, delay {worst.predicted_delay:g}"
    measured = f"update {worst.update:.2f}, delay {worst.delay:.2f}"
    statement = f"exponents, {case.title}: `{case.query}`"
    holds = [
        abs(worst.update - worst.predicted_update) <= MARGIN,
        abs(worst.delay - worst.predicted_delay) <= MARGIN,
    ]
    return graded_claim(place, statement, printed, measured, holds=holds)


def trade_off_claims(sizes: tuple[int, ...] | None, show: Show) -> Iterator[Claim]:
    """Figure 7: update N^eps and delay N^(1 - eps) of the simplest hierarchical query."""
    for case in ADAPTIVE:
        if case.query != HIERARCHICAL or case.quantity == "average update":
            continue
        show(f"survey: figure 7, {case.title}, {case.quantity}")
        line = Line(case, measure_adaptive(case, sizes))
        measured = f"{line.measured:.2f}"
        yield graded_claim(
            "example 5.1, figure 7",
            f"exponent of the {case.quantity.replace('worst ', '')}, eps {case.epsilon:g}",
            f"{case.promised:g}",
            measured,
            holds=[line.verdict == "holds"],
            why="" if line.verdict == "holds" else "few heavy values fit in at these sizes",
        )


# --- figure 4: the Retailer query ---------------------------------------------------------------


def corner_claims(found: dict[str, dict[str, Cost]]) -> Iterator[Claim]:
    """What the survey reads from its figure, by steps."""
    place, steps = "figure 4", {c: {n: r.steps for n, r in row.items()} for c, row in found.items()}
    read = [name for name in steps["eager-fact"] if name != "none"]
    for kind in ("eager", "lazy"):
        ratios = [steps[f"{kind}-list"][name] / steps[f"{kind}-fact"][name] for name in read]
        yield graded_claim(
            place,
            f"factorized beats list wherever the output is read, {kind}",
            "faster",
            f"{min(ratios):.1f} to {max(ratios):.1f} times fewer steps",
            holds=[ratio > 1 for ratio in ratios],
        )
    lazy = [steps["lazy-list"]["none"], steps["lazy-fact"]["none"]]
    yield graded_claim(
        place,
        "without requests the form of the output plays no role (lazy)",
        "equal",
        "equal" if lazy[0] == lazy[1] else f"{lazy[0]:,} and {lazy[1]:,} steps",
        holds=[lazy[0] == lazy[1]],
    )
    most = max(steps, key=lambda name: steps[name]["many"])
    least = min(steps, key=lambda name: steps[name]["many"])
    ratio = steps[most]["many"] / steps[least]["many"]
    yield graded_claim(
        place,
        "lazy-list falls far behind where the output is read most often",
        "not done in 50 hours",
        f"slowest: {most}, {ratio:.1f} times the steps of {least}",
        holds=[most == "lazy-list", ratio > 10],
        why="the data is small: reading the output, which all have to do, is most of the work",
    )


def corner_table(found: dict[str, dict[str, Cost]], shop: Shop) -> str:
    """Million steps and seconds by how often the output is read."""
    batches = len(shop.batches())
    often = {name: batches // each if each else 0 for name, each in corners.intervals(shop).items()}
    rows = (
        [name, *(f"{cost.steps / 1e6:.3f} ({cost.seconds:.1f} s)" for cost in row.values())]
        for name, row in found.items()
    )
    header = ["corner", *(f"read {counted(count, 'time')}" for count in often.values())]
    note = (
        f"Figure 4: million steps (and seconds) for {batches} batches of {shop.batch} inserts; "
        f"`{corners.QUERY}` under `{corners.DEPENDENCY}`."
    )
    return f"{note}\n\n{table(header, rows, len(often))}"


# --- covariance over joins ----------------------------------------------------------------------


def covariance_claims(found: Sequence[Model]) -> Iterator[Claim]:
    """The covariance matrix over a join: exact, and in constant time per update."""
    place = "section 6, in-database learning"
    worst = max(model.error for model in found)
    yield graded_claim(
        place,
        "the matrix of sums and sums of products over the join is that of the rows",
        "equal",
        "equal" if worst < 1e-9 else f"differs by {worst:.1e}",
        holds=[worst < 1e-9],
    )
    steps = [model.steps for model in found]
    yield graded_claim(
        place,
        "an update of the fact table takes constant time, whatever has been loaded",
        "constant",
        ", ".join(f"{model.sales:,} sales: {model.steps:.1f} steps" for model in found),
        holds=[max(steps) <= 1.01 * min(steps)],
    )


def covariance_table(found: Sequence[Model]) -> str:
    """Updates per second and recomputation by size."""
    rows = (
        [
            f"{model.sales:,}",
            f"{model.steps:.1f}",
            f"{1e6 * model.update_seconds:,.0f}",
            f"{1e6 * model.recompute_seconds:,.0f}",
        ]
        for model in found
    )
    header = ["sales", "steps of an update", "its microseconds", "microseconds of recomputation"]
    note = (
        "Covariance of three columns over a join of three tables (`examples/regression.py`); "
        "recomputation goes through the joined rows with numpy."
    )
    return f"{note}\n\n{table(header, rows, 3)}"


# --- all of it ----------------------------------------------------------------------------------

NOT_PUBLIC = Claim(
    "section 4.4",
    "76 % of about 6,000 queries of one project become q-hierarchical under their dependencies",
    "76 %",
    "-",
    "not",
    "the queries are not public",
)


@dataclass(frozen=True)
class SurveySizes:
    """How much is measured."""

    bounds: tuple[int, ...]
    trade_off: tuple[int, ...] | None
    shop: Shop
    sales: tuple[int, ...]


def section(sizes: SurveySizes, show: Show) -> Section:
    """The examples, and the figures."""
    show("survey: examples")
    claims = [*triangle_claims("example 3.1, figure 2")]
    claims += reduction_claims("section 3.4", [(2, 1), (1, 2), (3, 3)])
    claims += [*(example.claim() for example in EXAMPLES), cascade_claim(), NOT_PUBLIC]
    for place, title in MEASURED.items():
        show(f"survey: exponents, {title}")
        case = bound_case(title)
        claims.append(bound_claim(place, case, measure(case, sizes.bounds)))
    claims += trade_off_claims(sizes.trade_off, show)
    show("survey: figure 4, the Retailer query")
    found = corners.costs(CORNERS, sizes.shop)
    show("survey: covariance over a join")
    models = model_costs(sizes.sales)
    claims += [*corner_claims(found), *covariance_claims(models)]
    details = [sizes_note(sizes.bounds), corner_table(found, sizes.shop), covariance_table(models)]
    return Section(TITLE, TEXT, claims, details)
