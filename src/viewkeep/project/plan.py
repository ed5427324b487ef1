"""A project beside a lake: what is to be made, replaced, left and dropped, and why; runs nothing.

Tables hold data that cannot be computed again, so that a plan never drops one, and loses no column:
it adds columns, and widens types. Views are compared as algebra (`refresh.preview`): one whose text
alone has changed keeps its rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from viewkeep.errors import ParseError, ViewkeepError
from viewkeep.explain import AnalyzedQuery, explain
from viewkeep.lake.alter_table import Alteration, altered_table
from viewkeep.lake_reader import LakeReader
from viewkeep.project.model import Project, ProjectTable, ProjectView
from viewkeep.query.tables import Table
from viewkeep.refresh.plan import SKIP, Stage
from viewkeep.refresh.preview import NEW, OPTIONS, SAME, TEXT, ViewPreview

CREATE, REGISTER, ALTER, REPLACE, SET_LAG, SET_TEXT, LEAVE, DROP, FAILS = (
    *("create", "register", "alter", "replace", "set lag", "set text", "leave"),
    *("drop", "fails"),
)
IN_PLACE = (SET_LAG, SET_TEXT)
"""What changes the definition of a view, and none of its rows."""
TABLE, VIEW = "table", "view"


@dataclass(frozen=True)
class Step:
    """One table or view: what is to be done, and why. `destroys` tells what is lost by it,
    `keeping` how a view will be kept, `update` and `delay` the bounds that theory has for it,
    `reads` how many bytes are read, `refresh` what the refresh after it does, `theory` what
    `explain` tells of its query: class, bounds by strategy, lower bound, what would be better."""

    kind: str
    name: str
    action: str
    reason: str = ""
    destroys: str = ""
    file: str = ""
    keeping: str = ""
    update: str = ""
    delay: str = ""
    reads: int | None = None
    refresh: str = ""
    theory: tuple[tuple[str, str], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether something is to be done."""
        return self.action not in (LEAVE, FAILS)


@dataclass(frozen=True)
class ProjectPlan:
    """The steps that bring a lake to what a project says, in the order in which they run."""

    project: Project
    lake: str
    is_new: bool
    steps: tuple[Step, ...] = ()
    stages: tuple[Stage, ...] = field(default=(), repr=False)

    @property
    def problems(self) -> tuple[Step, ...]:
        """Steps that cannot be made: nothing is run while there is one."""
        return tuple(each for each in self.steps if each.action == FAILS)

    @property
    def destroying(self) -> tuple[Step, ...]:
        """Steps by which something is lost."""
        return tuple(each for each in self.steps if each.destroys)

    @property
    def changes(self) -> bool:
        """Whether the lake is not yet what the project says."""
        return any(each.changes for each in self.steps)


def plan_project(project: Project, keeper: LakeReader, is_new: bool = False) -> ProjectPlan:
    """Compare a project with its lake, which does not exist yet if `is_new`."""
    tables = dict(_declared_tables(project, keeper))
    steps = [_table_step(each, tables.get(each.name), keeper) for each in project.tables]
    readable = {
        name: _table_after(name, keeper.tables.get(name), table)
        for name, table in tables.items()
        if isinstance(table, Table)
    }
    previews = keeper.preview({v.name: (v.sql, v.options) for v in project.views}, readable)
    stages = () if is_new else tuple(keeper.plan())
    about = _Facts(project, keeper, readable, {each.view: each for each in stages}, previews)
    views = [about.step(*pair) for pair in zip(project.views, previews, strict=True)]
    return ProjectPlan(
        project, project.lake, is_new, (*steps, *views, *_drop_steps(project, keeper)), stages
    )


def _declared_tables(
    project: Project, keeper: LakeReader
) -> Iterator[tuple[str, Table | ViewkeepError]]:
    for each in project.tables:
        if each.table is not None:
            yield each.name, each.table
            continue
        try:
            yield each.name, keeper.external_table(each.name, each.location, **each.constraints)
        except (ViewkeepError, TypeError) as error:
            problem = error if isinstance(error, ViewkeepError) else ViewkeepError(str(error))
            yield each.name, problem


