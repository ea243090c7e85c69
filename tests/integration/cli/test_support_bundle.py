"""`pergola support-bundle` contains what support needs, and no value of any Secret."""

import asyncio
import base64
import json
import stat
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.support.command import SupportBundleError, support_bundle
from pergola.cli.support.needles import SHORTEST
from pergola.kube.client import Client
from pergola.kube.yaml import dump, parse_documents
from pergola.pki import Authority
from pergola.runtime.clock import SystemClock
from pergola.testing.crds import install_crds
from tests.support.dashboard_objects import bad, create_managed_resource
from tests.support.objects import secret, warning

IMAGE = "registry.example/pergola:0.1.0"
PASSWORD = 'pass "word"\\ with\nseveral <lines>'
TOKEN = "q8Zt3LmVx0Rb7YcN4KdW2HsPf9Ga5JuE"


def deployment(namespace: str) -> JsonObject:
    """Return a Deployment of Pergola without pods, with copies of Secrets."""
    container: JsonObject = {
        "name": "operator",
        "image": IMAGE,
        "command": ["pergola", "operator"],
        "env": [{"name": "PLAIN", "value": TOKEN}, {"name": "APP_PASSWORD", "value": "short"}],
    }
    volume: JsonObject = {"name": "config", "configMap": {"name": "config"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "operator",
            "namespace": namespace,
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"x": PASSWORD}),
                "note": json.dumps({"password": PASSWORD}),
            },
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "operator"}},
            "template": {
                "metadata": {"labels": {"app": "operator"}},
                "spec": {"containers": [container], "volumes": [volume]},
            },
        },
    }


def config_map(namespace: str, key: bytes) -> JsonObject:
    """Return a ConfigMap with a kubeconfig and other copies of Secrets."""
    user: JsonObject = {"client-key-data": base64.b64encode(key).decode(), "token": TOKEN}
    kubeconfig = dump({"users": [{"name": "a", "user": user}]})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": namespace},
        "data": {
            "kubeconfig": kubeconfig,
            "encoded": base64.b64encode(f"x{kubeconfig}".encode()).decode(),
            "key.pem": key.decode(),
            "settings": f"level: debug\npassword: |\n  {PASSWORD}\n",
        },
    }


@pytest.fixture
async def planted(cluster_client: Client, namespace: str) -> None:
    """Put values of Secrets wherever users and programs put them."""
    now = SystemClock().now()
    key = Authority.create("test", now, now.resolution * 10**9).pair.private
    await install_crds(cluster_client)
    hidden = secret(namespace, "hidden", password=PASSWORD, token=TOKEN, key=key.decode())
    hidden["metadata"]["annotations"] = {"x/last-applied-configuration": json.dumps(hidden["data"])}
    await cluster_client.create(hidden)
    await cluster_client.create(config_map(namespace, key))
    await cluster_client.create(deployment(namespace))
    await cluster_client.create(warning(hidden, f"cannot log in with {TOKEN}"))
    await create_managed_resource(cluster_client, Key(namespace, "web"), bad(f"bad: {PASSWORD}"))


async def bundle(
    kubeconfig: Path, path: Path, namespace: str = "", user: str = ""
) -> dict[str, str]:
    """Write an archive, and return its files by their names."""
    options = ScopeOptions(kubeconfig=kubeconfig, namespace=namespace, as_user=user)
    await asyncio.to_thread(support_bundle, file=path, cluster=options)
    with tarfile.open(path) as archive:
        members = {each.name.partition("/")[2]: archive.extractfile(each) for each in archive}
        return {name: file.read().decode() for name, file in members.items() if file}


async def values(client: Client) -> set[bytes]:
    """Return the values of all Secrets of the cluster that are not too short for a search."""
    return {
        content
        for each in await client.list(SECRET)
        for text in map_at(each, "data").values()
        if len((content := base64.b64decode(text)).strip()) >= SHORTEST
        and content.decode(errors="replace") != each["metadata"]["namespace"]
    }


