"""Prometheus accepts all rules; the alerts of the charts fire when they should."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

import pergola
from pergola.api.objects import JsonObject, JsonValue, maps_at
from pergola.kube.yaml import dump, parse
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import PROMTOOL
from pergola.shipped import CHARTS
from tests.support.documented import blocks, pages
from tools.panels import PANELS

MAY_BUILD: Final = pytest.mark.timeout(1200)  # promtool

ALERTS: Final = CHARTS / "alerts"
CASES: Final = Path(__file__).parent / "cases"
FAMILIES: Final = sorted(path.name for path in ALERTS.iterdir())
PACKAGE: Final = Path(pergola.__file__).parent
RENDERED: Final = [
    *sorted((PACKAGE / "garden/components/prometheus_rules").iterdir()),
    PACKAGE / "providers/networking/cilium/render/prometheus_rules.yaml",
]
"""The rules of Gardens and Shoots."""


def parsed(path: Path) -> JsonObject:
    found = parse(path.read_text())
    assert isinstance(found, dict)
    return found


def promtool(*arguments: str | Path) -> str:
    """Run promtool, which must succeed, and return its output."""
    program = binaries.find((PROMTOOL,))[PROMTOOL]
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{answer.stdout}{answer.stderr}"
    return answer.stdout


@MAY_BUILD
@pytest.mark.soak("originals")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_rules_are_valid(family: str) -> None:
    assert "SUCCESS" in promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS / family)


@MAY_BUILD
@pytest.mark.soak("originals")
@pytest.mark.parametrize("file", RENDERED, ids=lambda file: file.stem)
def test_the_rules_of_gardens_and_shoots_are_valid(file: Path) -> None:
    # Two alerts of the original have the same name and labels, which lint calls duplicates.
    assert "SUCCESS" in promtool("check", "rules", "--lint=none", file)


@MAY_BUILD
@pytest.mark.soak("originals")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_alerts_fire_exactly_when_they_should(family: str) -> None:
    assert "SUCCESS" in promtool("test", "rules", CASES / family)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(family: str) -> None:
    rules = [
        rule["alert"]
        for group in maps_at(parsed(ALERTS / family), "groups")
        for rule in maps_at(group, "rules")
    ]
    cases = {
        (case["alertname"], bool(case["exp_alerts"]))
        for test in maps_at(parsed(CASES / family), "tests")
        for case in maps_at(test, "alert_rule_test")
    }
    assert cases == {(rule, fires) for rule in rules for fires in (True, False)}


@MAY_BUILD
@pytest.mark.soak("originals")
def test_prometheus_can_parse_each_query_of_the_dashboards_and_the_documentation(
    tmp_path: Path,
) -> None:
    queries = [panel.expr for panels in PANELS.values() for panel in panels]
    documented = [each for page in pages() for each in blocks(page) if each.language == "promql"]
    queries += [line for block in documented for line in block.text.splitlines()]
    rules: list[JsonValue] = [
        {"record": f"query:{number}", "expr": each} for number, each in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(dump({"groups": [{"name": "queries", "rules": rules}]}))

    assert f"{len(queries)} rules found" in promtool("check", "rules", file)
