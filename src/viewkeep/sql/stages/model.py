"""A view as stages: conjunctive queries whose relations are fed, row by row, by tables and by other
stages.

    source (table or stage) --steps, sign--> relation of a stage --query--> rows of that stage

Steps look at one row at a time. A relation adds what its branches bring, with their signs: bags
are subtracted that way (rows of L without a match = L - rows of L with one).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.expressions import Column, Expression
from viewkeep.query.tables import Table
from viewkeep.query.types.inference import Schema


@dataclass(frozen=True, slots=True)
class Step:
    """The rows over `names` for which all conditions are TRUE, as the values of `outputs`."""

    names: tuple[str, ...]
    conditions: tuple[Expression, ...]
    outputs: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """What a table or stage brings to a relation: its rows after the steps, times the sign."""

    source: str
    steps: tuple[Step, ...] = ()
    sign: int = 1

    def then(self, step: Step) -> "Branch":
        """The branch with one more step."""
        return Branch(self.source, (*self.steps, step), self.sign)

    def negative(self) -> "Branch":
        """The branch with the other sign."""
        return Branch(self.source, self.steps, -self.sign)


@dataclass(frozen=True, slots=True)
class Feed:
    """Where the rows of a relation come from, and which of their columns the query binds."""

    relation: str
    branches: tuple[Branch, ...]
    columns: tuple[int, ...]

    @property
    def table(self) -> str | None:
        """The table whose rows are those of the relation, if nothing happens to them before."""
        match self.branches:
            case (Branch(source, (), 1),) if source == self.relation:
                return source
        return None


class Kind(Enum):
    """What the rows of a stage are: output tuples as often as they count, output tuples once, or
    groups with their aggregates."""

    ROWS = "rows"
    DISTINCT = "distinct rows"
    GROUPS = "groups"


@dataclass(frozen=True, slots=True)
class Stage:
    """A conjunctive query over relations that are fed; its rows are its outputs, then its
    aggregates."""

    name: str
    query: ConjunctiveQuery
    kind: Kind
    feeds: tuple[Feed, ...]

    @property
    def is_total(self) -> bool:
        """Whether it is one row, also of nothing."""
        return self.kind is Kind.GROUPS and not self.query.outputs


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The stages of a view, inputs first; the view is the rows of the last one after the steps,
    which tell apart whatever the stage tells apart."""

    stages: tuple[Stage, ...]
    steps: tuple[Step, ...]
    schema: Schema
    tables: tuple[tuple[str, Table], ...]

    @property
    def root(self) -> Stage:
        """The stage that the view is read from."""
        return self.stages[-1]

    def read_stages(self) -> Iterator[str]:
        """The names of the stages that other stages read."""
        for stage in self.stages:
            for feed in stage.feeds:
                yield from (branch.source for branch in feed.branches)


def kept_places(stage: Stage, steps: tuple[Step, ...]) -> dict[int, str]:
    """The columns after the steps that are outputs of a stage's query, by their places."""
    outputs: dict[int, str] = dict(enumerate(stage.query.outputs))
    for step in steps:
        places = {name: place for place, name in enumerate(step.names)}
        outputs = {
            place: outputs[places[output.name]]
            for place, output in enumerate(step.outputs)
            if isinstance(output, Column) and places[output.name] in outputs
        }
    return outputs
