from pathlib import Path

from pergola.sandbox.components import ALL, API_ONLY, APISERVER, ETCD, Layout, commands

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
