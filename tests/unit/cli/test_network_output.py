"""The output of `pergola network`, and the files that it writes."""

import stat
from pathlib import Path

import pytest

from pergola.cli.network.file import write_secretly
from pergola.cli.network.progress import shown, text_of
from pergola.cli.network.status import described, print_one
from pergola.extension_api.caller import Progress


def test_progress_is_one_line_with_the_reason() -> None:
    assert text_of(Progress(40, "Rolling out")) == "40% Rolling out"
    assert text_of(Progress(0, "no [one]", "it is dead")) == "0% no [one] (it is dead)"


def test_without_a_terminal_each_progress_is_printed_on_a_new_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown("Network a/b") as report:
        report(Progress(1, "Reconciling the Network"))
        report(Progress(40, "Rolling out"))
    assert capsys.readouterr().out == (
        "Network a/b: 1% Reconciling the Network\nNetwork a/b: 40% Rolling out\n"
    )


def test_a_terminal_shows_a_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with shown("Network a/b") as report:
        report(Progress(40, "Rolling [out]", "slowly"))
    said = capsys.readouterr().out
    assert "40%" in said
    assert "Rolling [out] (slowly)" in said


def test_a_state_file_is_readable_only_by_its_owner_even_if_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text("old")
    path.chmod(0o644)
    write_secretly(path, {"kind": "ShootState"})
    assert path.read_text() == "kind: ShootState\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_omits_empty_fields(capsys: pytest.CaptureFixture[str]) -> None:
    network = {
        "metadata": {"name": "demo", "namespace": "shoot--a--demo"},
        "spec": {"type": "gardenet"},
        "status": {
            "conditions": [
                {"type": "SystemComponentsHealthy", "status": "False", "message": "1 of 2 [nodes]"}
            ]
        },
    }
    print_one(described(network, "nothing was done", ""))
    said = capsys.readouterr().out
    assert "Network shoot--a--demo/demo" in said
    assert "no: nothing was done" in said
    assert "False: 1 of 2 [nodes]" in said
    assert "last error" not in said
