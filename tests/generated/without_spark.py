"""Generated cases in lakes without Spark: hundreds in the time that Spark takes for one."""

from pathlib import Path
from unittest.mock import patch

from tests.generated.cases import Case
from tests.generated.lakes import failures_in_lake
from tests.generated.runners import recomputed
from viewkeep.execute import few_rows
from viewkeep.execute.errors import NeedsSparkError


def run_without_spark(case: Case, place: Path) -> bool:
    """Whether a case can be computed without Spark; its first failure is raised. In one lake of two
    all relations are large, so that rows are looked up by keys."""
    recomputed(case, 0)
    all_rows = -1 if case.seed % 2 else few_rows.ALL_ROWS
    try:
        with patch.multiple(few_rows, ALL_ROWS=all_rows, WHOLE_ROWS=0):
            failures = failures_in_lake(None, case, place)
    except NeedsSparkError:
        return False
    for failure in failures.values():
        raise failure
    return True
