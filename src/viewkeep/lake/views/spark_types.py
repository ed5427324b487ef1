"""Types of expressions that only Spark computes: asked for once, then kept with the view."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from viewkeep.query.types.data_types import Type, parse_type


class ExpressionAnalyst(Protocol):
    """Types of expressions that the front end does not know."""

    def expression_type(self, text: str, arguments: Sequence[Type]) -> str | None:
        """The type of an expression over columns `a0`, `a1`, ...; None if it is refused."""


class RecordedTypes:
    """The types that a definition has recorded, and new ones that an analyst gives."""

    def __init__(
        self,
        recorded: Mapping[str, str],
        functions: Collection[str],
        aggregates: Collection[str],
        analyst: ExpressionAnalyst | None,
    ) -> None:
        self.recorded = dict(recorded)
        self.functions = frozenset(name.lower() for name in functions)
        self.aggregates = frozenset(name.lower() for name in aggregates)
        self._analyst, self._refused = analyst, set[str]()

    def type_of(self, text: str, arguments: Sequence[Type]) -> Type | None:
        """The type of an expression over columns of some types; None if it has none."""
        kinds = ", ".join(f"a{i} {kind}" for i, kind in enumerate(arguments))
        key = f"{text} FROM ({kinds})" if kinds else text
        if key not in self.recorded and key not in self._refused:
            type_text = self._analyst.expression_type(text, arguments) if self._analyst else None
            if type_text is None:
                self._refused.add(key)
            else:
                self.recorded[key] = type_text
        return parse_type(self.recorded[key]) if key in self.recorded else None
