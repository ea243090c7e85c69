"""Adjustments of programs that run without a container."""

from pathlib import Path

import pytest

from pergola.kube.yaml import parse
from pergola.sandbox.components import ETCD
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER, LANDSCAPE
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.programs import (
    OPTIONAL,
    OWN_RESOURCE_MANAGER,
    REQUIRED,
    NodeEnvironment,
    adapt_file,
    built_program,
    program_of,
    programs,
    repositories,
)

PLACE = Place(Path("/here"), "127.80.1.2", {"/srv/ca": Path("/here/srv/ca")})
SHARED = NodeEnvironment(Path("/node"), Path("/egress.yaml"), "http://127.0.0.1:1")
PLAIN = OWN_RESOURCE_MANAGER["gardener-resource-manager"]
BUILT = {name: Path("/bin") / name for name in (*REQUIRED, *OPTIONAL)}
PROGRAMS = programs(BUILT)


def test_an_api_server_listens_on_its_own_address_and_reaches_etcd_by_name() -> None:
    args = ("--secure-port=443", "--bind-address=::", "--etcd-servers=https://etcd-client:2379")
    adapted = PROGRAMS["kube-apiserver"].adapt(args, PLACE, SHARED)
    assert adapted[:3] == ("--secure-port=10443", *args[1:])
    assert "--bind-address=127.80.1.2" in adapted[3:]
    assert "--egress-selector-config-file=/egress.yaml" in adapted


def test_an_etcd_listens_on_its_own_address_and_a_socket() -> None:
    args = (
        "--listen-client-urls=https://0.0.0.0:2379",
        "--advertise-client-urls=https://etcd-client:2379",
    )
    adapted = PROGRAMS["etcd"].adapt(args, PLACE, SHARED)
    socket = "unix:///node/etcd-client.sock"
    assert adapted[0] == f"--listen-client-urls=https://127.80.1.2:2379,{socket}"


def test_an_extension_listens_on_its_own_address() -> None:
    args = (
        *("extension", "admission", "aws", "--metrics-bind-address=:8080"),
        "--health-bind-address=0",
        "--webhook-config-server-port=443",
    )
    assert PROGRAMS["pergola"].adapt(args, PLACE, SHARED) == (
        *("extension", "admission", "aws", "--metrics-bind-address=127.80.1.2:8080"),
        "--health-bind-address=0",
        "--webhook-config-server-port=10443",
        "--webhook-config-server-host=127.80.1.2",
    )


def test_a_gardener_api_server_uses_the_socket_of_its_etcd() -> None:
    args = (
        "--etcd-servers=https://etcd-client:2379",
        "--etcd-cafile=/srv/ca/bundle.crt",
        "--secure-port=8443",
    )
    adapted = PROGRAMS["gardener-apiserver"].adapt(args, PLACE, SHARED)
    assert adapted == (
        "--etcd-servers=unix:///node/etcd-client.sock",
        "--secure-port=8443",
        "--bind-address=127.80.1.2",
    )


def test_only_programs_without_another_way_use_the_proxy_of_the_node() -> None:
    with_seed = programs({name: Path("/bin") / name for name in (*REQUIRED, *LANDSCAPE)})
    proxied = {name for name, program in with_seed.items() if program.is_proxied}
    assert proxied == {"gardener-apiserver", "gardenlet", "pergola"}


def test_the_original_admission_controller_replaces_its_stand_in() -> None:
    name = "gardener-admission-controller"
    original = programs({name: Path("/bin") / name})[name]
    assert original.line == (f"/bin/{name}",)
    assert PROGRAMS[name].line != original.line


def test_kubeconfigs_use_the_tunnel() -> None:
    content = b"""{"kind": "Config", "clusters": [{"name": "a", "cluster": {"server": "https://x"}}],
    "users": [{"name": "a", "user": {"tokenFile": "/srv/ca/token"}}]}"""
    adapted = parse(adapt_file(content, PLACE, SHARED, PLAIN))
    assert isinstance(adapted, dict)
    assert adapted["clusters"] == [
        {"name": "a", "cluster": {"server": "https://x", "proxy-url": SHARED.proxy}}
    ]
    assert adapted["users"] == [{"name": "a", "user": {"tokenFile": "/here/srv/ca/token"}}]


