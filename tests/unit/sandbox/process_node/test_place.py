"""The place of a pod's process on this machine."""

import random
import socket
from pathlib import Path

import pytest

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.process_node.place import Place, free_address, local_port, pod_address

SEED = 1
PLACE = Place(Path("/here"), "127.80.1.2", ("/srv/ca", "/srv/ca-client", "/etc/config"))


@pytest.mark.parametrize(
    ("text", "localised"),
    [
        ("--client-ca-file=/srv/ca/bundle.crt", "--client-ca-file=/here/srv/ca/bundle.crt"),
        ("--file=/srv/ca-client/tls.crt", "--file=/here/srv/ca-client/tls.crt"),
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
    assert Place(Path("/here"), "127.80.1.2", ()).localised("/srv/ca") == "/srv/ca"


def test_only_privileged_ports_change() -> None:
    assert [local_port(port) for port in (443, 1023, 1024, 10250)] == [10443, 11023, 1024, 10250]


def test_an_address_with_a_port_in_use_is_skipped() -> None:
    taken = free_address([2379], random.Random(SEED))  # noqa: S311 - addresses
    with socket.create_server((taken, 2379)):
        other = free_address([2379], random.Random(SEED))  # noqa: S311 - addresses
    assert taken != other
    assert taken.startswith("127.")


def test_without_a_free_address_the_error_names_the_ports() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:  # noqa: S104 - takes all addresses
        port = everywhere.getsockname()[1]
        with pytest.raises(SandboxError, match=str(port)):
            free_address([port], random.Random(SEED))  # noqa: S311 - addresses


def test_pods_have_their_own_stable_addresses() -> None:
    assert pod_address("a") == pod_address("a") != pod_address("b")
    assert pod_address("a").startswith("10.65.")
