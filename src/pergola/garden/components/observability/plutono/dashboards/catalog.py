"""All dashboards, by the names of their files."""

from collections.abc import Iterator

import orjson

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.plutono.dashboards.landscape import seeds, shoots
from pergola.garden.components.observability.plutono.dashboards.overview import overview
from pergola.garden.components.observability.plutono.dashboards.runtime_cluster import (
    pod_logs,
    workloads,
)
from pergola.garden.components.observability.plutono.dashboards.virtual_cluster import (
    api_servers,
    etcds,
)


def dashboards(*, has_logs: bool) -> dict[str, str]:
    """Return the files of all dashboards.

    Args:
        has_logs: Whether logs are kept.
    """
    each = (overview(), api_servers(), etcds(), workloads(), seeds(), shoots())
    files = dict(_files(*each))
    return files | (dict(_files(pod_logs())) if has_logs else {})


def _files(*each: JsonObject) -> Iterator[tuple[str, str]]:
    for found in each:
        yield f"{found['uid']}-dashboard.json", orjson.dumps(found).decode()
