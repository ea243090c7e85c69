"""Builds the documentation site: `python -m tools.site FOLDER [--repository URL]`.

The pages are those of `docs/`, with those at the root of the repository, a reference of the
library, and a page for each kind. With the address of the repository, each page of it has a link to
its source. `docs/README.md` is the start page; its links are the navigation.

Sphinx reads a copy, in which links to files outside of the site are names of files. Any warning
fails the build, such as a link that leads nowhere, and so does a page that would load something
from another host.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola import __version__
from tools.kind_pages import definitions, kind_page, page_name
from tools.reference_pages import room_page
from tools.surface import ROOMS, ROOT

DOCS: Final = ROOT / "docs"
START: Final = "README.md"
PROJECT: Final = {
    "AGENTS.md": "project/map.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "THREAT_MODEL.md": "project/threat-model.md",
    "docs/README.md": "index.md",
}
"""Pages that have another place on the site than in the repository."""
LIBRARY: Final = "reference/library"
KINDS: Final = "reference/kinds"
CONFIGURATION: Final = f"""\
project = "Pergola"
extensions = ["myst_parser", "sphinx_copybutton"]
html_theme = "furo"
html_title = "Pergola {__version__}"
html_favicon = "favicon.svg"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
myst_heading_anchors = 4
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
"""
FAVICON: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="6" fill="#2f6b4f"/>
<path d="M5 10h22M8 10v16M24 10v16M8 14l4-4M24 14l-4-4" stroke="#fff" stroke-width="3" fill="none"/>
</svg>
"""
"""Two posts and a beam."""
_LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_LOADED: Final = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]+"
)


def place_of(page: str) -> str | None:
    """Return the place of a file of the repository on the site; None if it is not on it."""
    if page in PROJECT:
        return PROJECT[page]
    folder, _, rest = page.partition("/")
    return rest if folder == "docs" and rest.endswith(".md") else None


def adapted(text: str, page: str) -> str:
    """Return a page's text with its links as they are on the site."""
    here = place_of(page) or page

    def link(match: re.Match[str]) -> str:
        label, target = match["text"], match["target"]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, hash_sign, fragment = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path))  # noqa: PTH118, PTH120
        place = place_of(file)
        if place is not None:
            relative = os.path.relpath(place, os.path.dirname(here) or ".")  # noqa: PTH120
            return f"[{label}]({relative}{hash_sign}{fragment})"
        return f"`{file}`" if label.strip("`") == file else f"{label} (`{file}`)"

    blocks = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in blocks)


def navigation(start: str) -> Iterator[str]:
    """Yield a table of contents for each section of the start page, in the order of its links."""
    for section in start.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        pages = [match["target"] for match in _LINK.finditer(section)]
        pages = [page.removesuffix(".md") for page in pages if page.endswith(".md")]
        listed = "\n".join(dict.fromkeys(pages))
        yield f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"


def assemble(folder: Path, repository: str = "") -> None:
    """Write what Sphinx reads into an empty folder.

    Args:
        repository: The address of the repository; empty for no links to it.
    """
    (folder / "conf.py").write_text(CONFIGURATION)
    (folder / "favicon.svg").write_text(FAVICON)
    pages = [str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md")]
    for page in {*pages, *PROJECT}:
        place = folder / (place_of(page) or page)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = adapted((ROOT / page).read_text(), page)
        place.write_text(f"{text}\n{_source_link(page, repository)}")
    for image in DOCS.glob("*/images/*"):
        place = folder / image.relative_to(DOCS)
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(image, place)
    for room in ROOMS:
        place = folder / LIBRARY / f"{room}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text(room_page(room))
    (folder / KINDS).mkdir()
    kinds = definitions()
    for crd in kinds:
        (folder / KINDS / f"{page_name(crd)}.md").write_text(kind_page(crd))
    _append(folder / "index.md", *navigation((folder / "index.md").read_text()))
    _append(folder / "index.md", unlisted(folder))
    rooms = "\n".join(f"library/{room}" for room in ROOMS)
    _append(folder / f"{LIBRARY}.md", f"```{{toctree}}\n:hidden:\n\n{rooms}\n```\n")
    pages = [f"kinds/{page_name(crd)}" for crd in kinds]
    listed = "\n".join(pages)
    _append(folder / f"{KINDS}.md", f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")
    decisions = (folder / "decisions").glob("0*.md")
    listed = "\n".join(sorted(page.stem for page in decisions))
    _append(folder / "decisions" / "README.md", f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")


def _source_link(page: str, repository: str) -> str:
    return f"\n[Source of this page]({repository}/blob/main/{page})\n" if repository else ""


def unlisted(folder: Path) -> str:
    """Return a table of contents with the pages of `docs/` that the start page does not name."""
    start = (folder / "index.md").read_text()
    places = sorted(str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.glob("*/*.md"))
    left = [each for each in places if each not in start and not each.startswith("decisions/")]
    if not left:
        return ""
    listed = "\n".join(left)
    return f"```{{toctree}}\n:hidden:\n:caption: More\n\n{listed}\n```\n"


def _append(page: Path, *parts: str) -> None:
    page.write_text("\n".join([page.read_text(), *parts]))


def foreign(site: Path) -> list[str]:
    """Return what the pages of a site would load from other hosts."""
    return [
        f"{page.relative_to(site)}: {found}"
        for page in sorted(site.rglob("*.html"))
        for found in _LOADED.findall(page.read_text())
    ]


def main(arguments: list[str]) -> int:
    """Build the site into a folder, which is emptied first; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.site")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repository", default="", help="its address, for links to sources")
    parsed = parser.parse_args(arguments)
    target = parsed.folder.resolve()
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as source:
        assemble(Path(source), parsed.repository)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", source, str(target)]
        built = subprocess.run(command, check=False)
    for problem in (found := foreign(target)):
        print(problem, file=sys.stderr)
    if built.returncode == 0 and not found:
        print(f"{target / 'index.html'} is the start page")
    return built.returncode or len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
