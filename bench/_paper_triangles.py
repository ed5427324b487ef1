"""The papers on the triangle count (triangle_ivm_epsilon), with what they print."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import viewkeep as vk
from bench._adaptive import BLOCKS, TRIANGLE, AdaptiveCase
from bench._adaptive import CASES as ADAPTIVE
from bench._paper_page import (
    NOT,
    PARTLY,
    REPRODUCED,
    Claim,
    Section,
    Show,
    exact_claim,
    graded_claim,
    table,
)
from bench.adaptive import measure_adaptive
from bench.bounds import MARGIN, exponent
from bench.skew import CONTENDERS, Growth, hub_growth
from bench.tradeoff import Point, measure, space_bound, update_bound
from viewkeep.analysis import analyze

TITLE = "The triangle papers: Counting Triangles under Updates (2018, 2019)"
TEXT = (
    "`triangle_ivm_epsilon`. Exponents of N are fitted to steps per update and to entries of all "
    "maps, on data that is as bad as can be for each epsilon ([how](bounds.md)); steps and entries "
    "do not depend on the machine. First-order is `delta`, DBToaster's views are `recursive`, "
    "factorized maintenance is `viewtree`, IVM^eps is `epsilon`."
)
NOT_TIGHT = "the bound holds; terms of lower order, or milder data, keep it below at these sizes"
ABOVE = "above the bound at these sizes, where constants count for much"


@dataclass(frozen=True)
class TriangleSizes:
    """Rows in all, for each part."""

    epsilons: tuple[float, ...]
    trade_off: tuple[int, ...]
    hubs: tuple[int, ...]
    recompute: tuple[int, ...]
    others: tuple[int, ...] | None


def bound_claim(place: str, statement: str, bound: float, found: float) -> Claim:
    """An upper bound: reproduced where it is met, partly where the data stays below it."""
    verdict = REPRODUCED if abs(found - bound) <= MARGIN else PARTLY if found < bound else NOT
    why = {PARTLY: NOT_TIGHT, NOT: ABOVE}.get(verdict, "")
    return Claim(place, statement, f"{bound:.3g}", f"{found:.2f}", verdict, why)


# --- figure 1: space and time over epsilon ------------------------------------------------------


def points(sizes: TriangleSizes, show: Show) -> Iterator[Point]:
    """Both exponents by epsilon, and with linear space at 1/2."""
    for epsilon in sizes.epsilons:
        show(f"triangles: figure 1, epsilon {epsilon:g}")
        yield measure(epsilon, "fast", sizes.trade_off)
    show("triangles: linear space")
    yield measure(0.5, "linear", sizes.trade_off)


def point_claims(found: Sequence[Point]) -> Iterator[Claim]:
    """Theorem 3, and what the lecture says of linear space."""
    for point in found:
        linear = point.space == "linear"
        place = "lecture, linear space" if linear else "figure 1, theorem 3"
        title = f"eps = {point.epsilon:g}{', linear space' if linear else ''}"
        update, space = update_bound(point.epsilon), space_bound(point.epsilon, point.space)
        yield bound_claim(place, f"{title}: exponent of an update", update, point.update)
        yield bound_claim(place, f"{title}: exponent of the space", space, point.entries)
    fast = [point for point in found if point.space == "fast"]
    best = min(fast, key=lambda point: point.update)
    yield exact_claim("corollary 5", "epsilon of the fastest updates", 0.5, best.epsilon)


# --- against other ways to maintain the count ---------------------------------------------------

PRINTED_UPDATES = {
    "delta": 1,
    "epsilon": 0.5,
    "epsilon, linear": 0.5,
    "recursive": 1,
    "viewtree": 1,
}
PLACES = {
    "delta": "section 1, classical",
    "recursive": "lecture, DBToaster",
    "viewtree": "section 1, factorized",
}


def rival_claims(found: Sequence[Growth]) -> Iterator[Claim]:
    """Exponents on graphs with hubs, and the factors between the strategies."""
    for growth in found:
        name = growth.contender.name
        place, bound = PLACES.get(name, "theorem 3, hubs"), PRINTED_UPDATES[name]
        yield bound_claim(place, f"`{name}`: exponent of the worst update", bound, growth.exponent)
    tree = next(growth for growth in found if growth.contender.name == "viewtree")
    entries = exponent(list(tree.costs), [tree.worst(size).entries for size in tree.costs])
    yield bound_claim("section 1, factorized", "`viewtree`: exponent of the space", 2, entries)
    yield _factor_claim({growth.contender.name: growth for growth in found})


def _factor_claim(found: dict[str, Growth]) -> Claim:
    shown, holds = [], []
    for name in ("delta", "viewtree"):
        size = max(found[name].costs)
        worst = found[name].worst(size).microseconds
        ratio = worst / found["epsilon"].worst(size).microseconds
        shown.append(f"{name} takes {ratio:.1f} times as long at N = {size:,}")
        holds.append(ratio > 2)
    return graded_claim(
        "short paper, section 3",
        "IVM^eps is faster than classical and factorized maintenance, in time",
        "several factors",
        ", ".join(shown),
        holds=holds,
        why="" if all(holds) else "the graphs are small, where lists are short",
    )


def rival_table(found: Sequence[Growth]) -> str:
    """Steps and microseconds of the worst kind of update, by size."""
    header = ["rows", *(growth.contender.name for growth in found)]
    rows = [[f"{size:,}", *(_cell(growth, size) for growth in found)] for size in found[0].costs]
    rows.append(["exponent", *(f"{growth.exponent:.2f}" for growth in found)])
    note = (
        "Graphs with two hubs: steps (and microseconds) of the worst kind of update. Where views "
        "would join too many pairs, nothing is measured."
    )
    return f"{note}\n\n{table(header, rows, len(found))}"


def _cell(growth: Growth, size: int) -> str:
    if size not in growth.costs:
        return "-"
    cost = growth.worst(size)
    return f"{cost.steps:,.0f} ({cost.microseconds:,.0f})"


def recompute_claim(sizes: Sequence[int]) -> Claim:
    """The count from scratch on complete bipartite blocks, which have N^1.5 triangles."""
    steps = []
    for size in sizes:
        live = vk.maintain(TRIANGLE, strategy="recompute", engine="reference")
        live.load(BLOCKS.rows(size, 0.5))
        before = live.steps
        live.update("R", (-1, -1))
        live.value()
        steps.append(live.steps - before)
    statement = "`recompute`: exponent of an update"
    return bound_claim("section 1, naive", statement, 1.5, exponent(sizes, steps))


# --- beyond -------------------------------------------------------------------------------------

OTHER_QUERIES = ("path of 3", "path of 4", "Loomis-Whitney 4", "4-cycle")


def preprocessing_claims(sizes: tuple[int, ...] | None, show: Show) -> Iterator[Claim]:
    """Loading, and inserting rows one at a time, takes N^1.5 at epsilon 1/2."""
    chosen = [
        case
        for case in ADAPTIVE
        if case.query == TRIANGLE
        and (case.title, case.quantity)
        in (("triangle, eps 0.5", "loading"), ("triangle", "inserting"))
    ]
    for case in chosen:
        show(f"triangles: {case.quantity}, {case.family.name}")
        place = "theorem 3" if case.quantity == "loading" else "section 1.2"
        statement = f"exponent of {case.quantity} N rows ({case.family.name})"
        yield bound_claim(place, statement, case.promised, measure_adaptive(case, sizes))


def other_claims(sizes: tuple[int, ...] | None, show: Show) -> Iterator[Claim]:
    """Counts over other queries are maintained in sublinear time."""
    for title in OTHER_QUERIES:
        case = _worst_case(title)
        show(f"triangles: beyond, {title}")
        found = measure_adaptive(case, sizes)
        yield graded_claim(
            "short paper, section 3",
            f"`{case.query}`: exponent of an update",
            "below 1",
            f"{found:.2f}",
            holds=[found < 1],
        )


def _worst_case(title: str) -> AdaptiveCase:
    """The case of a query whose data is hardest: lists for the cycle, hubs for the others."""
    found = [case for case in ADAPTIVE if case.title == title and case.quantity == "worst update"]
    return found[1] if title == "4-cycle" else found[0]


def analysis_claims() -> Iterator[Claim]:
    """What the analysis promises for the triangle count."""
    bounds, lower = analyze(TRIANGLE).bounds, analyze(TRIANGLE).lower_bound
    for statement, printed, found in (
        ("exponent of preprocessing", "3/2", bounds.preprocessing),
        ("exponent of an update", "max(eps, 1 - eps)", bounds.update),
        ("best epsilon", "1/2", bounds.best_epsilon),
    ):
        yield exact_claim("theorem 3", f"analysis: {statement}", printed, str(found))
    below = str(lower.update) if lower else "none"
    yield exact_claim("proposition 4", "analysis: no update below the exponent", "1/2", below)


def section(sizes: TriangleSizes, show: Show) -> Section:
    """Figure 1, the rivals, and other queries."""
    claims = [*analysis_claims(), *point_claims(list(points(sizes, show)))]
    growths = hub_growth(sizes.hubs, lambda line: show(f"triangles: {line}"), CONTENDERS)
    show("triangles: recomputation")
    claims += [*rival_claims(growths), recompute_claim(sizes.recompute)]
    claims += [*preprocessing_claims(sizes.others, show), *other_claims(sizes.others, show)]
    largest = ", ".join(f"{size:,}" for size in sizes.trade_off)
    return Section(TITLE, TEXT, claims, [f"Figure 1: N = {largest}.", rival_table(growths)])
