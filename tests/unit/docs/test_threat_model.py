"""Every test that `THREAT_MODEL.md` names exists."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]


def test_every_mitigation_names_existing_tests() -> None:
    page = (ROOT / "THREAT_MODEL.md").read_text()
    named = set(re.findall(r"`(test_\w+(?:\.py)?)`", page))
    files = list((ROOT / "tests").rglob("test_*.py"))
    existing = {file.name for file in files}
    for file in files:
        existing |= set(re.findall(r"def (test_\w+)\(", file.read_text()))

    assert named
    assert named - existing == set()


def test_every_threat_has_a_test() -> None:
    rows = [line for line in (ROOT / "THREAT_MODEL.md").read_text().splitlines() if "|" in line]
    threats = [row for row in rows if not row.startswith(("| threat", "|---"))]

    assert threats
    assert [row for row in threats if "`test_" not in row] == []