def test_the_servers_of_a_component_listen_on_its_address() -> None:
    content = b"kind: XConfiguration\nserver:\n  metrics: {port: 8080}\n  webhooks: {port: 10250}\n"
    adapted = parse(adapt_file(content, PLACE, SHARED, PLAIN))
    assert isinstance(adapted, dict)
    assert adapted["server"] == {
        "metrics": {"port": 8080, "bindAddress": "127.80.1.2"},
        "webhooks": {"port": 10250, "bindAddress": "127.80.1.2"},
    }


@pytest.mark.parametrize(
    ("target", "kubeconfig"),
    [
        ("{kubeconfig: ''}", "/here/in-cluster.kubeconfig"),
        ("{kubeconfig: /srv/ca/x}", "/here/srv/ca/x"),
    ],
)
def test_a_target_without_a_kubeconfig_is_the_cluster_of_the_pod(
    target: str, kubeconfig: str
) -> None:
    content = f"kind: X\nserver: {{}}\ntargetClientConnection: {target}\n".encode()
    adapted = parse(adapt_file(content, PLACE, SHARED, PLAIN))
    assert isinstance(adapted, dict)
    assert adapted["targetClientConnection"] == {"kubeconfig": kubeconfig}


@pytest.mark.parametrize(
    ("program", "arg", "adapted"),
    [
        ("kube-apiserver", "--secure-port=443", "--secure-port=20001"),
        ("kube-controller-manager", "--secure-port=443", "--secure-port=20001"),
        ("gardener-apiserver", "--secure-port=443", "--secure-port=20001"),
        ("etcd", "--listen-peer-urls=http://0.0.0.0:443", "--listen-peer-urls=http://127.1:20001"),
        ("etcd-backup-restore", "--port=443", "--port=20001"),
        ("etcd-backup-restore", "--address=0.0.0.0", "--address=127.1"),
    ],
)
def test_ports_may_have_other_numbers(program: str, arg: str, adapted: str) -> None:
    place = Place(Path("/here"), "127.1", ports={443: 20001})
    args = (arg, "--advertise-client-urls=https://etcd-client:443")
    assert adapted in PROGRAMS[program].adapt(args, place, SHARED)
    configuration = adapt_file(b"kind: X\nserver:\n  webhooks: {port: 443}\n", place, SHARED, PLAIN)
    assert b"port: 20001" in configuration


def test_a_port_of_zero_stays_zero() -> None:
    """Programs in Go write zero for a port that is not set."""
    content = b"kind: X\nserver:\n  metrics: {bindAddress: '', port: 0}\n"
    assert b"port: 0" in adapt_file(content, PLACE, SHARED, PLAIN)
    assert PLACE.port(0) == 0


def test_other_files_keep_their_bytes() -> None:
    for content in (b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\n", b"kind: Policy  # comment\n"):
        assert adapt_file(content, PLACE, SHARED, PLAIN) == content


def test_pergola_runs_as_the_original_resource_manager() -> None:
    ((name, program),) = OWN_RESOURCE_MANAGER.items()
    (repository, *_) = repositories([name])
    assert program_of({"image": f"{repository}:v1"}, OWN_RESOURCE_MANAGER) is program
    assert program.line[-1] == "resource-manager"
    assert program.adapt(("--config=x",), PLACE, SHARED) == ("--config=x",)


def test_the_image_selects_the_program_of_a_container() -> None:
    for repository in repositories(PROGRAMS):
        assert program_of({"image": f"{repository}:v1"}, PROGRAMS) in PROGRAMS.values()
    assert program_of({"image": "registry.k8s.io/pause:3.10"}, PROGRAMS) is None


def test_a_program_may_be_for_one_tag() -> None:
    [repository, *_] = repositories([f"{ETCD}:v1"])
    programs = {**PROGRAMS, f"{ETCD}:v1": built_program(ETCD, Path("/previous"))}
    assert program_of({"image": f"{repository}:v1"}, programs) is programs[f"{ETCD}:v1"]
    assert program_of({"image": f"{repository}:v2"}, programs) is PROGRAMS[ETCD]
    assert program_of({"image": "example.org/unknown"}, PROGRAMS) is None


def test_a_program_with_a_default_target_gets_the_cluster_of_its_pod() -> None:
    original = programs({GARDENER_RESOURCE_MANAGER: Path("/bin/manager"), **BUILT})[
        GARDENER_RESOURCE_MANAGER
    ]
    content = b"kind: X\nserver: {}\n"
    assert b"targetClientConnection" not in adapt_file(content, PLACE, SHARED, PLAIN)
    found = parse(adapt_file(content, PLACE, SHARED, original))
    assert isinstance(found, dict)
    assert found["targetClientConnection"] == {"kubeconfig": str(PLACE.access)}
