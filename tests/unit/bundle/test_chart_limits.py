"""Workloads of the charts cannot take all memory of a node."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.kube.yaml import parse_documents
from pergola.testing.helm import render

CHARTS: Final = Path(__file__).parents[3] / "charts"


def objects() -> Iterator[tuple[Path, JsonObject]]:
    """Yield the objects of all charts: those of Helm as it renders them, the others as written."""
    of_helm = [path.parent for path in CHARTS.glob("*/Chart.yaml")]
    for chart in of_helm:
        yield from ((chart, obj) for obj in render(chart))
    for path in sorted(CHARTS.rglob("*.yaml")):
        if not set(of_helm) & set(path.parents):
            for document in parse_documents(path.read_text()):
                if isinstance(document.value, dict):
                    yield path, document.value


def workloads() -> Iterator[tuple[Path, JsonObject]]:
    for path, obj in objects():
        if obj.get("kind") in ("Deployment", "StatefulSet"):
            yield path, obj


@pytest.mark.timeout(600)  # Helm may have to be built
def test_every_container_has_a_limit_of_memory() -> None:
    found = list(workloads())
    assert {path.name for path, _ in found} >= {"deployment.yaml", "operator"}
    for path, workload in found:
        for container in maps_at(workload, "spec", "template", "spec", "containers"):
            assert "memory" in map_at(container, "resources", "limits"), path
