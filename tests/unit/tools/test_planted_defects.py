"""Each defect to plant can be planted, and names tests that exist."""

import pytest

from tools.planted import DEFECTS, ROOT, Defect


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_replaces_text_that_its_file_contains_once(defect: Defect) -> None:
    assert (ROOT / defect.path).read_text().count(defect.before) == 1
    assert all((ROOT / "tests" / path).exists() for path in defect.tests)
