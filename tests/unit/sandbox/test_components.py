from pathlib import Path

from pergola.api.objects import maps_at
from pergola.kube.yaml import parse
from pergola.sandbox.components import (
    ALL,
    API_ONLY,
    APISERVER,
    BIN_PACKING,
    ETCD,
    Layout,
    commands,
    scheduler_configuration,
)

LAYOUT = Layout(Path("/run/sandbox-x"), 4321)
BINARIES = {name: Path("/bin") / name for name in ALL}


def test_components_start_in_dependency_order() -> None:
    reversed_order = tuple(reversed(ALL))

    assert [c.component for c in commands(reversed_order, LAYOUT, BINARIES)] == list(ALL)


def test_only_the_chosen_components_are_started() -> None:
    assert [c.component for c in commands(API_ONLY, LAYOUT, BINARIES)] == [ETCD, APISERVER]


def test_nothing_listens_beyond_loopback() -> None:
    etcd, apiserver, *others = (c.line for c in commands(ALL, LAYOUT, BINARIES))

    listening = [flag.partition("=")[2] for flag in etcd if flag.startswith("--listen")]
    assert all(address.startswith("unix:///run/sandbox-x/") for address in listening)
    assert len(listening) == 2
    assert "--bind-address=127.0.0.1" in apiserver
    assert all("--secure-port=0" in line for line in others[:2])


def test_extra_api_server_flags_come_last_and_override_others() -> None:
    _, apiserver = commands(API_ONLY, LAYOUT, BINARIES, ("--v=6",))

    assert apiserver.line[0] == "/bin/kube-apiserver"
    assert apiserver.line[-1] == "--v=6"


def test_a_file_of_authorizers_replaces_the_authorization_mode() -> None:
    file = "--authorization-config=/authorizers.yaml"
    _, usual = commands(API_ONLY, LAYOUT, BINARIES)
    _, own = commands(API_ONLY, LAYOUT, BINARIES, (file,))

    assert "--authorization-mode=RBAC" in usual.line
    assert [flag for flag in own.line if flag.startswith("--authorization")] == [file]


def test_one_scheduler_takes_the_pods_of_both_profiles() -> None:
    found = parse(scheduler_configuration(LAYOUT).encode())

    assert isinstance(found, dict)
    assert [each["schedulerName"] for each in maps_at(found, "profiles")] == [
        "default-scheduler",
        BIN_PACKING,
    ]
