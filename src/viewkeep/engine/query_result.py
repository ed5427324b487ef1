"""The output of a maintained query as a table."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from viewkeep.engine.inspection import Inspection
from viewkeep.engine.intake import Row
from viewkeep.engine.result import Result

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs


class QueryResult(Inspection, Result):
    """Output tuples as rows: the outputs, then the aggregates, or the count."""

    @abstractmethod
    def enumerate(self, given: Mapping[str, Any] | None = None) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads."""

    @abstractmethod
    def enumerate_batches(
        self, given: Mapping[str, Any] | None = None, rows: int = ...
    ) -> Iterator["pa.RecordBatch"]:
        """The output as Arrow record batches."""

    @abstractmethod
    def value(self, given: Mapping[str, Any] | None = None) -> Any:
        """The result of a query without output variables."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The outputs, then the aggregates, or the count.

        >>> from viewkeep import maintain
        >>> maintain("Q(a; sum(b), count()) = R(a, b)").columns, maintain("Q(a) = R(a, b)").columns
        (('a', 'sum(b)', 'count()'), ('a', 'count'))
        """
        payload = tuple(map(str, self.query.aggregates)) or ("count",)
        return (*self.query.outputs, *payload)

    def __iter__(self) -> Iterator[Row]:
        """The output tuples, each with its count or its aggregates behind it."""
        if not self.query.outputs:
            return iter([self._with_payload((), self.value())])
        return (self._with_payload(row, payload) for row, payload in self.enumerate())

    def __len__(self) -> int:
        """The number of distinct output tuples; 1 without output variables."""
        with self._live.gate:
            return sum(1 for _ in self)

    def to_arrow(self, given: Mapping[str, Any] | None = None) -> "pa.Table":
        """The output as an Arrow table of one state, with the columns of `columns`.

        Types are those of the values: columns of an output without tuples have the type null.
        """
        from viewkeep.engine.output_table import table_of_batches, table_of_rows  # loads Arrow

        with self._live.gate:
            if not self.query.outputs:
                row = self._with_payload((), self.value(given))
                return table_of_rows(self.columns, [row])
            return table_of_batches(self.columns, self.enumerate_batches(given))

    def _with_payload(self, row: Row, payload: Any) -> Row:
        return row + payload if self.query.aggregates else (*row, payload)
