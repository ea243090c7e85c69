"""Records the public surface of the library: the names in each room's `__all__`, and signatures.

`tools/surface.txt` is the record. `--check` compares it with the source, and fails with what to do.
Without an argument, the record is written, but only if the changelog names every change, so that
users of the library can read there what to adapt. Nothing is imported: the source is read.
"""

import difflib
import sys
from pathlib import Path
from typing import Final

from tools.declarations import declaration, find, public_names

ROOT: Final = Path(__file__).parents[1]
RECORD: Final = ROOT / "tools" / "surface.txt"
CHANGELOG: Final = ROOT / "CHANGELOG.md"
ROOMS: Final = (
    "api",
    "api.field_errors",
    "api.schema",
    "api.typed",
    "kube",
    "runtime",
    "pki",
    "secrets_manager",
    "admission",
    "flow",
    "health",
    "manifests",
    "bundle",
    "charts",
    "cloud.aws",
    "extension_api",
    "extension_api.caller",
    "extensions",
    "extensions.control_planes",
    "externally_managed",
    "providers.networking.plugin",
    "sandbox",
    "testing",
    "testing.extension_site",
    "why",
)
"""What others may import, below `pergola`."""

_UNRELEASED: Final = "\n## Unreleased\n"

Surface = dict[str, str]
"""The declaration of each public name, by the name with its room: `pergola.flow.run`."""


def surface() -> Surface:
    """Return the declarations of all public names."""
    found: Surface = {}
    for room in (f"pergola.{each}" for each in ROOMS):
        for name in public_names(room):
            definition = find(room, name)
            if definition is None:
                raise SystemExit(f"{room}: __all__ has {name}, but the source does not define it")
            found[f"{room}.{name}"] = "\n".join(declaration(definition, name))
    return found


def render(found: Surface) -> str:
    """Return the record's text."""
    return "".join(f"{name}\n{_indented(text)}\n\n" for name, text in sorted(found.items()))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def parse(text: str) -> Surface:
    """Return the surface of a record."""
    entries = [entry.partition("\n") for entry in text.split("\n\n") if entry]
    return {
        name: "\n".join(line.removeprefix("    ") for line in lines.splitlines())
        for name, _, lines in entries
    }


def changed(old: Surface, new: Surface) -> list[str]:
    """Return the names that were added, removed, or declared differently."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def unmentioned(names: list[str], changelog: str) -> list[str]:
    """Return the names of which, and of whose rooms, Unreleased has no word in backticks.

    There are none before the first release: nobody has to know what changed since yesterday.
    """
    if _UNRELEASED not in changelog:
        return []
    unreleased = changelog.partition(_UNRELEASED)[2].partition("\n## ")[0]
    return [
        name
        for name in names
        if f"`{name}`" not in unreleased and f"`{name.rpartition('.')[0]}`" not in unreleased
    ]


def advice(old: Surface, new: Surface, changelog: str) -> str:
    """Return what changed and what to do about it; empty if nothing changed."""
    names = changed(old, new)
    if not names:
        return ""
    missing = unmentioned(names, changelog)
    steps = []
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        steps.append(
            "Under Unreleased in CHANGELOG.md, say what users have to know"
            f" of {listed}, in backticks."
        )
    steps.append("Run `.venv/bin/python -m tools.surface`, and commit tools/surface.txt.")
    numbered = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    difference = difflib.unified_diff(
        render({name: old[name] for name in names if name in old}).splitlines(),
        render({name: new[name] for name in names if name in new}).splitlines(),
        "recorded",
        "now",
        lineterm="",
    )
    return "\n".join(["The public surface of the library changed.", *numbered, "", *difference])


def main(arguments: list[str]) -> int:
    """Check the record, or write it; return the exit code."""
    old, new = parse(RECORD.read_text() if RECORD.exists() else ""), surface()
    text = advice(old, new, CHANGELOG.read_text())
    if arguments == ["--check"]:
        print(text, end="\n" if text else "")
        return 1 if text else 0
    if old and unmentioned(changed(old, new), CHANGELOG.read_text()):
        print(text)
        return 1
    RECORD.write_text(render(new))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
