"""How a view is kept, in words: its strategy and why, what is stored, and its script."""

from collections.abc import Iterator

from viewkeep.diffs.programs.theory import theory_of
from viewkeep.diffs.script import Materialized, Script
from viewkeep.errors import QueryError
from viewkeep.lake.views.balance import balance_of_view
from viewkeep.lake.views.cache_users import CacheUsers, cache_users
from viewkeep.lake.views.row_layout import COPY_ON_WRITE, MERGE_ON_READ, advice
from viewkeep.lake.views.view import View


def script_of(view: View) -> Script:
    """The delta script of a view for all kinds of changes; an error if it has none."""
    if not view.is_incremental:
        raise QueryError(f'view "{view.name}" has no script: {view.decision.reason}')
    return view.script


def view_explanation(
    view: View, next_refresh: str, strategies: str = "", script: bool = True
) -> str:
    """The strategy of a view with the reason and beside others, what its next refresh does, what is
    kept and which other views use it, what the theory says of its query, and the statements of a
    refresh."""
    definition, decision = view.definition, view.decision
    lines = [
        f'View "{view.name}" over {", ".join(definition.inputs)}',
        f"  strategy  {decision.strategy}: {decision.reason}",
        *([f"  expected  {strategies}"] if strategies else []),
        f"  policy    {definition.policy}",
        f"  next      {next_refresh}",
        f"  stored    {', '.join(field.name for field in view.layout.fields)}",
    ]
    for table, seen in definition.sees:
        names = ", ".join(name for name, _ in seen)
        lines.append(f"  sees      {names} of {table}, which has got other columns since")
    layout = _layout_text(view)
    if layout:
        lines.append(f"  layout    {layout}")
    if view.clock_columns:
        lines.append("  clock     moves with every refresh, or is given: refresh(as_of=...)")
    if not view.is_incremental:
        when = "at each refresh" if view.clock_columns else "whenever its inputs change"
        return "\n".join([*lines, "", f"It is computed anew {when}."])
    lines.append(f"  IDs       {', '.join(view.layout.keys) or 'none: it has one row'}")
    users = _users_of_caches(view) if view.shared_forms else {}
    for cache in view.script.caches:
        why = f": {cache.why}" if cache.why else ""
        columns = ", ".join(cache.definition.names)
        lines.append(
            f"  cache     {cache.name} ({columns}){why}{_sharing_text(view, cache, users)}"
        )
    lines += [f"  {name:8}  {text}" for name, text in _balance_lines(view)]
    lines += [f"  {name:8}  {text}" for name, text in theory_of(view.node)]
    return "\n".join([*lines, "", str(view.script)] if script else lines)


def _users_of_caches(view: View) -> CacheUsers:
    return cache_users(view.lake, view.lake.catalog.read()) or {}


def _sharing_text(view: View, cache: Materialized, users: CacheUsers) -> str:
    """The other views that use a cache."""
    form = view.shared_forms.get(cache.name)
    others = sorted(set(users.get(form.key, {}) if form else ()) - {view.name})
    return f"; shared with {', '.join(others)}" if others else ""


def _balance_lines(view: View) -> Iterator[tuple[str, str]]:
    """The thresholds and the heavy values of a view in heavy and light parts."""
    balance = balance_of_view(view, view.stored().state) if view.heavy_light else None
    if balance is not None:
        yield "balance", str(balance)
        yield from (("heavy", str(each)) for each in balance.heavy)


def _layout_text(view: View) -> str:
    """How changed rows are stored, if that was asked for, or what would be better."""
    if view.marks_rows:
        return f"{MERGE_ON_READ}: rows that change are marked in deletion vectors"
    if view.definition.layout == MERGE_ON_READ:
        return f"{COPY_ON_WRITE}: all of it is written anew, so that there is nothing to mark"
    better = advice(view.history()) if view.definition.layout == "auto" else ""
    return f"{COPY_ON_WRITE}; {better}" if better else ""
