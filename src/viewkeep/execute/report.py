"""What a refresh did, statement by statement, whichever database ran it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StatementReport:
    """What one statement did; None where it is not known.

    `rows` are those that a query produced, or that a change wrote. `reads` are the rows of the
    relations that a query reads, each relation once: diffs, tables, caches and the view; a change
    reads its diff. Both are 0 where empty diffs left nothing to do. `accesses` are index look-ups
    and tuple accesses (id_based_ivm, appendix A), where they were counted.
    """

    name: str
    kind: str
    rows: int | None
    seconds: float
    reads: int | None = None
    accesses: int | None = None


@dataclass(frozen=True)
class RunReport:
    """What a refresh did; its seconds are those of its statements and of what they need around."""

    statements: tuple[StatementReport, ...]
    seconds: float

    @property
    def shares(self) -> tuple[float, ...]:
        """Each statement's share of the time of the refresh.

        >>> done = [StatementReport(name, "compute", 1, 0.5) for name in "ab"]
        >>> RunReport(tuple(done), seconds=2.0).shares
        (0.25, 0.25)
        """
        return tuple(s.seconds / self.seconds if self.seconds else 0.0 for s in self.statements)

    @property
    def accesses(self) -> int | None:
        """The accesses of all statements, where they were counted."""
        counts = [each.accesses for each in self.statements]
        return None if None in counts else sum(count or 0 for count in counts)
