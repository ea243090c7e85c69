from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pergola.cli.sandbox import app
from pergola.sandbox import binaries
from pergola.sandbox.components import ALL, APISERVER, ETCD, KWOK
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import (
    CLUSTER_API,
    CLUSTER_API_CONFIG,
    CLUSTER_API_MANAGER,
    MODULES,
    NODE_MODULES,
    SANDBOX,
    kubernetes_version,
)
from pergola.sandbox.node import requirements
from pergola.sandbox.on_demand import ETCD_WRAPPER, ON_DEMAND


def install(directory: Path, *names: str, says: str = "") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (directory / name).chmod(0o755)
    return directory


def test_the_user_provided_directory_takes_precedence(tmp_path: Path) -> None:
    given = install(tmp_path / "given", *ALL)
    environ = {
        "PERGOLA_SANDBOX_BIN": str(given),
        "KUBEBUILDER_ASSETS": str(install(tmp_path / "assets", *ALL, says=kubernetes_version())),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    install(binaries.place(SANDBOX, environ), *ALL)

    assert binaries.find(ALL, environ=environ) == {name: given / name for name in ALL}


def test_programs_missing_from_the_assets_come_from_the_cache(tmp_path: Path) -> None:
    assets = install(tmp_path / "assets", ETCD, APISERVER, says=kubernetes_version())
    environ = {"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(tmp_path)}
    cached = install(binaries.place(SANDBOX, environ), *ALL)

    found = binaries.find((ETCD, APISERVER, KWOK), environ=environ)

    assert found == {ETCD: assets / ETCD, APISERVER: assets / APISERVER, KWOK: cached / KWOK}


@pytest.mark.parametrize("says", ["Kubernetes v1.31.0", "nonsense"])
def test_assets_of_another_kubernetes_version_are_ignored(tmp_path: Path, says: str) -> None:
    assets = install(tmp_path / "assets", *ALL, says=says)
    environ = {"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(tmp_path)}

    assert binaries.present(ALL, environ) == {}


def test_a_file_that_is_not_executable_is_ignored(tmp_path: Path) -> None:
    given = install(tmp_path / "given", ETCD)
    (given / ETCD).chmod(0o644)
    environ = {"PERGOLA_SANDBOX_BIN": str(given), "XDG_CACHE_HOME": str(tmp_path)}

    assert binaries.present((ETCD,), environ) == {}


def test_a_missing_user_provided_directory_is_an_error(tmp_path: Path) -> None:
    environ = {"PERGOLA_SANDBOX_BIN": str(tmp_path / "typo"), "XDG_CACHE_HOME": str(tmp_path)}

    with pytest.raises(
        SandboxError, match=r"PERGOLA_SANDBOX_BIN is .*typo, which is not a directory"
    ):
        binaries.present(ALL, environ)


def test_the_cache_location_follows_the_xdg_specification() -> None:
    assert binaries.cache({"HOME": "/home/me"}) == Path("/home/me/.cache/pergola/sandbox")
    assert binaries.cache({"HOME": "/home/me", "XDG_CACHE_HOME": "/big"}) == Path(
        "/big/pergola/sandbox"
    )
    assert binaries.cache({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}) == Path(
        "/home/me/.cache/pergola/sandbox"
    )


def test_the_cache_requires_a_home_directory() -> None:
    with pytest.raises(SandboxError, match="neither HOME nor XDG_CACHE_HOME is set"):
        binaries.cache({})


def test_each_module_has_its_own_folder_in_the_cache(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    install(binaries.place(SANDBOX, environ), CLUSTER_API_MANAGER)
    assert binaries.present((CLUSTER_API_MANAGER,), environ) == {}

    own = install(binaries.place(CLUSTER_API, environ), CLUSTER_API_MANAGER)
    assert binaries.present((CLUSTER_API_MANAGER, ETCD), environ) == {
        CLUSTER_API_MANAGER: own / CLUSTER_API_MANAGER
    }


def test_a_program_that_is_built_on_demand_is_found_like_any_other(tmp_path: Path) -> None:
    given = install(tmp_path / "given", ETCD_WRAPPER)
    environ = {"PERGOLA_SANDBOX_BIN": str(given), "XDG_CACHE_HOME": str(tmp_path)}

    assert binaries.find((ETCD_WRAPPER,), environ=environ) == {ETCD_WRAPPER: given / ETCD_WRAPPER}


def test_a_folder_is_found_like_a_program(tmp_path: Path) -> None:
    given = tmp_path / "given"
    (given / CLUSTER_API_CONFIG).mkdir(parents=True)
    environ = {"PERGOLA_SANDBOX_BIN": str(given), "XDG_CACHE_HOME": str(tmp_path)}

    assert binaries.find((CLUSTER_API_CONFIG,), environ=environ) == {
        CLUSTER_API_CONFIG: given / CLUSTER_API_CONFIG
    }


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ALL),
        (["--all"], [part for m in MODULES if m not in NODE_MODULES for part in m.parts]),
        (["--node"], [*ALL, *(part for module in NODE_MODULES for part in module.parts)]),
        (["--all", "--node"], [part for module in MODULES for part in module.parts]),
    ],
)
def test_the_command_builds_everything_only_on_request(
    options: list[str],
    parts: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(requirements, "check", lambda: None)
    everything = [part for module in MODULES for part in module.parts]
    monkeypatch.setenv("PERGOLA_SANDBOX_BIN", str(install(tmp_path, *everything)))
    app(["build", *options], result_action="return_value")
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed == [[part, str(tmp_path / part)] for part in parts]


def test_part_names_are_unique_across_modules() -> None:
    parts = [part for module in (*MODULES, *ON_DEMAND) for part in module.parts]
    assert len(parts) == len(set(parts))


def test_the_key_changes_with_the_versions(tmp_path: Path) -> None:
    module = replace(SANDBOX, directory=tmp_path)
    (tmp_path / "go.mod").write_text("one")
    (tmp_path / "go.sum").write_text("sums")
    first = module.key
    (tmp_path / "go.mod").write_text("two")

    assert len(first) == 16
    assert module.key != first
