"""`pergola network -f -`."""

import io
import sys

import pytest

from pergola.cli import app
from pergola.cli.network.file import NetworkFileError


@pytest.mark.parametrize("command", ["reconcile", "wait", "migrate", "restore", "delete"])
def test_a_dash_means_standard_input(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Shoot\n")))
    said = "^- contains no Network of extensions.gardener.cloud/v1alpha1"
    with pytest.raises(NetworkFileError, match=said):
        app(["network", command, "-f", "-"])
