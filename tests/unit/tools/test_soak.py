"""The parts of the soak: which one belongs to a commit, and what a machine lacks for it."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import soak
from tools.soak import HOURS, PARTS, ROOT, Part, cases_of, of_commit

hashes = st.text("0123456789abcdef", min_size=40, max_size=40)


@given(commit=hashes)
def test_a_commit_always_gets_the_same_part(commit: str) -> None:
    assert of_commit(commit) == of_commit(commit.upper())
    assert of_commit(commit) in PARTS


def test_each_part_but_that_of_hours_belongs_to_some_commits() -> None:
    drawn = {of_commit(f"{number:040x}") for number in range(len(PARTS))}
    assert drawn == PARTS.keys() - {HOURS}


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


def test_a_commit_of_a_long_part_gets_a_portion_of_its_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time of CI does not suffice for all of them."""
    given: list[tuple[str, Sequence[str]]] = []

    def run(name: str, tests: Sequence[str] = ()) -> int:
        given.append((name, tests))
        return 0

    parts = {"long": Part("a part", (), portion=2), "short": Part("a part", ())}
    monkeypatch.setattr(soak, "PARTS", parts)
    monkeypatch.setattr(soak, "run", run)
    monkeypatch.setattr(soak, "cases_of", lambda _: ["a", "b", "c"])
    for number in range(6):
        assert soak.run_of_commit(f"{number:040x}") == 0
    portions = [tests for name, tests in given if name == "long"]
    assert portions == [["a", "b"], ["b", "c"], ["c", "a"]]
    assert [tests for name, tests in given if name == "short"] == [()] * 3


def test_the_cases_of_a_part_are_found() -> None:
    found = cases_of("interpreters")
    assert found
    assert all("test_other_interpreters.py::test_" in each for each in found)


@pytest.mark.parametrize("text", ["", "two", "0", "-1", "nan", "inf"])
def test_a_number_of_hours_that_makes_no_sense_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["soak", f"--hours={text}"])
    with pytest.raises(SystemExit):
        soak.main()
    assert f'"{text}" is not a number of hours, such as 2 or 0.5' in capsys.readouterr().err
