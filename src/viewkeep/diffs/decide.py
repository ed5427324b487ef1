"""Whether a view is maintained by diffs or computed anew, and why."""

from collections.abc import Collection
from dataclasses import dataclass

from viewkeep.diffs.clock_uses import clock_columns, shows_clock
from viewkeep.diffs.id_plan import id_plan, view_tree_plan
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import IdPlan, MissingKeyError
from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.algebra import Node, Scan
from viewkeep.query.verbatim import Query, Verbatim

MAPS = "recursive"
"""The maps of DBToaster: what is left beside a table, summed up."""
RECURSIVE = ("recursive-fixed", "recursive-streams", MAPS)
"""Tuple-based scripts with the intermediate views of DBToaster, as joins or as maps."""
VIEW_TREE = "viewtree"
"""Group-bys over joins as joins of group-bys along a variable order (F-IVM)."""
HEAVY_LIGHT = "epsilon"
"""Sums over joins in heavy and light parts (IVM^epsilon)."""
TUPLE_BASED = ("tuple", VIEW_TREE)
RECOMPUTE = "recompute"
"""The view from scratch."""
STRATEGIES = ("auto", "id", "tuple", VIEW_TREE, *RECURSIVE, HEAVY_LIGHT, RECOMPUTE)
POLICIES = ("auto", "incremental", "strict", "full")


@dataclass(frozen=True)
class Decision:
    """The strategy of a view, the reason for it, and the plan where diffs are used."""

    strategy: str
    reason: str
    plan: IdPlan | None = None


def decide(
    view: Query, strategy: str = "auto", policy: str = "auto", views: Collection[str] = ()
) -> Decision:
    """Diffs where they can be right; else recomputation with the reason, or under the policy
    `strict` an error. `views` are the names in it that are views, which nobody can declare keys of.

    >>> from viewkeep.query.algebra import Scan
    >>> from viewkeep.query.tables import Table
    >>> log = Scan("log", Table({"line": "string"}), "log")
    >>> print(decide(log).reason)
    log has no key: copies of equal rows are numbered
    >>> tags = Scan("tags", Table({"tag": "map<string, int>"}), "tags")
    >>> print(decide(tags).reason.partition(":")[0])
    table "tags" has no key, and values of "tag", map<string,int>, do not compare
    """
    _check_option("strategy", strategy, STRATEGIES)
    _check_option("policy", policy, POLICIES)
    if isinstance(view, Verbatim):
        return Decision(RECOMPUTE, view.reason)
    if strategy == RECOMPUTE or policy == "full":
        return Decision(RECOMPUTE, "as asked")
    try:
        _check_clock_strategy(view, strategy)
        plan = view_tree_plan(view) if strategy == VIEW_TREE else id_plan(view)
    except QueryError as problem:
        error = _problem_of_views_below(problem, views)
        if policy == "strict" or strategy != "auto":
            raise error from None
        return Decision(RECOMPUTE, str(error))
    if strategy == "auto":
        return Decision("id", _reason_for_ids(plan), plan)
    return Decision(strategy, "as asked", plan)


def _check_clock_strategy(view: Node, strategy: str) -> None:
    if strategy in (*RECURSIVE, HEAVY_LIGHT) and clock_columns(view):
        raise QueryError(f"the strategy {strategy} brings in changes of tables, not of the clock")
    if strategy == "auto" and shows_clock(optimize(view)):
        raise QueryError("all its rows change with the clock, which its values are computed from")


def _reason_for_ids(plan: IdPlan) -> str:
    scans = [node for node in plan.nodes if isinstance(node, Scan)]
    bags = dict.fromkeys(each.name for each in scans if each.table.numbers_copies)
    if not bags:
        return "all tables have keys"
    return f"{', '.join(bags)} has no key: copies of equal rows are numbered"


def may_recompute(strategy: str, policy: str) -> bool:
    """Whether a view without a script may be computed as a whole at each refresh."""
    return strategy in ("auto", RECOMPUTE) and policy in ("auto", "full")


def _problem_of_views_below(problem: QueryError, views: Collection[str]) -> QueryError:
    """The problem of a missing key, explained for a view below, whose rows have no IDs."""
    if isinstance(problem, MissingKeyError) and problem.table in views:
        return QueryError(
            f'the rows of view "{problem.table}" have no IDs, since it is computed anew at every '
            f"refresh or groups by floats, and cannot be counted ({problem}): so is what reads it"
        )
    return problem


def _check_option(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        hint = did_you_mean(str(value), allowed)
        raise QueryError(f'{name}="{value}": expected one of {", ".join(allowed)}{hint}')
