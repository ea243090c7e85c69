"""Workloads of the charts cannot take all memory of a node."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.kube.yaml import parse_documents

CHARTS: Final = Path(__file__).parents[3] / "charts"


def workloads() -> Iterator[tuple[Path, JsonObject]]:
    for path in sorted(CHARTS.rglob("*.yaml")):
        for document in parse_documents(path.read_text()):
            value = document.value
            if isinstance(value, dict) and value.get("kind") in ("Deployment", "StatefulSet"):
                yield path, value


def test_every_container_has_a_limit_of_memory() -> None:
    found = list(workloads())
    assert found
    for path, workload in found:
        for container in maps_at(workload, "spec", "template", "spec", "containers"):
            assert "memory" in map_at(container, "resources", "limits"), path