def _table_step(
    table: ProjectTable, declared: Table | ViewkeepError | None, keeper: LakeReader
) -> Step:
    if isinstance(declared, ViewkeepError):
        return Step(TABLE, table.name, FAILS, str(declared), file=table.file)
    assert declared is not None
    there = keeper.tables.get(table.name)
    if there is None:
        if table.name in keeper.views:
            return Step(
                TABLE, table.name, FAILS, "the lake has a view of that name", "", table.file
            )
        if table.location:
            return Step(TABLE, table.name, REGISTER, f"in {table.location}", file=table.file)
        if not declared.key:
            return Step(TABLE, table.name, FAILS, "it has no PRIMARY KEY", file=table.file)
        rows = f"new, with {table.rows.name}" if table.rows else "new, without rows"
        return Step(TABLE, table.name, CREATE, rows, file=table.file)
    difference = _table_difference(there, declared)
    if not difference:
        return Step(TABLE, table.name, LEAVE, file=table.file)
    if there.key == declared.key and table.location:
        return Step(TABLE, table.name, LEAVE, "its writers gave it other columns", file=table.file)
    alteration = table_alteration(there, declared)
    if alteration is not None:
        return Step(TABLE, table.name, ALTER, _alteration_text(alteration), file=table.file)
    way_out = f"`viewkeep table alter {table.name}` changes columns by name"
    return Step(TABLE, table.name, FAILS, f"{difference}; {way_out}", file=table.file)


def table_alteration(there: Table, declared: Table) -> Alteration | None:
    """The columns that a table of the lake lacks, and those that are wider in a project; None if
    that is not all that differs."""
    before = {each.name: each for each in there.visible}
    after = {each.name: each for each in declared.visible}
    add = {name: field for name, field in after.items() if name not in before}
    widen = {n: f.type for n, f in after.items() if n in before and f.type != before[n].type}
    alteration = Alteration(add, widen=widen)
    try:
        altered = altered_table("", there, alteration)
    except ViewkeepError:
        return None
    return None if _table_difference(altered, declared) else alteration


def _alteration_text(alteration: Alteration) -> str:
    added = [str(field) for field in alteration.add.values()]
    wider = [f"{name} becomes {kind}" for name, kind in alteration.widen.items()]
    return "; ".join(filter(None, ["add " + ", ".join(added) if added else "", *wider]))


def _table_after(name: str, there: Table | None, declared: Table) -> Table:
    """A table after its step: columns that are added come last."""
    if there is None:
        return declared
    if not _table_difference(there, declared):
        return there
    alteration = table_alteration(there, declared)
    return declared if alteration is None else altered_table(name, there, alteration)


def _table_difference(there: Table, declared: Table) -> str:
    """What differs."""
    before = {each.name: str(each) for each in there.visible}
    after = {each.name: str(each) for each in declared.visible}
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            own, new = before.get(name, "no such column"), after.get(name, "no such column")
            return f'the lake has "{own}" where the project has "{new}"'
    if there.key != declared.key:
        return f"its key is ({', '.join(there.key)}), in the project ({', '.join(declared.key)})"
    return ""


