"""The place of a pod's process on this machine."""

import random
import socket
from pathlib import Path

import pytest

from pergola.sandbox.process_node.place import Place, free_place, pod_address

SEED = 1
PATHS = ("/srv/ca", "/srv/ca-client", "/etc/config")
PLACE = Place(Path("/here"), "127.80.1.2", {path: Path(f"/here{path}") for path in PATHS})


@pytest.mark.parametrize(
    ("text", "localised"),
    [
        ("--client-ca-file=/srv/ca/bundle.crt", "--client-ca-file=/here/srv/ca/bundle.crt"),
        ("--file=/srv/ca-client/tls.crt", "--file=/here/srv/ca-client/tls.crt"),
        ("unix:///srv/ca/api.sock", "unix:///here/srv/ca/api.sock"),
        ("https:///srv/ca", "https:///srv/ca"),
        ("/srv/ca/a.crt,/etc/config/b.key:*.x", "/here/srv/ca/a.crt,/here/etc/config/b.key:*.x"),
        ('path: "/etc/config"', 'path: "/here/etc/config"'),
        ("/srv/cat", "/srv/cat"),
        ("/other/srv/ca/x", "/other/srv/ca/x"),
        ("https://host/srv/ca", "https://host/srv/ca"),
    ],
)
def test_only_paths_below_mounts_become_local(text: str, localised: str) -> None:
    assert PLACE.localised(text) == localised


def test_a_container_without_mounts_keeps_its_paths() -> None:
    assert Place(Path("/here"), "127.80.1.2").localised("/srv/ca") == "/srv/ca"


def test_users_may_not_bind_privileged_ports() -> None:
    _, ports = free_place((443, 1023, 1024, 10250), random.Random(SEED))  # noqa: S311 - addresses
    assert ports == {443: 10443, 1023: 11023, 1024: 1024, 10250: 10250}
    assert PLACE.port(443) == 10443


def test_an_address_with_a_port_in_use_is_skipped() -> None:
    taken, _ = free_place([2379], random.Random(SEED))  # noqa: S311 - addresses
    with socket.create_server((taken, 2379)):
        other, ports = free_place([2379], random.Random(SEED))  # noqa: S311 - addresses
    assert taken != other
    assert taken.startswith("127.")
    assert ports == {2379: 2379}


def test_a_port_that_is_in_use_on_all_addresses_gets_another_number() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:  # noqa: S104 - takes all addresses
        port = everywhere.getsockname()[1]
        address, ports = free_place([port, 2379], random.Random(SEED))  # noqa: S311 - addresses
    assert ports[port] not in (port, 2379)
    assert ports[2379] == 2379
    with socket.create_server((address, ports[port])):
        pass
    assert Place(Path("/here"), address, ports=ports).port(port) == ports[port]


def test_a_process_may_serve_a_port_that_its_pod_does_not_list() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:  # noqa: S104 - takes all addresses
        port = everywhere.getsockname()[1]
        place = Place(Path("/here"), "127.80.1.2", ports={2379: 2379})
        chosen = place.claim(port)
    assert chosen not in (port, 2379)
    assert place.claim(port) == place.port(port) == place.claim(chosen) == chosen
    assert place.claim(0) == 0


def test_pods_have_their_own_stable_addresses() -> None:
    assert pod_address("a") == pod_address("a") != pod_address("b")
    assert pod_address("a").startswith("10.65.")
