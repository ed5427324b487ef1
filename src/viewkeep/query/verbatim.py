"""A query that only its engine reads: the text of SQL over tables, and the columns it gives."""

from dataclasses import dataclass
from typing import TypeAlias

from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.query.types.inference import Schema


@dataclass(frozen=True)
class Verbatim:
    """SQL outside the algebra: `reason` tells why a view of it is computed as a whole."""

    text: str
    tables: tuple[tuple[str, Table], ...]
    reason: str
    schema: Schema = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The output columns' names, in order."""
        return tuple(field.name for field in self.schema)

    def __str__(self) -> str:
        return self.text


Query: TypeAlias = Node | Verbatim
"""The query of a view; delta scripts have none but those of the algebra."""
