"""The changelog mentions every change of the library's public surface."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tools import declarations, surface

ROOT: Final = Path(__file__).parents[3]


def test_the_record_has_the_names_and_signatures_of_the_source() -> None:
    command = [sys.executable, "-m", "tools.surface", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_changelog_must_mention_a_changed_signature() -> None:
    old = {"pergola.flow.run": "def run(graph: Graph)", "pergola.flow.Task": "class Task()"}
    new = {"pergola.flow.run": "def run(graph: Graph, *, again: bool)"}
    changelog = "# Changelog\n\n## Unreleased\n\n- `pergola.flow.run` runs again.\n\n## 1.0\n"

    text = surface.advice(old, new, changelog)

    assert surface.changed(old, new) == ["pergola.flow.Task", "pergola.flow.run"]
    assert "1. Under Unreleased in CHANGELOG.md" in text
    assert "of `pergola.flow.Task`, in backticks." in text
    assert "2. Run `.venv/bin/python -m tools.surface`" in text
    assert "+    def run(graph: Graph, *, again: bool)" in text


def test_the_section_of_an_earlier_release_does_not_count() -> None:
    changelog = "# Changelog\n\n## Unreleased\n\n## 1.0\n\n- `pergola.flow.run` is new.\n"

    assert surface.unmentioned(["pergola.flow.run"], changelog) == ["pergola.flow.run"]


def test_before_the_first_release_no_change_has_to_be_mentioned() -> None:
    assert surface.unmentioned(["pergola.flow.run"], "# Changelog\n\n## 0.1.0\n") == []


def test_mentioning_a_room_covers_its_names() -> None:
    changelog = "# Changelog\n\n## Unreleased\n\n- `pergola.flow` is new.\n"

    assert surface.unmentioned(["pergola.flow.run", "pergola.kube.load"], changelog) == [
        "pergola.kube.load"
    ]


def test_a_folder_without_source_does_not_hide_the_module_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declarations, "SOURCE", tmp_path)
    (tmp_path / "room" / "__pycache__").mkdir(parents=True)
    module = tmp_path / "room.py"
    module.touch()

    assert declarations.path_of("room") == module


def test_a_record_is_read_as_it_was_written() -> None:
    found = surface.surface()

    assert surface.parse(surface.render(found)) == found


def test_methods_that_a_class_inherits_are_part_of_its_surface() -> None:
    controller = surface.surface()["pergola.runtime.Controller"]

    assert "async def synced(self)" in controller
    assert "watches: Iterable[Watch[Any, K]]" in controller
