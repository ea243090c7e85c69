"""Check the accessibility of a page with axe-core."""

import asyncio
import os
from pathlib import Path
from typing import Final, NamedTuple

import orjson
import pytest

from tests.support.chromium import Tab

VARIABLE: Final = "PERGOLA_AXE"
THEMES: Final = ("light", "dark")

needs_axe = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"{VARIABLE} names no axe.min.js of axe-core"
)
"""Skips a test where axe-core is missing."""


class Violation(NamedTuple):
    """A rule that a page breaks, in one theme.

    Attributes:
        elements: The beginning of each element that breaks it.
    """

    theme: str
    rule: str
    elements: tuple[str, ...]


async def load_axe(tab: Tab) -> None:
    """Make axe-core ready in a page, which changes by itself no more than its data do.

    Timers are ended: they would replace rows while these are checked.
    """
    await tab.run("for (let id = setTimeout(() => {}); id > 0; id -= 1) clearTimeout(id)")
    await tab.run(await asyncio.to_thread(Path(os.environ[VARIABLE]).read_text))


async def violations(tab: Tab) -> list[Violation]:
    """Return the findings of axe-core in both themes."""
    found = []
    for theme in THEMES:
        await tab.prefer(theme)
        text = await tab.run("axe.run().then((all) => JSON.stringify(all.violations))")
        found += [
            Violation(theme, each["id"], tuple(node["html"][:150] for node in each["nodes"]))
            for each in orjson.loads(text)
        ]
    return found
