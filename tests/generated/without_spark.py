"""Generated cases in lakes without Spark: hundreds in the time that Spark takes for one."""

from pathlib import Path

from tests.generated.cases import Case
from tests.generated.lakes import failures_in_lake
from tests.generated.runners import recomputed
from viewkeep.execute.errors import NeedsSparkError


def run_without_spark(case: Case, place: Path) -> bool:
    """Whether a case can be computed without Spark; its first failure is raised."""
    recomputed(case, 0)
    try:
        failures = failures_in_lake(None, case, place)
    except NeedsSparkError:
        return False
    for failure in failures.values():
        raise failure
    return True
