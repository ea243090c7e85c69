"""The guide for operators has every metric, an entry for every alert, and every error code."""

import re
from pathlib import Path
from typing import Final

from pergola.api.objects import maps_at
from pergola.extension_api import Code
from pergola.kube.yaml import parse_documents
from pergola.runtime import Metrics

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "how-to" / "operating-pergola.md"
_OWN: Final = re.compile(
    r'"((?:flow|pergola)_[a-z_]+_(?:total|seconds|objects|healthy|until_expiry))"'
)
_OF_THE_LIBRARY: Final = ("process_", "python_")


def metrics() -> set[str]:
    """Return the names of all metrics: of every process, and of single products."""
    source = (ROOT / "src" / "pergola").rglob("*metrics*.py")
    found = {name for file in source for name in _OWN.findall(file.read_text())}
    for family in Metrics().registry.collect():
        if not family.name.startswith(_OF_THE_LIBRARY):
            found.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return found


def alerts() -> dict[str, str]:
    """Return the expression of each alert on the page."""
    [block] = re.findall(r"^```yaml\n(groups:.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [document] = parse_documents(block.encode())
    assert isinstance(document.value, dict)
    rules = [
        rule for group in maps_at(document.value, "groups") for rule in maps_at(group, "rules")
    ]
    return {rule["alert"]: rule["expr"] for rule in rules}


def test_every_metric_is_explained() -> None:
    page = PAGE.read_text()
    assert len(metrics()) > 25
    assert sorted(name for name in metrics() if f"`{name}`" not in page) == []


def test_every_alert_watches_a_metric_that_exists() -> None:
    known = metrics()
    for alert, expression in alerts().items():
        names = re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", re.sub(r"\{.*?\}", "", expression))
        used = {name.removesuffix("_bucket") for name in names} - {"histogram_quantile"}
        assert used, alert
        assert used <= known, alert


def test_every_alert_has_an_entry_in_the_runbook_and_in_the_table_of_metrics() -> None:
    page = PAGE.read_text()
    headings = set(re.findall(r"^### (Pergola\w+)$", page, flags=re.MULTILINE))
    assert headings == set(alerts())
    assert set(re.findall(r"`(Pergola\w+)` \|", page)) == set(alerts())


def test_every_error_code_has_an_entry() -> None:
    page = PAGE.read_text()
    assert [code for code in Code if f"| `{code}` |" not in page] == []
