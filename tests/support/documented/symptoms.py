"""The texts on the page "Troubleshoot by symptom", for the tests that produce them."""

import re
from functools import cache
from typing import Final

from tests.support.documented.pages import ROOT

PAGE: Final = ROOT / "docs" / "how-to" / "troubleshoot.md"
_SECTION: Final = re.compile(r"^### (.+)\n\n```symptom\n(.+)\n```\n\n(?=\S)", re.MULTILINE)
_ANYTHING: Final = "…"


@cache
def symptoms() -> dict[str, str]:
    """Return the text of each symptom by its heading."""
    return dict(_SECTION.findall(PAGE.read_text()))


def symptom(heading: str) -> str:
    """Return a regular expression for the text of a symptom, as users see it.

    Raises:
        KeyError: the page has no such heading.
    """
    parts = symptoms()[heading].split(_ANYTHING)
    return "(?s)" + ".*?".join(map(re.escape, parts))
