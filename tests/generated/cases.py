"""A view, or views on views, with a history: what it takes to repeat a failure."""

import os
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.generated.further import FurtherWriter
from tests.generated.histories import History, random_history
from tests.generated.scalars import Column
from tests.generated.tables import TABLES
from tests.generated.writer import Query, relations_of
from viewkeep.query.algebra import Node
from viewkeep.query.traversal import walk
from viewkeep.sql.parse import parse_view

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
NODES = 45 if LONG else 25
"""Views with more operators are drawn again: their scripts take long to make."""


@dataclass(frozen=True)
class Case:
    """Views in the order in which they read each other, and a history of the tables."""

    views: tuple[tuple[str, str], ...]
    history: History
    seed: int

    def __str__(self) -> str:
        views = "\n".join(f"{name}: {sql}" for name, sql in self.views)
        return f"seed {self.seed}\n{views}\n{self.history}"


def random_case(seed: int, steps: int = 4) -> Case:
    """One view and a history of the tables that it reads."""
    rng = Random(seed)
    query = random_view(rng)
    history = random_history(TABLES, rng, steps)
    return Case((("v", query.sql),), history, seed)


def random_view(rng: Random, below: tuple[tuple[str, tuple[Column, ...]], ...] = ()) -> Query:
    """A view over the tables, and over other views."""
    while True:
        query = FurtherWriter(rng, relations_of(TABLES) | dict(below)).view()
        if below or operators(parsed(query.sql)) <= NODES:
            return query


def operators(node: Node) -> int:
    """How many operators a view has, with those that are used twice counted twice."""
    return sum(1 for _ in walk(node))


@cache
def parsed(sql: str) -> Node:
    """A view over the tables, as algebra."""
    return parse_view(sql, TABLES)
