"""A command line imports what it runs, and no other command."""

import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from cyclopts import App

from pergola.cli import app
from pergola.cli.commands import COMMANDS
from pergola.kube.yaml import dump
from pergola.pki import Token, kubeconfig

_PRINT = """
import sys
from pergola.cli import main
sys.argv = ["pergola", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""
TARGETS = {name: command.target.partition(":")[0] for name, command in COMMANDS.items()}
SHARED = {TARGETS["completion"], TARGETS["unpack"]}
"""The modules of commands that others use as well."""
MOST = 120
"""The maximum number of modules of ours that an explanation of a ConfigMap begins with."""


@cache
def imported(*arguments: str) -> frozenset[str]:
    """Return the modules that a command line imports."""
    ran = subprocess.run(
        (sys.executable, "-c", _PRINT, *arguments), capture_output=True, text=True, check=True
    )
    return frozenset(ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--version",)])
def test_the_overview_imports_no_command(arguments: tuple[str, ...]) -> None:
    modules = imported(*arguments)
    assert not modules & ({*TARGETS.values()} - SHARED)
    assert not modules & {"aiohttp", "asyncio", "cryptography", "markdown_it", "structlog"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_no_other_and_no_library_before_it_runs(name: str) -> None:
    modules = imported(name, "--help")
    assert not modules & ({*TARGETS.values()} - SHARED - {TARGETS[name]})
    assert not modules & {"aiohttp", "cryptography", "structlog"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_help_of_a_command_says(name: str) -> None:
    text = app[name].help or ""
    [first, *_] = re.split(r"(?<=[.])\s", " ".join(text.split()))
    assert COMMANDS[name].summary == first


def test_targets_are_functions_or_applications() -> None:
    for name, (target, _) in COMMANDS.items():
        module, _, attribute = target.partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, App) or callable(found), name


def test_why_imports_no_controller_that_it_does_not_ask(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(dump(kubeconfig("a", "http://127.0.0.1:9", b"", Token("t"))))
    modules = imported("why", "configmap/a", "--kubeconfig", str(nowhere))
    assert "pergola.why.engine" in modules
    assert not modules & {"aiohttp.web", "prometheus_client", "structlog"}
    ours = [each for each in modules if each.startswith("pergola.")]
    controllers = ("pergola.extensions.", "pergola.operator.", "pergola.resource_manager.")
    assert not [each for each in ours if each.startswith(controllers)]
    assert len(ours) <= MOST
