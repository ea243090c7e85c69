"""The webhooks that validate extension objects and Etcds."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference
from conformance.oracles import Answer
from conformance.strategies.changes import changed
from conformance.subjects.webhooks import WebhookSubject, asked
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.extension_validation.findings import same_meaning
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.resource_manager.webhooks.extension_validation.review import path_of
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import Kind

_SECRET: Final = {"name": "s", "namespace": "n"}
_PLACED: Final = {"type": "local", "region": "r", "secretRef": _SECRET}
_FILE: Final = {
    "path": "/a",
    "permissions": 420,
    "hostName": "h1",
    "content": {"inline": {"encoding": "b64", "data": "YQ=="}},
}
_HOST: Final = {"url": "https://example.com", "capabilities": ["pull"], "caCerts": ["/a"]}
_SPECS: Final[dict[str, JsonObject]] = {
    "BackupBucket": _PLACED,
    "BackupEntry": {**_PLACED, "bucketName": "b"},
    "Bastion": {
        "type": "local",
        "userData": "YQ==",
        "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
    "ContainerRuntime": {
        "type": "local",
        "binaryPath": "/a",
        "workerPool": {"name": "p", "selector": {"matchLabels": {"a": "b"}}},
    },
    "ControlPlane": {**_PLACED, "purpose": "normal"},
    "DNSRecord": {
        "type": "local",
        "secretRef": _SECRET,
        "region": "r",
        "zone": "z",
        "name": "api.example.com",
        "recordType": "A",
        "values": ["1.2.3.4"],
        "ttl": 120,
    },
    "Extension": {"type": "local"},
    "Infrastructure": {**_PLACED, "sshPublicKey": "YQ=="},
    "Network": {
        "type": "local",
        "podCIDR": "10.0.0.0/16",
        "serviceCIDR": "10.1.0.0/16",
        "ipFamilies": ["IPv4", "IPv6"],
    },
    "OperatingSystemConfig": {
        "type": "local",
        "purpose": "reconcile",
        "units": [
            {
                "name": "a.service",
                "enable": True,
                "command": "start",
                "dropIns": [{"name": "d", "content": "c"}],
                "filePaths": ["/a"],
            }
        ],
        "files": [
            _FILE,
            {"path": "/b", "content": {"secretRef": {"name": "s", "dataKey": "k"}}},
            {"path": "/c", "content": {"imageRef": {"image": "i", "filePathInImage": "/f"}}},
        ],
        "criConfig": {
            "name": "containerd",
            "cgroupDriver": "systemd",
            "containerd": {
                "sandboxImage": "i",
                "registries": [
                    {
                        "upstream": "example.com",
                        "server": "https://example.com",
                        "hosts": [_HOST],
                    }
                ],
                "plugins": [{"op": "add", "path": ["a"], "values": {}}],
            },
        },
    },
    "SelfHostedShootExposure": {
        "type": "local",
        "port": 443,
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "s"},
        "endpoints": [
            {
                "nodeName": "node-1",
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.1"},
                    {"type": "Hostname", "address": "a"},
                ],
            }
        ],
    },
    "Worker": {
        **_PLACED,
        "pools": [
            {
                "name": "p",
                "machineType": "m",
                "machineImage": {"name": "i", "version": "1.0.0"},
                "minimum": 1,
                "maximum": 2,
                "maxSurge": 1,
                "maxUnavailable": 0,
                "userDataSecretRef": {"name": "s", "key": "k"},
                "architecture": "amd64",
                "zones": ["a"],
                "nodeTemplate": {"capacity": {"cpu": "1", "pods": "10", "example.com/gpu": "1"}},
            }
        ],
    },
    "Etcd": {
        "replicas": 1,
        "labels": {"a": "b"},
        "etcd": {"memberNamePrefix": "m"},
        "backup": {"store": {"prefix": "n--a", "provider": "aws", "container": "c"}},
    },
}
_TEXTS: Final = (
    *("A", "AAAA", "CNAME", "TXT", "provision", "reconcile", "amd64", "arm64", "IPv4", "IPv6"),
    *("b64", "Hostname", "InternalIP", "ExternalDNS", "v1", "Secret", "n--a", "S3", "gcp", "local"),
    *("normal", "exposure", "pull", "push", "resolve", "add", "remove", "h2", "docker"),
)
_STATUS: Final = {"extensionFiles": [_FILE], "extensionUnits": [{"name": "b.service"}]}
_DELETED: Final = {
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 0,
    "finalizers": ["f"],
}


def _base(kind: Kind) -> JsonObject:
    metadata: JsonObject = {"name": "a", "resourceVersion": "1", "labels": {"a": "b"}}
    if kind.namespaced:
        metadata["namespace"] = "n"
    obj: JsonObject = {
        "apiVersion": f"{kind.group}/v1alpha1",
        "kind": kind.kind,
        "metadata": metadata,
        "spec": _SPECS[kind.kind],
    }
    return {**obj, "status": _STATUS} if kind.kind == "OperatingSystemConfig" else obj


def _objects(kind: Kind) -> SearchStrategy[JsonObject]:
    # What an API server refuses before, or sets itself, stays.
    names = (("metadata", name) for name in ("name", "namespace", "resourceVersion"))
    return changed(_base(kind), texts=_TEXTS, keep=[("apiVersion",), ("kind",), *names])


def _question(kind: Kind) -> SearchStrategy[JsonObject]:
    pairs = st.tuples(_objects(kind), st.none() | st.just(_base(kind)) | _objects(kind))
    return st.builds(
        lambda pair, is_deleted: _asked(kind, *pair, is_deleted=is_deleted),
        pairs,
        st.sampled_from([False, False, False, True]),
    )


def _asked(kind: Kind, new: JsonObject, old: JsonObject | None, *, is_deleted: bool) -> JsonObject:
    if old is not None and is_deleted:
        new, old = (_with_metadata(obj, _DELETED) for obj in (new, old))
    review: dict[str, Any] = {
        "uid": "1",
        "kind": {"group": kind.group, "version": "v1alpha1", "kind": kind.kind},
        "resource": {"group": kind.group, "version": "v1alpha1", "resource": kind.plural},
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {},
        "name": "a",
        "namespace": new["metadata"].get("namespace", ""),
        "object": new,
    }
    if old is not None:
        review["oldObject"] = old
    return asked((path_of(kind), "extensionValidation"), {}, (), review)


def _with_metadata(obj: JsonObject, fields: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


class _ExtensionObjects(WebhookSubject):
    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Mark differences about an update that leaves the content alone."""
        request = {**question["review"]["request"], **answer.output["given"]}
        new, old = request["object"], request.get("oldObject")
        is_same = old is not None and all(
            same_meaning(new.get(part), old.get(part)) for part in ("spec", "status")
        )
        for each in super().compare(question, answer):
            prefix = "unchanged: " if is_same else ""
            yield msgspec.structs.replace(each, path=prefix + each.path)


EXTENSIONS_SUBJECT: Final = _ExtensionObjects(
    "extension-objects",
    "Webhooks that validate extension objects",
    (
        "pergola.resource_manager.webhooks.extension_validation",
        "pergola.api.network_validation",
    ),
    st.sampled_from(KINDS).flatmap(_question),
)
"""The subject."""
