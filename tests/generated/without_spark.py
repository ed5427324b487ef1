"""Generated cases in lakes without Spark: hundreds in the time that Spark takes for one."""

from pathlib import Path
from unittest.mock import patch

from tests.generated.cases import Case
from tests.generated.lakes import failures_in_lake
from tests.generated.runners import recomputed
from viewkeep.execute import few_rows
from viewkeep.execute.errors import NeedsSparkError
from viewkeep.tables.files import rewrite


def run_without_spark(case: Case, place: Path) -> bool:
    """Whether a case can be computed without Spark; its first failure is raised. In one lake of two
    all relations are large, so that rows are looked up by keys, in half of these by DuckDB's own
    statements; and files are updated column by column, as large ones are."""
    recomputed(case, 0)
    all_rows = -1 if case.seed % 2 else few_rows.ALL_ROWS
    most = -1 if case.seed % 4 == 3 else few_rows.MOST_CHANGES
    limits = {"ALL_ROWS": all_rows, "WHOLE_ROWS": 0, "MOST_CHANGES": most}
    try:
        with patch.multiple(few_rows, **limits), patch.object(rewrite, "FEWEST_ROWS", all_rows):
            failures = failures_in_lake(None, case, place)
    except NeedsSparkError:
        return False
    for failure in failures.values():
        raise failure
    return True
