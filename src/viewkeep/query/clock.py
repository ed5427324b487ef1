"""The clock as a table: one row, the moment that a view is computed at.

`current_date()` and `current_timestamp()` read it, so that a clock that moves is a change like any
other: of one row, which moves a bound.
"""

from datetime import UTC, date, datetime, timedelta

from viewkeep.errors import ArgumentError
from viewkeep.query.tables import HIDDEN, Table

CLOCK = f"{HIDDEN}clock"
AT, TODAY = "at", "today"
CLOCK_TABLE = Table(
    {"tick": "int not null", AT: "timestamp not null", TODAY: "date not null"}, key=["tick"]
)
"""`tick`, always 0, is the key of its only row; moments and days are those of UTC."""

CALLS = {"current_timestamp": AT, "now": AT, "current_date": TODAY, "curdate": TODAY}
"""The functions that read it, with the column that each reads."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clock_of(as_of: datetime | date | str | None) -> int:
    """A moment in microseconds since 1970; without a time zone it is in UTC, and None is now.

    >>> clock_of("1970-01-02"), clock_of("1970-01-01 01:00:00+01:00")
    (86400000000, 0)
    """
    moment = _clock_moment(as_of)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _clock_moment(as_of: datetime | date | str | None) -> datetime:
    match as_of:
        case None:
            return datetime.now(UTC)
        case datetime():
            return as_of
        case date():
            return datetime(as_of.year, as_of.month, as_of.day)
    try:
        return datetime.fromisoformat(as_of)
    except (ValueError, TypeError):
        raise ArgumentError(
            f'as_of={as_of!r}: write a moment as in "2026-05-01" or "2026-05-01 12:30:00"'
        ) from None


def clock_row(clock: int) -> tuple[int, datetime, date]:
    """The row of the table at a moment.

    >>> clock_row(86400000000)[2]
    datetime.date(1970, 1, 2)
    """
    moment = _EPOCH + timedelta(microseconds=clock)
    return 0, moment, moment.date()
