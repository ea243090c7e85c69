"""The shell blocks of the documentation, typed as they are written.

The reader has the wheel, kubectl and Helm, an empty folder, and one sandbox for all pages.
"""

import re
from dataclasses import replace

import pytest

from tests.support.documented.guides import (
    FIRST_STEPS,
    GARDEN,
    GUIDES,
    LANDSCAPE,
    LOOK_AROUND,
    NOT_RUN,
    SLOW,
    UP,
)
from tests.support.documented.reader import Guide, Reader


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak("guides")] if name in SLOW else [])
        for name in GUIDES
    ],
)
def test_the_commands_of_a_page_do_what_it_says(reader: Reader, name: str) -> None:
    reader.follow(GUIDES[name], NOT_RUN)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("line", "guides"),
    [
        pytest.param(UP[0], (FIRST_STEPS, LOOK_AROUND), marks=pytest.mark.soak("guides")),
        pytest.param(UP[1], (GARDEN,), marks=pytest.mark.soak("guides")),
        # The part `landscape-node` has a Seed on a real node.
        pytest.param(UP[3], (LANDSCAPE,), marks=pytest.mark.soak("landscape")),
    ],
    ids=(UP[0], UP[1], UP[3]),
)
def test_the_commands_beside_a_running_pergola_do_what_their_pages_say(
    reader: Reader, line: str, guides: tuple[Guide, ...]
) -> None:
    with reader.terminal() as terminal:
        shown = terminal.begin(line, "keeps running until Ctrl-C")
        printed = re.findall(r"export[\s\\]+KUBECONFIG=(\S+)", shown)
        for guide, path in zip(guides, (printed[0], printed[-1]), strict=False):
            before = f"export KUBECONFIG={path}\n{guide.before}"
            reader.follow(replace(guide, before=before), (*NOT_RUN, UP[0]))