class _Facts:
    """What steps of views are made from."""

    def __init__(
        self,
        project: Project,
        keeper: LakeReader,
        tables: Mapping[str, Table],
        stages: Mapping[str, Stage],
        previews: list[ViewPreview],
    ) -> None:
        self._project, self._stages = project, stages
        self._there = {each.name: each for each in keeper.describe_views()}
        self._sizes = {each.name: each.size for each in keeper.describe_tables()}
        self._failed = {each.name for each in previews if each.problem is not None}
        columns = {each.name: Table(dict(each.columns)) for each in previews if each.columns}
        self._tables = {**keeper.tables, **tables, **columns}

    def step(self, view: ProjectView, preview: ViewPreview) -> Step:
        """What is to be done about a view."""
        problem = self._problem(view, preview)
        if problem:
            return Step(VIEW, view.name, FAILS, problem, file=view.file)
        action, reason, destroys = self._action(view, preview)
        update, delay = self._bounds(view)
        stage = self._stages.get(view.name)
        keeps_rows = action in (LEAVE, *IN_PLACE)
        return Step(
            VIEW,
            view.name,
            action,
            reason,
            destroys,
            view.file,
            f"{preview.strategy} ({preview.reason})" if preview.reason else preview.strategy,
            update,
            delay,
            self._bytes_read(preview) if action in (CREATE, REPLACE) else None,
            stage.summary if stage and stage.action != SKIP and keeps_rows else "",
            preview.theory,
        )

    def _action(self, view: ProjectView, preview: ViewPreview) -> tuple[str, str, str]:
        if preview.change == NEW:
            return CREATE, "new", ""
        there = self._there[view.name]
        if preview.change in (SAME, TEXT):
            if there.lag != view.options.lag:
                return SET_LAG, f'"{there.lag}" becomes "{view.options.lag}"; its rows stay', ""
            if preview.change == TEXT:
                return SET_TEXT, "only its text has changed; its rows stay", ""
            return LEAVE, "", ""
        reason = (
            "its options have changed" if preview.change == OPTIONS else "its query has changed"
        )
        types = [f"{name} becomes {kind}" for name, kind in preview.retyped]
        reason = "; ".join((reason, *types))
        if preview.lost:
            plural = "" if len(preview.lost) == 1 else "s"
            return REPLACE, reason, f"its column{plural} {', '.join(preview.lost)}"
        if there.project != self._project.name:
            owner = f'the project "{there.project}"' if there.project else "somebody else"
            return REPLACE, reason, f"the definition that {owner} gave it"
        return REPLACE, reason, ""

    def _problem(self, view: ProjectView, preview: ViewPreview) -> str:
        """What is wrong with a view, at its place in the file."""
        if preview.problem is not None:
            others = [each for each in view.reads if each in self._failed and each != view.name]
            if others:
                return f"it reads {', '.join(others)}, which cannot be made"
            return f"{_error_in_file(view, preview.problem)}{self._way_out(view)}"
        try:
            if view.statement is not None:
                view.statement.check_columns(preview.columns)
        except ViewkeepError as error:
            return str(error)
        return ""

    def _way_out(self, view: ProjectView) -> str:
        """How a table that nobody has would be made known."""
        known = {*self._tables, *(each.name for each in self._project.views)}
        unknown = [each for each in view.reads if each.lower() not in map(str.lower, known)]
        if not unknown:
            return ""
        return (
            f"\n{unknown[0]}: CREATE TABLE makes a table; [tables.{unknown[0]}] with a location in "
            "viewkeep.toml is a Delta table that others write"
        )

    def _bounds(self, view: ProjectView) -> tuple[str, str]:
        """The best update time and delay that theory has for a view, if it is conjunctive."""
        try:
            [outcome] = explain(view.sql, self._tables).outcomes
        except (ViewkeepError, ValueError):
            return "", ""
        if not isinstance(outcome, AnalyzedQuery):
            return "", ""
        bounds = outcome.analysis.bounds
        best = bounds if bounds.best_epsilon is None else bounds.at(bounds.best_epsilon)
        return best.order("update"), best.order("delay")

    def _bytes_read(self, preview: ViewPreview) -> int | None:
        sizes = [self._sizes.get(name, 0) for name in preview.reads]
        return None if None in sizes else sum(each or 0 for each in sizes)


def _error_in_file(view: ProjectView, error: ViewkeepError) -> ViewkeepError:
    text = "" if view.statement is None else view.statement.text
    start = text.rfind(view.sql)
    if not isinstance(error, ParseError) or error.text != view.sql or start < 0:
        return error
    return type(error)(error.problem, text, start + error.position)


def _drop_steps(project: Project, keeper: LakeReader) -> Iterator[Step]:
    """Views that the project has made and no longer has; those that read others first."""
    names = {each.name for each in project.views}
    gone = [v for v in keeper.describe_views() if v.project == project.name and v.name not in names]
    todo = {each.name: each for each in gone}
    while todo:
        read = {name for each in todo.values() for name in each.reads}
        for name in [each for each in todo if each not in read] or list(todo):
            del todo[name]
            yield Step(VIEW, name, DROP, "no longer in the project", "its rows and its history")
