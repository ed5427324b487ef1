"""What can go wrong when an engine works for a lake."""

from viewkeep.errors import ViewkeepError


class RunError(ViewkeepError):
    """A statement of a script that failed; nothing was changed."""


class NeedsSparkError(ViewkeepError):
    """Work that DuckDB is not known to do as Spark does, in a lake without Spark."""


class SparkStartError(ViewkeepError):
    """Spark did not start."""
