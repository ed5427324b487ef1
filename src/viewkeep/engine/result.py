"""A result that is kept fresh, in the forms that people hold: rows, Arrow, pandas, Polars, HTML."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from viewkeep.errors import MissingLibraryError, ViewkeepError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # has no stubs
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

Row = tuple[Any, ...]

_ROWS_SHOWN = 10
"""Rows that a notebook shows."""


class Result(ABC):
    """Named columns and rows, as they are now; every reading is of one state."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @abstractmethod
    def __iter__(self) -> Iterator[Row]:
        """The rows, in the order of the columns."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    def __bool__(self) -> bool:
        """A result is never false, also while it has no rows."""
        return True

    @abstractmethod
    def to_arrow(self) -> "pa.Table":
        """The rows as an Arrow table."""

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas frame."""
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a Polars frame."""
        _require("polars")
        import polars

        return polars.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for every library that reads Arrow's streams: `polars.DataFrame(result)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        try:
            rows = list(islice(iter(self), _ROWS_SHOWN + 1))
        except ViewkeepError as error:
            return f"<pre>{escape(repr(self))}\n{escape(str(error))}</pre>"
        body = "".join(_table_row(row) for row in rows[:_ROWS_SHOWN])
        more = "<p>and more rows</p>" if len(rows) > _ROWS_SHOWN else ""
        text = f"<pre>{escape(repr(self))}</pre>"
        return f"{text}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _table_row(row: Row) -> str:
    cells = ("NULL" if value is None else escape(str(value)) for value in row)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _require(library: str) -> None:
    """Refuse to go on without a library."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise MissingLibraryError(f"{library} is not installed: pip install {library}")


def short(text: str, longest: int = 80) -> str:
    """A text cut to a length.

    >>> short("Q(a) = R(a, b)", 8)
    'Q(a) ...'
    """
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
