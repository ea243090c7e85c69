"""Workloads of the charts cannot take all memory of a node."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.sandbox.helm import render
from tests.support.charts import with_image

CHARTS: Final = Path(__file__).parents[3] / "charts"


def workloads() -> Iterator[tuple[Path, JsonObject]]:
    """Yield the workloads of all charts."""
    for path in CHARTS.glob("*/Chart.yaml"):
        for obj in render(path.parent, with_image()):
            if obj["kind"] in ("Deployment", "StatefulSet"):
                yield path.parent, obj


@pytest.mark.timeout(600)  # Helm may have to be built
def test_every_container_has_a_memory_limit() -> None:
    found = list(workloads())
    assert {path.name for path, _ in found} >= {"resource-manager", "operator"}
    for path, workload in found:
        for container in maps_at(workload, "spec", "template", "spec", "containers"):
            assert "memory" in map_at(container, "resources", "limits"), path
