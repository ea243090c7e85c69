"""From a pod's volumes to the files of its process."""

import base64

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.sandbox.process_node.volumes import (
    MissingFile,
    mounted_files,
    mounts_token,
    referenced,
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


OBJECTS: dict[tuple[str, Key], JsonObject] = {
    ("Secret", Key("garden", "tls")): {
        "kind": "Secret",
        "data": {"tls.crt": encoded("certificate"), "tls.key": encoded("key")},
    },
    ("ConfigMap", Key("garden", "config")): {
        "kind": "ConfigMap",
        "data": {"config.yaml": "a: 1"},
        "binaryData": {"raw": encoded("raw")},
    },
}


def find(kind: str, key: Key) -> JsonObject | None:
    return OBJECTS.get((kind, key))


def pod(*volumes: JsonObject, mounts: dict[str, str], **mount: str) -> JsonObject:
    at = [{"name": name, "mountPath": path, **mount} for name, path in mounts.items()]
    return {
        "metadata": {"name": "web", "namespace": "garden"},
        "spec": {"containers": [{"name": "web", "volumeMounts": at}], "volumes": list(volumes)},
    }


def files(obj: JsonObject, token: str = "") -> dict[str, str]:
    found = mounted_files(obj, obj["spec"]["containers"][0], find, token)
    return {path: content.decode() for path, content in found.items()}


def test_secrets_and_config_maps_become_files() -> None:
    volumes = (
        {"name": "tls", "secret": {"secretName": "tls"}},
        {"name": "config", "configMap": {"name": "config"}},
    )
    obj = pod(*volumes, mounts={"tls": "/tls", "config": "/etc"})
    assert files(obj) == {
        "/tls/tls.crt": "certificate",
        "/tls/tls.key": "key",
        "/etc/config.yaml": "a: 1",
        "/etc/raw": "raw",
    }
    assert referenced(obj) == set(OBJECTS)


def test_items_choose_keys_and_paths() -> None:
    item = {"key": "tls.crt", "path": "certs/server.crt"}
    volume = {"name": "tls", "secret": {"secretName": "tls", "items": [item]}}
    assert files(pod(volume, mounts={"tls": "/tls"})) == {"/tls/certs/server.crt": "certificate"}


def test_a_sub_path_mounts_one_file() -> None:
    volume = {"name": "config", "configMap": {"name": "config"}}
    obj = pod(volume, mounts={"config": "/etc/app.yaml"}, subPath="config.yaml")
    assert files(obj) == {"/etc/app.yaml": "a: 1"}


def test_a_projected_volume_joins_its_sources() -> None:
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[JsonObject] = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "config", "items": [{"key": "raw", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    obj = pod({"name": "own", "projected": {"sources": sources}}, mounts={"own": "/own"})
    assert mounts_token(obj)
    assert files(obj, "secret") == {
        "/own/token": "secret",
        "/own/ca.crt": "raw",
        "/own/namespace": "garden",
    }


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        ({"secretName": "other"}, "Secret other does not exist"),
        (
            {"secretName": "tls", "items": [{"key": "token", "path": "token"}]},
            'Secret tls has no key "token"',
        ),
    ],
)
def test_missing_sources_are_reported_unless_they_are_optional(
    secret: JsonObject, message: str
) -> None:
    with pytest.raises(MissingFile, match=message):
        files(pod({"name": "tls", "secret": secret}, mounts={"tls": "/tls"}))
    optional = {"name": "tls", "secret": {**secret, "optional": True}}
    assert files(pod(optional, mounts={"tls": "/tls"})) == {}