@pytest.mark.usefixtures("planted")
async def test_no_file_contains_a_value_of_any_secret_of_the_cluster(
    cluster_client: Client, kubeconfig: Path, tmp_path: Path
) -> None:
    files = await bundle(kubeconfig, tmp_path / "bundle.tar.gz")
    found = await values(cluster_client)
    assert len(found) >= 3
    for name, text in files.items():
        # YAML indents, escapes and quotes strings, so its strings are searched, too.
        strings = "\0".join([name, text, *_strings(name, text)]).encode()
        for value in found:
            assert value not in strings, name
            assert base64.b64encode(value) not in strings, name
    whole = "".join(files.values())
    assert TOKEN not in whole
    assert not [line for line in whole.splitlines() if "PRIVATE KEY" in line]


def _strings(name: str, text: str) -> list[str]:
    if not name.endswith(".yaml"):
        return []
    found: list[object] = [document.value for document in parse_documents(text)]
    strings = []
    while found:
        each = found.pop()
        if isinstance(each, dict):
            found += [*each, *each.values()]
        elif isinstance(each, list):
            found += each
        elif isinstance(each, str):
            strings.append(each)
    return strings


@pytest.mark.usefixtures("planted")
async def test_support_sees_objects_events_configuration_and_names_of_secrets(
    kubeconfig: Path, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle.tar.gz"
    files = await bundle(kubeconfig, path, namespace)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "name: web" in files["objects/ManagedResource.resources.gardener.cloud.yaml"]
    assert "cannot log in with <masked " in files["cluster/Event.events.k8s.io.yaml"]
    secrets = files["cluster/Secret.yaml"]
    assert "name: hidden" in secrets
    assert "password: " in secrets
    assert "last-applied" not in secrets
    process = files[f"processes/{namespace}/operator.yaml"]
    assert IMAGE in process
    assert "level: debug" in process
    said = capsys.readouterr().out
    assert files["contents.txt"] in said
    assert f"processes/{namespace}/operator.yaml: 2 objects" in said


async def test_a_user_who_may_not_list_secrets_gets_no_archive(
    kubeconfig: Path, tmp_path: Path
) -> None:
    options = ScopeOptions(kubeconfig=kubeconfig, as_user="a-stranger")
    path = tmp_path / "bundle.tar.gz"
    with pytest.raises(SupportBundleError, match="may list Secrets in all namespaces"):
        await asyncio.to_thread(support_bundle, file=path, cluster=options)
    assert not path.exists()


@pytest.fixture
async def supporter(cluster_client: Client, namespace: str) -> AsyncIterator[str]:
    """Yield a user who may read Secrets and Deployments, and nothing else."""
    rules: list[JsonObject] = [
        {
            "apiGroups": ["", "apps"],
            "resources": ["secrets", "deployments"],
            "verbs": ["get", "list"],
        }
    ]
    user = f"supporter-{namespace}"
    head: JsonObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": user}}
    group = "rbac.authorization.k8s.io"
    role = {**head, "kind": "ClusterRole", "rules": rules}
    binding = {
        **head,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    for obj in (role, binding):
        await cluster_client.create(obj)
    yield user
    for obj in (role, binding):
        await cluster_client.delete(GroupVersionKind.of(obj), Key("", user))


@pytest.mark.usefixtures("planted")
async def test_kinds_and_pods_that_cannot_be_read_are_named_and_the_rest_is_written(
    kubeconfig: Path, namespace: str, supporter: str, tmp_path: Path
) -> None:
    files = await bundle(kubeconfig, tmp_path / "bundle.tar.gz", namespace, supporter)
    assert "name: hidden" in files["cluster/Secret.yaml"]
    missing = files["contents.txt"]
    assert "you may not list ManagedResource.resources.gardener.cloud" in missing
    assert f"process {namespace}/operator: " in missing


def test_an_existing_file_is_not_overwritten(kubeconfig: Path, tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    path.write_text("mine")
    with pytest.raises(SupportBundleError, match="name another file"):
        support_bundle(file=path, cluster=ScopeOptions(kubeconfig=kubeconfig))
    assert path.read_text() == "mine"
