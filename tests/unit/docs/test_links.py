"""Every link of a page leads to a file or heading that exists."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest

ROOT: Final = Path(__file__).parents[3]
FOLDERS: Final = ("bench", "charts", "docs", "examples")
UNPACKED: Final = ("charts", "docs", "examples")
_CODE: Final = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_OUTSIDE: Final = re.compile(r"[a-z]+:")


def pages() -> list[Path]:
    """Return all pages of the repository."""
    found = [*ROOT.glob("*.md")]
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links into this repository."""
    for target in _LINK.findall(_CODE.sub("", page.read_text())):
        if not _OUTSIDE.match(target):
            yield target


@cache
def anchors(page: Path) -> set[str]:
    """Return the fragments of a page: its headings in lower case, with hyphens for spaces."""
    found: set[str] = set()
    for title in re.findall(r"^#+ +(.*?) *$", _CODE.sub("", page.read_text()), flags=re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


def problem(page: Path, target: str) -> str | None:
    """Return the problem of a link, or None."""
    path, _, fragment = target.partition("#")
    file = page.parent / unquote(path) if path else page
    if not file.exists():
        return f"{target}: no such file"
    if fragment and file.suffix == ".md" and fragment not in anchors(file):
        return f"{target}: no such heading; there are {sorted(anchors(file))}"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_an_existing_target(page: Path) -> None:
    problems = [text for target in links(page) if (text := problem(page, target))]

    assert problems == []


def test_a_link_to_a_missing_heading_is_detected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `title`: here\n\n## Same\n\n## Same\n\n```sh\n# no heading\n```\n")

    assert anchors(page) == {"a-title-here", "same", "same-1"}
    assert problem(page, "#same-1") is None
    assert "no such heading" in (problem(page, "page.md#no-heading") or "")
    assert "no such file" in (problem(page, "other.md") or "")


def test_examples_link_only_to_what_is_unpacked_with_them() -> None:
    """`pergola unpack` writes these folders, so the links work for users of the wheel, too."""
    for page in (ROOT / "examples").rglob("*.md"):
        for target in links(page):
            path = (page.parent / unquote(target.partition("#")[0])).resolve()
            assert path.relative_to(ROOT).parts[0] in UNPACKED, f"{page}: {target}"
