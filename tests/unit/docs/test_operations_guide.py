"""The guide for operators has every metric, an entry for every alert, and every error code."""

import re
from pathlib import Path
from typing import Final

from pergola.api.objects import maps_at
from pergola.extension_api import Code
from pergola.kube.yaml import parse
from pergola.runtime import Metrics

ROOT: Final = Path(__file__).parents[3]
ALERTS: Final = ROOT / "charts" / "alerts"
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
    """Return the address of the entry in the runbook of each alert."""
    files = [parse(path.read_text()) for path in ALERTS.iterdir()]
    groups = [
        group for file in files if isinstance(file, dict) for group in maps_at(file, "groups")
    ]
    rules = [rule for group in groups for rule in maps_at(group, "rules")]
    return {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules}


def test_every_metric_is_explained() -> None:
    page = PAGE.read_text()
    assert len(metrics()) > 25
    assert sorted(name for name in metrics() if f"`{name}`" not in page) == []


def test_every_alert_has_an_entry_in_the_runbook_and_in_the_table_of_metrics() -> None:
    page = PAGE.read_text()
    headings = set(re.findall(r"^### (Pergola\w+)$", page, flags=re.MULTILINE))
    assert headings == alerts().keys()
    start = "https://pergola.dev/how-to/operating-pergola.html#"
    assert alerts() == {name: f"{start}{name.lower()}" for name in headings}
    assert set(re.findall(r"`(Pergola\w+)`(?:,| \|)", page)) == alerts().keys() - {"PergolaDown"}


def test_every_error_code_has_an_entry() -> None:
    page = PAGE.read_text()
    assert [code for code in Code if f"| `{code}` |" not in page] == []
