"""Refreshes told as events of OpenLineage: the tables that a view was made of, and how it went.

The client of OpenLineage takes its settings from where it always does (`OPENLINEAGE_URL`,
`OPENLINEAGE_CONFIG`, `OPENLINEAGE__TRANSPORT__...`). Where it is not installed, or no variable says
where events go, none are made. Events that do not arrive stop no refresh: they are logged.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from viewkeep.lake import RefreshReport
from viewkeep.lake.catalog import Catalog
from viewkeep.lake.lake import Lake

LOG = logging.getLogger(__name__)
CLIENT = "openlineage"
PRODUCER = "https://pypi.org/project/viewkeep"
LANGUAGE = "PYTHON"
Tell = Callable[[Any], None]


def is_lineage_wanted() -> bool:
    """Whether the client is installed, and the environment says where events go."""
    is_set = any(name.startswith("OPENLINEAGE_") for name in os.environ)
    return is_set and find_spec(CLIENT) is not None


def with_lineage(lake: Lake, tell: Tell) -> Tell:
    """What is called with reports: it emits the events of refreshes, then tells as before."""
    if not is_lineage_wanted():
        return tell
    emitter = LineageEmitter(lake)

    def emit_and_tell(report: Any) -> None:
        if isinstance(report, RefreshReport) and report.view:
            emitter.emit(report)
        tell(report)

    return emit_and_tell


def dataset_name(location: str) -> tuple[str, str]:
    """The namespace and name of a table, as OpenLineage names files.

    >>> dataset_name("/data/lake/orders"), dataset_name("s3://bucket/lake/orders")
    (('file', '/data/lake/orders'), ('s3://bucket', 'lake/orders'))
    """
    scheme, separator, rest = location.partition("://")
    if not separator or scheme == "file":
        return "file", rest if separator else location
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}", path


@dataclass
class LineageEmitter:
    """Emits two events for each refresh: that it began, and that it is complete or has failed."""

    lake: Lake
    _client: Any = None

    def emit(self, report: RefreshReport) -> None:
        """Emit the events of a report; what goes wrong is logged."""
        try:
            if self._client is None:
                self._client = import_module("openlineage.client").OpenLineageClient()
            for event in lineage_events(self.lake.catalog.read(), report, self.lake.uri):
                self._client.emit(event)
        except Exception as error:  # whatever a transport of others raises
            LOG.warning("no events of OpenLineage for view %s: %s", report.view, error)


def lineage_events(catalog: Catalog, report: RefreshReport, uri: str) -> list[Any]:
    """The events of a refresh, in the classes of the client."""
    events = import_module("openlineage.client.event_v2")
    facets = import_module("openlineage.client.facet_v2")
    new_id = import_module("openlineage.client.uuid").generate_new_uuid
    view = catalog.views[report.view]
    end = datetime.fromtimestamp(report.at / 1000, UTC) if report.at else datetime.now(UTC)
    inputs = []
    for name in view.inputs:
        version = report.after.get(name, report.before.get(name))
        about = facets.dataset_version_dataset.DatasetVersionDatasetFacet(str(version))
        known = {} if version is None else {"version": about}
        place = dataset_name(catalog.entries[name].location)
        inputs.append(events.InputDataset(*place, facets=known))
    statistics = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
    outputs = [
        events.OutputDataset(
            *dataset_name(view.location), {"outputStatistics": statistics(rowCount=report.rows)}
        )
    ]
    problem = facets.error_message_run.ErrorMessageRunFacet(report.error, LANGUAGE)
    run = events.Run(str(new_id()), {"errorMessage": problem} if report.error else {})
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", "") or uri
    text = facets.sql_job.SQLJobFacet(view.newest_sql, "spark")
    job = events.Job(namespace, report.view, {"sql": text})
    last = events.RunState.FAIL if report.error else events.RunState.COMPLETE
    steps = ((events.RunState.START, end - timedelta(seconds=report.seconds)), (last, end))
    return [
        events.RunEvent(
            eventTime=moment.isoformat(),
            producer=PRODUCER,
            run=run if state == last else events.Run(run.runId),
            job=job,
            eventType=state,
            inputs=inputs,
            outputs=outputs,
        )
        for state, moment in steps
    ]
