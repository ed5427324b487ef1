"""The stages of a view at work: changes of tables go through them in order, all or none."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from viewkeep.engine.subscribers import OutputChange, Row
from viewkeep.maintainer import Maintainer
from viewkeep.network.bags import Bag, RowFunction, add_to, row_function, stage_changes, stage_row
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.rings.index import key_function
from viewkeep.sql.stages.model import Feed, Kind, Stage, StagePlan

Bags = dict[str, Bag]
"""Changes by table, by stage, or by relation."""


class _FeedFunctions:
    """A feed, ready to run."""

    def __init__(self, feed: Feed) -> None:
        self.relation = feed.relation
        self._relation_row = key_function(feed.columns)
        self._branches: list[tuple[str, int, RowFunction]] = [
            (branch.source, branch.sign, row_function(branch.steps)) for branch in feed.branches
        ]

    def bag(self, bags: Mapping[str, Bag]) -> Bag:
        """What the changes of tables and stages are to the relation."""
        result: Bag = {}
        for source, sign, function in self._branches:
            for row, count in bags.get(source, {}).items():
                row_of_relation = function(row)
                if row_of_relation is not None:
                    add_to(result, self._relation_row(row_of_relation), sign * count)
        return result


class StageMember:
    """A stage, the maintainer of its query, and what changed in its rows."""

    def __init__(self, stage: Stage, maintainer: Maintainer, is_read: bool) -> None:
        self.stage, self.maintainer = stage, maintainer
        self.is_read, self.is_new = is_read, True
        """Whether other stages read it; whether nothing has come to it yet."""
        self.empty_total: Row = maintainer.value() if stage.is_total else ()
        self._feeds = [_FeedFunctions(feed) for feed in stage.feeds]
        self._output_changes: list[OutputChange] = []
        self._token: int | None = None

    def relations(self, bags: Mapping[str, Bag]) -> Bags:
        """The changes of its relations."""
        changes = {feed.relation: feed.bag(bags) for feed in self._feeds}
        return {relation: bag for relation, bag in changes.items() if bag}

    def listen(self) -> None:
        """Have the maintainer tell what changes in its output from now on."""
        if self._token is None:
            self._token = self.maintainer.subscribe(self._output_changes.extend)

    def stop_listening(self) -> None:
        """Have the maintainer tell nothing more, unless other stages read this one."""
        if self._token is not None and not self.is_read:
            self.maintainer.unsubscribe(self._token)
            self._token = None

    def resume(self, maintainer: Maintainer, is_new: bool) -> None:
        """Go on with another maintainer of the same query."""
        self.maintainer, self.is_new, self._token = maintainer, is_new, None
        if self.is_read and (self.stage.is_total or not is_new):
            self.listen()

    def take(self, relations: Bags) -> Bag:
        """Bring changes of relations in; what changes in its rows, if anyone listens or reads."""
        if self.is_new and self._token is None:
            return self._load_first_rows(relations)
        self.maintainer.update_batches(_batches(relations))
        self.is_new = False
        changes = stage_changes(self.stage, self._output_changes, self.empty_total)
        self._output_changes.clear()
        return changes

    @property
    def is_heard(self) -> bool:
        """Whether the maintainer tells what changes in its output."""
        return self._token is not None

    def load_frames(self, frames: Mapping[str, Any]) -> None:
        """Load frames of relations, while nobody listens."""
        self.maintainer.load(frames)
        self.is_new = False

    def take_frame(self, relation: str, frame: Any, counts: Iterable[int] | None) -> None:
        """Bring a frame of one relation in, while nobody listens."""
        self.maintainer.update_batch(relation, frame, counts)
        self.is_new = False

    def _load_first_rows(self, relations: Bags) -> Bag:
        """Load the first rows, which is quicker while nobody listens."""
        if all(count > 0 for bag in relations.values() for count in bag.values()):
            self.maintainer.load({name: _rows_of_bag(bag) for name, bag in relations.items()})
        else:
            self.maintainer.update_batches(_batches(relations))
        self.is_new = False
        if not self.is_read:
            return {}
        self.listen()
        changes = dict(self.rows())
        if self.stage.is_total:
            add_to(changes, self.empty_total, -1)
        return changes

    def take_back(self, relations: Bags) -> None:
        """Undo what `take` brought in."""
        inverse = {name: {row: -n for row, n in bag.items()} for name, bag in relations.items()}
        self.maintainer.update_batches(_batches(inverse))
        self._output_changes.clear()

    def copies(self, row: Row, change: int) -> int:
        """How many copies of a row there are after a change."""
        if self.stage.kind is Kind.ROWS:
            return int(self.maintainer.lookup(row))
        return int(change > 0)

    def rows(self) -> Iterator[tuple[Row, int]]:
        """All rows of the stage, and how many copies there are of each."""
        if self.stage.is_total:
            return iter([(self.maintainer.value(), 1)])
        output = self.maintainer.enumerate()
        return (stage_row(self.stage, row, payload) for row, payload in output)


def _batches(relations: Bags) -> list[tuple[str, Any, Iterable[int] | None]]:
    return [(name, list(bag), list(bag.values())) for name, bag in relations.items()]


def _rows_of_bag(bag: Bag) -> list[Row]:
    return [row for row, count in bag.items() for _ in range(count)]


class Network:
    """The members of a view, inputs first; made empty."""

    def __init__(
        self, plan: StagePlan, maintainer_of: Callable[[ConjunctiveQuery], Maintainer]
    ) -> None:
        sources = set(plan.read_stages())
        self.members = [
            StageMember(stage, maintainer_of(stage.query), stage.name in sources)
            for stage in plan.stages
        ]
        self._result = row_function(plan.steps)
        self._feed_empty_totals()

    @property
    def root(self) -> StageMember:
        """The member that the view is read from."""
        return self.members[-1]

    def _feed_empty_totals(self) -> None:
        """Feed the values of totals over no rows to the stages that read them."""
        totals = [m for m in self.members if m.stage.is_total and m.is_read]
        for member in totals:
            member.listen()
        if totals:
            self.apply({member.stage.name: {member.empty_total: 1} for member in totals})

    def resume(self, members: Iterable[tuple[Maintainer, bool]]) -> None:
        """Go on with maintainers that were saved, each with whether anything had come to it."""
        for member, (maintainer, is_new) in zip(self.members, members, strict=True):
            member.resume(maintainer, is_new)

    def apply(self, changes: Mapping[str, Bag]) -> list[OutputChange]:
        """Bring changes of tables in, all or none; what changes in the rows of the view, if its
        root listens."""
        bags, applied_stages = dict(changes), list[tuple[StageMember, Bags]]()
        try:
            for member in self.members:
                relations = member.relations(bags)
                if relations:
                    changes_of_stage = member.take(relations)
                    applied_stages.append((member, relations))
                    _add_changes(bags, member.stage.name, changes_of_stage)
            return self._view_changes(bags.get(self.root.stage.name, {}))
        except BaseException:
            for member, relations in reversed(applied_stages):
                member.take_back(relations)
            raise

    def direct_feed(self, table: str) -> Feed | None:
        """The relation that has the rows of a table as they are, where nothing else reads them and
        nobody listens: whole columns may go there."""
        feeds = [f for f in self.root.stage.feeds if table in (b.source for b in f.branches)]
        alone = len(self.members) == 1 and not self.root.is_heard
        fits = alone and len(feeds) == 1 and feeds[0].table == table and feeds[0].columns
        return feeds[0] if fits else None

    def _view_changes(self, bag: Bag) -> list[OutputChange]:
        """The changes of the root's rows as those of the view's rows, with copies before and
        after: as many as the root has, or one."""
        net: Bag = {}
        copies: dict[Row, int] = {}
        for row, count in bag.items():
            view_row = self._result(row)
            if view_row is not None:
                add_to(net, view_row, count)
                copies[view_row] = self.root.copies(row, count)
        return [
            OutputChange(row, copies[row] - count or None, copies[row] or None)
            for row, count in net.items()
        ]

    def rows(self) -> Iterator[tuple[Row, int]]:
        """The rows of the view, and how many copies there are of each."""
        for row, count in self.root.rows():
            if (view_row := self._result(row)) is not None:
                yield view_row, count

    def view_row(self, row: Row, payload: Any) -> Row | None:
        """The row of the view for an output tuple of its root; None where HAVING leaves it out."""
        return self._result(stage_row(self.root.stage, row, payload)[0])


def _add_changes(bags: Bags, name: str, changes: Bag) -> None:
    for row, count in changes.items():
        add_to(bags.setdefault(name, {}), row, count)
