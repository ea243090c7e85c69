"""Explainers of other packages: found by entry point, and written as the page shows."""

import importlib.metadata
import re
from typing import Any

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.why import Asked, Part, Topic
from pergola.why.explainer import BrokenExplainer, Explainer, installed
from tests.support.documented import PAGES

LAKE: JsonObject = {"apiVersion": "example.org/v1", "kind": "Lake", "spec": {"river": "Inn"}}


async def _nothing(_asked: Asked, _reader: object) -> Part:
    return Part()


LAKES = (Explainer("lakes", lambda _: True, _nothing), Explainer("ponds", lambda _: True, _nothing))
NOT_ONE = "a text"


def found(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    """Let the installed packages have these entry points."""
    points = [
        importlib.metadata.EntryPoint(f"e{number}", value, "pergola.explainers")
        for number, value in enumerate(values)
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)


def test_packages_add_explainers_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, f"{__name__}:LAKES")
    assert installed() == LAKES


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (f"{__name__}:NOT_ONE", '"e0": .*NOT_ONE is not an Explainer'),
        ("no.such.module:X", '"e0" cannot be imported: ModuleNotFoundError'),
    ],
)
def test_a_broken_explainer_is_reported(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    found(monkeypatch, value)
    with pytest.raises(BrokenExplainer, match=problem):
        installed()


async def test_the_explainer_in_the_documentation_works_as_written() -> None:
    page = (PAGES / "reference/why.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own page
    lakes: Explainer = names["LAKES"]
    assert lakes.applies(LAKE)
    asked = Asked(GroupVersionKind.of(LAKE), Key("demo", "deep"), LAKE)
    part = await lakes.explain(asked, None)  # type: ignore[arg-type] # it reads nothing
    (statement,) = part.statements
    assert (statement.topic, statement.subject) == (Topic.WAITS, "River Inn")
