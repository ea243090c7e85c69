"""The parts of the soak: which one belongs to a commit, and what a machine lacks for it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.soak import PARTS, ROOT, Part, of_commit

hashes = st.text("0123456789abcdef", min_size=40, max_size=40)


@given(commit=hashes)
def test_a_commit_always_gets_the_same_part(commit: str) -> None:
    assert of_commit(commit) == of_commit(commit.upper())
    assert of_commit(commit) in PARTS


def test_each_part_belongs_to_some_commits() -> None:
    assert {of_commit(f"{number:040x}") for number in range(len(PARTS))} == PARTS.keys()


def test_the_paths_of_each_part_exist() -> None:
    paths = [ROOT / "tests" / path for part in PARTS.values() for path in part.paths]
    assert [path for path in paths if not path.exists()] == []


def test_a_part_whose_programs_are_not_built_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PERGOLA_SANDBOX_BIN", raising=False)
    part = Part("a part", (), images=("gardener-apiserver",), programs=("promtool", "helm"))
    assert part.obstacle() == "these are not built here: gardener-apiserver, helm, promtool"


def test_a_part_without_requirements_runs_everywhere() -> None:
    assert Part("a part", ()).obstacle() is None
