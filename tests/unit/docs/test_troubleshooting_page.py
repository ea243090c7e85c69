"""The page "Troubleshoot by symptom": a test produces each of its texts."""

import re

from tests.support.documented.pages import ROOT
from tests.support.documented.symptoms import PAGE, symptoms

ENOUGH = 20


def test_every_symptom_is_produced_by_a_test() -> None:
    produced = {
        heading
        for path in (ROOT / "tests" / "integration").rglob("test_*.py")
        for heading in re.findall(r"symptom\(\s*\"([^\"]+)\"\s*\)", path.read_text())
    }

    assert produced == symptoms().keys()
    assert len(produced) >= ENOUGH


def test_every_section_has_a_text_and_a_way_out() -> None:
    assert re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE) == [*symptoms()]
