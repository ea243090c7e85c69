"""Validation of extension objects: spec 12 §15."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.review import GroupVersionResource, Handler, Request, Verdict
from pergola.admission.webhook import handlers
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.resource_manager.webhooks.extension_validation.metadata import ANNOTATIONS_BYTES
from pergola.resource_manager.webhooks.extension_validation.review import (
    ExtensionValidation,
    registrations,
    webhooks,
)
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import Kind, Profile
from pergola.resource_manager.webhooks.installation import Installation

BY_NAME = {kind.kind: kind for kind in KINDS}
SECRET = {"name": "cloudprovider", "namespace": "shoot"}
PLACED: JsonObject = {"type": "aws", "region": "eu-1", "secretRef": SECRET}
SPECS: dict[str, JsonObject] = {
    "BackupBucket": PLACED,
    "BackupEntry": {**PLACED, "bucketName": "bucket"},
    "Bastion": {
        "type": "aws",
        "userData": "eA==",
        "ingress": [{"ipBlock": {"cidr": "1.2.3.4/32"}}],
    },
    "ContainerRuntime": {"type": "gvisor", "binaryPath": "/bin", "workerPool": {"name": "p"}},
    "ControlPlane": PLACED,
    "DNSRecord": {
        "type": "aws",
        "secretRef": SECRET,
        "name": "api.example.com",
        "recordType": "A",
        "values": ["1.2.3.4"],
    },
    "Extension": {"type": "x"},
    "Infrastructure": PLACED,
    "Network": {"type": "calico", "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"},
    "OperatingSystemConfig": {"type": "os", "purpose": "provision"},
    "SelfHostedShootExposure": {"type": "x", "port": 443, "endpoints": [{"nodeName": "n"}]},
    "Worker": {**PLACED, "pools": []},
    "Etcd": {"backup": {"store": {"prefix": "shoot--main", "provider": "aws"}}},
}


def obj(kind: str, spec: JsonObject | None = None, **metadata: Any) -> JsonObject:
    found = BY_NAME[kind]
    known = {"name": "main", "resourceVersion": "1"} | (
        {"namespace": "shoot"} if found.namespaced else {}
    )
    return {
        "apiVersion": f"{found.group}/v1alpha1",
        "kind": kind,
        "metadata": known | metadata,
        "spec": copy.deepcopy(SPECS[kind]) | (spec or {}),
    }


def review(new: JsonObject, old: JsonObject | None = None, profile: Profile = "relaxed") -> Verdict:
    kind = BY_NAME[new["kind"]]
    verdict = ExtensionValidation(kind, profile)(
        Request(
            uid="u",
            operation="UPDATE" if old else "CREATE",
            kind=GroupVersionKind(kind.group, "v1alpha1", kind.kind),
            resource=GroupVersionResource(kind.group, "v1alpha1", kind.plural),
            namespace="shoot",
            name="main",
            object=new,
            old_object=old,
        )
    )
    assert isinstance(verdict, Verdict)
    return verdict


def found(
    kind: str, spec: JsonObject, old: JsonObject | None = None, profile: Profile = "relaxed"
) -> list[str]:
    """Return the findings about an object of this spec, or with the change from an old spec."""
    before = obj(kind, old) if old is not None else None
    return sentences(review(obj(kind, spec), before, profile))


def sentences(verdict: Verdict) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in verdict.causes]


def fields(problems: list[str]) -> list[str]:
    return [problem.partition(": ")[0] for problem in problems]


@pytest.mark.parametrize("kind", BY_NAME)
def test_a_valid_object_is_admitted_on_creation_and_update(kind: str) -> None:
    assert review(obj(kind)).allowed
    assert review(obj(kind), obj(kind)).allowed


# Must hold 1: an empty object of each kind

NAME = "metadata.name: Required value: name or generateName is required"
NAMESPACE = "metadata.namespace: Required value: field is required"


def needs(*paths: str) -> list[str]:
    return [f"spec.{path}: Required value: field is required" for path in paths]


NO_RECORD_TYPE = (
    'spec.recordType: Unsupported value: "": supported values: "A", "AAAA", "CNAME", "TXT"'
)
NO_PORT = "spec.port: Invalid value: null: must be between 1 and 65535, inclusive"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("BackupBucket", needs("type", "region", "secretRef.name")),
        ("BackupEntry", needs("type", "bucketName", "region", "secretRef.name")),
        ("Bastion", needs("type", "userData", "ingress")),
        ("ContainerRuntime", needs("type", "binaryPath", "workerPool.name")),
        ("ControlPlane", needs("type", "region", "secretRef.name")),
        (
            "DNSRecord",
            [*needs("type", "secretRef.name", "name"), NO_RECORD_TYPE, *needs("values")],
        ),
        ("Extension", needs("type")),
        ("Infrastructure", needs("type", "region", "secretRef.name")),
        ("Network", needs("type", "podCIDR", "serviceCIDR")),
        ("OperatingSystemConfig", needs("purpose")),
        ("SelfHostedShootExposure", [*needs("type"), NO_PORT, *needs("endpoints")]),
        ("Worker", needs("type", "region", "secretRef.name")),
        ("Etcd", []),
    ],
)
def test_an_empty_object_gets_all_findings_at_once(kind: str, expected: list[str]) -> None:
    verdict = review({"kind": kind})
    metadata = [NAME, NAMESPACE] if BY_NAME[kind].namespaced else [NAME]
    assert sentences(verdict) == metadata + expected
    assert (verdict.code, verdict.reason) == (422, "Invalid")
    assert verdict.message.startswith(f'{kind}.{BY_NAME[kind].group} "" is invalid: ')


# Must hold 2: immutable and mutable fields

CHANGES: list[tuple[str, str, Any, bool]] = [
    ("BackupBucket", "type", "x", False),
    ("BackupBucket", "region", "x", False),
    ("BackupBucket", "secretRef", {"name": "x"}, True),
    ("BackupBucket", "providerConfig", {"a": 1}, True),
    ("BackupEntry", "type", "x", False),
    ("BackupEntry", "bucketName", "x", True),
    ("BackupEntry", "region", "x", True),
    ("BackupEntry", "secretRef", {"name": "x"}, True),
    ("Bastion", "type", "x", False),
    ("Bastion", "userData", "eQ==", False),
    ("Bastion", "ingress", [{}], True),
    ("ContainerRuntime", "type", "x", False),
    ("ContainerRuntime", "workerPool", {"name": "x"}, False),
    ("ContainerRuntime", "workerPool", {"name": "p", "selector": {}}, True),
    ("ContainerRuntime", "binaryPath", "/x", True),
    ("ControlPlane", "type", "x", False),
    ("ControlPlane", "region", "x", False),
    ("ControlPlane", "infrastructureProviderStatus", {"a": 1}, True),
    ("DNSRecord", "type", "x", False),
    ("DNSRecord", "name", "x.example.com", False),
    ("DNSRecord", "recordType", "AAAA", False),
    ("DNSRecord", "values", ["1.2.3.5"], True),
    ("DNSRecord", "ttl", 60, True),
    ("DNSRecord", "zone", "z", True),
    ("Extension", "type", "y", False),
    ("Extension", "providerConfig", {"a": 1}, True),
    ("Infrastructure", "type", "x", False),
    ("Infrastructure", "region", "x", False),
    ("Infrastructure", "sshPublicKey", "x", True),
    ("Network", "type", "x", False),
    ("Network", "podCIDR", "10.2.0.0/16", False),
    ("Network", "serviceCIDR", "10.2.0.0/16", False),
    ("Network", "providerConfig", {"a": 1}, True),
    ("OperatingSystemConfig", "type", "x", False),
    ("OperatingSystemConfig", "purpose", "reconcile", False),
    ("OperatingSystemConfig", "units", [{"name": "u"}], True),
    ("SelfHostedShootExposure", "type", "y", False),
    ("SelfHostedShootExposure", "port", 444, True),
    ("Worker", "type", "x", False),
    ("Worker", "region", "x", False),
    ("Worker", "sshPublicKey", "x", True),
    ("Etcd", "backup", {"store": {"prefix": "shoot--main-2"}}, False),
    ("Etcd", "replicas", 3, True),
]


@pytest.mark.parametrize(("kind", "field", "value", "may_change"), CHANGES)
def test_a_field_may_change_or_is_immutable(
    kind: str, field: str, value: Any, may_change: bool
) -> None:
    problems = found(kind, {field: value}, old={})
    if may_change:
        assert problems == []
    else:
        (problem,) = problems
        assert problem.startswith(f"spec.{field}")
        assert problem.endswith("field is immutable")


# Must hold 3: the spec is frozen while the object is deleted


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        (
            "relaxed",
            (
                "Forbidden: cannot update infrastructure spec if deletion timestamp is set. "
                'Requested changes: secretRef.name: "x" != "cloudprovider"'
            ),
        ),
        ("strict", 'Forbidden: secretRef.name: "x" != "cloudprovider"'),
    ],
)
def test_the_spec_of_a_terminating_object_is_frozen(profile: Profile, text: str) -> None:
    gone: JsonObject = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    old = obj("Infrastructure", **gone)
    new = obj("Infrastructure", {"secretRef": {**SECRET, "name": "x"}}, **gone)
    assert sentences(review(new, old, profile)) == [f"spec: {text}"]


@pytest.mark.parametrize("kind", BY_NAME)
def test_finalizers_of_a_terminating_object_can_always_be_removed(kind: str) -> None:
    gone: JsonObject = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    old = obj(kind, finalizers=["a", "b"], **gone)
    new = obj(kind, finalizers=["a"], annotations={"x": "y"}, **gone)
    # Written when there were no rules yet.
    old["spec"] = new["spec"] = {"type": "", "backup": {"store": {"prefix": "x"}}, "values": 7}
    verdict = review(new, old)
    assert verdict.allowed, verdict.message
    if kind != "Etcd":
        assert verdict.warnings


def test_no_finalizer_may_be_added_to_a_terminating_object() -> None:
    gone: JsonObject = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    problems = sentences(
        review(obj("Extension", finalizers=["a"], **gone), obj("Extension", **gone))
    )
    assert fields(problems) == ["metadata.finalizers"]


def test_an_etcd_that_is_deleted_is_immutable() -> None:
    gone: JsonObject = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    problems = sentences(review(obj("Etcd", {"replicas": 3}, **gone), obj("Etcd", **gone)))
    assert len(problems) == 1
    assert problems[0].startswith("spec: Invalid value: ")
    assert problems[0].endswith(": field is immutable")


# Metadata


def test_metadata_is_checked_on_creation_and_change() -> None:
    wrong = obj(
        "Extension",
        name="No_Name",
        labels={"a b": "c d"},
        annotations={"x": "y" * ANNOTATIONS_BYTES},
        ownerReferences=[{"kind": "X"}],
    )
    assert fields(sentences(review(wrong))) == [
        "metadata.name",
        "metadata.labels",
        "metadata.labels",
        "metadata.annotations",
        "metadata.ownerReferences[0].apiVersion",
        "metadata.ownerReferences[0].name",
        "metadata.ownerReferences[0].uid",
    ]
    moved = obj("Extension", name="other", uid="2", resourceVersion="")
    assert fields(sentences(review(moved, obj("Extension", uid="1")))) == [
        "metadata.resourceVersion",
        "metadata.name",
        "metadata.uid",
    ]
    placed = obj("BackupBucket", namespace="shoot")
    assert sentences(review(placed)) == ["metadata.namespace: Forbidden: not allowed on this type"]


# Must hold 4, 15.3: DNSRecord


@pytest.mark.parametrize(
    ("spec", "relaxed", "strict"),
    [
        ({"values": ["2001:db8::1"]}, [], ["spec.values[0]"]),
        ({"recordType": "AAAA", "values": ["1.2.3.4"]}, [], ["spec.values[0]"]),
        ({"recordType": "AAAA", "values": ["2001:db8:0:0:0:0:0:1"]}, [], []),
        ({"values": ["1.2.3.4", "nothing"]}, ["spec.values[1]"], ["spec.values[1]"]),
        ({"values": []}, ["spec.values"], ["spec.values"]),
        ({"name": "*.foo.example.com"}, [], []),
        ({"name": "foo.example.com."}, [], []),
        ({"name": "foo"}, ["spec.name"], ["spec.name"]),
        ({"name": "foo..example.com"}, ["spec.name"], ["spec.name"]),
        ({"name": "*.*.example.com"}, ["spec.name"], ["spec.name"]),
        ({"name": "_acme.example.com"}, ["spec.name"], ["spec.name"]),
        ({"recordType": "TXT", "name": "_acme.example.com", "values": ["anything"]}, [], []),
        ({"recordType": "CNAME", "values": ["a.example.com"]}, [], []),
        (
            {"recordType": "CNAME", "values": ["a.example.com", "b.example.com"]},
            ["spec.values"],
            ["spec.values"],
        ),
        ({"recordType": "CNAME", "values": ["a"]}, ["spec.values[0]"], ["spec.values[0]"]),
        ({"recordType": "MX"}, ["spec.recordType"], ["spec.recordType"]),
        ({"region": "", "zone": ""}, ["spec.region", "spec.zone"], ["spec.region", "spec.zone"]),
        ({"ttl": -1}, ["spec.ttl"], ["spec.ttl"]),
        ({"ttl": 2**31}, ["spec.ttl"], []),
    ],
)
def test_dns_records_are_validated(spec: JsonObject, relaxed: list[str], strict: list[str]) -> None:
    assert fields(found("DNSRecord", spec)) == relaxed
    assert fields(found("DNSRecord", spec, profile="strict")) == strict


# Must hold 5, 15.4: Network


@pytest.mark.parametrize(
    ("spec", "relaxed", "strict"),
    [
        ({"serviceCIDR": "10.0.0.0/16"}, ["spec.serviceCIDR"], ["spec.serviceCIDR"]),
        ({"podCIDR": "this-is-no-cidr"}, ["spec.podCIDR"], ["spec.podCIDR"]),
        ({"podCIDR": "10.2.0.1/16"}, [], []),
        ({"podCIDR": "10.2.0.1"}, ["spec.podCIDR"], ["spec.podCIDR"]),
        ({"podCIDR": "2001:db8::/64"}, ["spec.podCIDR"], ["spec.podCIDR"]),
        (
            {"ipFamilies": ["IPv6"]},
            ["spec.podCIDR", "spec.serviceCIDR"],
            ["spec.podCIDR", "spec.serviceCIDR"],
        ),
        (
            {
                "ipFamilies": ["IPv6"],
                "podCIDR": "2001:db8::/64",
                "serviceCIDR": "2001:db8::/108",
            },
            [],
            ["spec.serviceCIDR"],
        ),
        ({"ipFamilies": ["IPv4", "IPv6"]}, [], ["spec.ipFamilies"]),
        ({"ipFamilies": ["IPv4", "IPv4"]}, ["spec.ipFamilies[1]"], None),
        ({"ipFamilies": ["IPv5"], "podCIDR": "x"}, ["spec.ipFamilies[0]"], ["spec.ipFamilies[0]"]),
    ],
)
def test_networks_are_validated(
    spec: JsonObject, relaxed: list[str], strict: list[str] | None
) -> None:
    assert fields(found("Network", spec)) == relaxed
    if strict is not None:
        assert fields(found("Network", spec, profile="strict")) == strict


FOUR, SIX, DUAL = ["IPv4"], ["IPv6"], ["IPv4", "IPv6"]


@pytest.mark.parametrize(
    ("old", "new", "relaxed", "strict"),
    [
        (None, FOUR, "", ""),
        (DUAL, DUAL, "", None),
        (FOUR, DUAL, "", "Invalid"),
        (DUAL, FOUR, "", "Invalid"),
        (SIX, ["IPv6", "IPv4"], "Forbidden", "Invalid"),
        (DUAL, ["IPv6", "IPv4"], "Forbidden", "Invalid"),
        (DUAL, SIX, "Forbidden", "Invalid"),
        (FOUR, SIX, "Forbidden", "Invalid"),
        (SIX, FOUR, "Forbidden", "Invalid"),
    ],
)
def test_changes_of_ip_families_are_validated(
    old: list[str] | None, new: list[str], relaxed: str, strict: str | None
) -> None:
    def kinds(profile: Profile) -> set[str]:
        before = {"ipFamilies": old} if old else {}
        problems = found("Network", {"ipFamilies": new}, before, profile)
        return {p.split(": ")[1] for p in problems if p.startswith("spec.ipFamilies: ")}

    assert kinds("relaxed") == ({relaxed} if relaxed else set())
    if strict is not None:
        expected = {strict.replace("Invalid", "Invalid value")} if strict else set()
        assert kinds("strict") == expected


def test_a_refused_change_is_reported_with_both_families() -> None:
    (problem, *_) = found("Network", {"ipFamilies": SIX}, {"ipFamilies": FOUR})
    assert problem == (
        "spec.ipFamilies: Forbidden: unsupported IP family update: "
        "oldIPFamilies=[IPv4], newIPFamilies=[IPv6]"
    )


# Must hold 6, 15.5: OperatingSystemConfig


def file(path: str = "/a", **more: Any) -> JsonObject:
    return {"path": path, "content": {"inline": {"data": "x"}}, **more}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([file("/a"), file("/b"), file("/c"), file("/b"), file("/d")], ["spec.files[3].path"]),
        ([file(hostName="x"), file(hostName="y"), file(hostName="z")], []),
        ([file(hostName="x"), file(hostName="y"), file(hostName="y")], ["spec.files[2].path"]),
        ([file(hostName="x"), file()], ["spec.files[1].path"]),
        ([file(), file(hostName="x")], ["spec.files[1].path"]),
        ([file(hostName="No Host")], ["spec.files[0].hostName"]),
        ([{"path": "/a"}], ["spec.files[0].content"]),
        ([{"content": {"inline": {"data": "x"}}}], ["spec.files[0].path"]),
        (
            [{"path": "/a", "content": {"inline": {"data": "x"}, "imageRef": {}}}],
            [
                "spec.files[0].content",
                "spec.files[0].content.imageRef.image",
                "spec.files[0].content.imageRef.filePathInImage",
            ],
        ),
        (
            [{"path": "/a", "content": {"inline": {"data": "x", "encoding": "gzip"}}}],
            ["spec.files[0].content.inline.encoding"],
        ),
        (
            [{"path": "/a", "content": {"secretRef": {"name": "s"}}}],
            ["spec.files[0].content.secretRef.dataKey"],
        ),
    ],
)
def test_files_are_validated(files: list[JsonObject], expected: list[str]) -> None:
    assert fields(found("OperatingSystemConfig", {"files": files})) == expected


def test_units_must_name_existing_files_of_spec_or_status() -> None:
    config = obj(
        "OperatingSystemConfig",
        {
            "files": [file("/a")],
            "units": [
                {"name": "u", "filePaths": ["/a", "/b", "/c"], "dropIns": [{"name": "d"}]},
                {},
            ],
        },
    )
    config["status"] = {"extensionFiles": [file("/b"), file("/a")]}
    assert fields(sentences(review(config))) == [
        "status.extensionFiles[1].path",
        "spec.units[0].dropIns[0].content",
        "spec.units[0].filePaths[2]",
        "spec.units[1].name",
    ]


def test_containerd_is_allowed_only_for_reconciliation_and_validated() -> None:
    containerd: JsonObject = {
        "registries": [
            {"upstream": "docker.io", "hosts": [{"url": "nothing", "capabilities": ["fly"]}]},
            {"upstream": "docker.io", "server": "ftp://x"},
            {"upstream": "https://x/y"},
            {"upstream": "_default", "server": "https://x", "hosts": [{"url": "https://y"}]},
            {"upstream": "localhost:5000"},
        ],
        "plugins": [{"op": "fly"}, {"op": "remove", "path": ["a"], "values": {}}],
    }
    config = {"purpose": "reconcile", "criConfig": {"cgroupDriver": "x", "containerd": containerd}}
    at = "spec.criConfig.containerd"
    assert fields(found("OperatingSystemConfig", config)) == [
        "spec.criConfig.cgroupDriver",
        f"{at}.sandboxImage",
        f"{at}.registries[0].hosts[0].url",
        f"{at}.registries[0].hosts[0].capabilities[0]",
        f"{at}.registries[1].upstream",
        f"{at}.registries[1].server",
        f"{at}.registries[2].upstream",
        f"{at}.plugins[0].op",
        f"{at}.plugins[0].path",
        f"{at}.plugins[1].values",
    ]
    provision = {"criConfig": {"containerd": {"sandboxImage": "x"}}}
    assert fields(found("OperatingSystemConfig", provision)) == [at]


def test_only_the_strict_profile_requires_the_type() -> None:
    assert found("OperatingSystemConfig", {"type": ""}) == []
    assert fields(found("OperatingSystemConfig", {"type": ""}, profile="strict")) == ["spec.type"]
    assert fields(found("OperatingSystemConfig", {"purpose": "x"})) == ["spec.purpose"]


# 15.6: Worker, 15.7: SelfHostedShootExposure, 15.8: Etcd, and dropped rules

POOL = {"name": "p", "machineType": "m", "machineImage": {"name": "i", "version": "1"}}


@pytest.mark.parametrize(
    ("pool", "relaxed", "strict"),
    [
        ({}, [], ["spec.pools[0].userData"]),
        ({"userData": "eA=="}, [], []),
        ({"architecture": "arm64", "userData": "x"}, [], []),
        ({"architecture": "mips", "userData": "x"}, ["spec.pools[0].architecture"], None),
        (
            {"machineImage": {}},
            ["spec.pools[0].machineImage.name", "spec.pools[0].machineImage.version"],
            None,
        ),
        ({"nodeTemplate": {"capacity": {"cpu": "500m", "pods": "10", "a.b/gpu": 1}}}, [], None),
        (
            {
                "nodeTemplate": {
                    "capacity": {"cpu": "-1", "pods": "1500m", "a.b/gpu": "0.5", "x": "?"}
                }
            },
            [
                f"spec.pools[0].nodeTemplate.capacity[{name}]"
                for name in ("cpu", "pods", "a.b/gpu", "x")
            ],
            None,
        ),
    ],
)
def test_worker_pools_are_validated(
    pool: JsonObject, relaxed: list[str], strict: list[str] | None
) -> None:
    spec = {"pools": [POOL | pool]}
    assert fields(found("Worker", spec)) == relaxed
    if strict is not None:
        assert fields(found("Worker", spec, profile="strict")) == strict


def test_exposures_are_validated() -> None:
    spec = {
        "port": 70000,
        "endpoints": [
            {
                "addresses": [
                    {"type": "InternalIP", "address": "x"},
                    {"type": "Hostname", "address": "No Host"},
                    {"type": "Other", "address": "1.2.3.4"},
                    {},
                ]
            }
        ],
        "credentialsRef": {"apiVersion": "v2", "kind": "ConfigMap", "namespace": "other"},
    }
    at = "spec.endpoints[0]"
    assert fields(found("SelfHostedShootExposure", spec)) == [
        "spec.port",
        f"{at}.nodeName",
        f"{at}.addresses[0].address",
        f"{at}.addresses[1].address",
        f"{at}.addresses[2].type",
        f"{at}.addresses[3].type",
        f"{at}.addresses[3].address",
        "spec.credentialsRef.name",
        "spec.credentialsRef.apiVersion",
        "spec.credentialsRef.kind",
        "spec.credentialsRef.namespace",
    ]


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "x" * 254])
def test_a_credentials_reference_needs_a_possible_name(name: str) -> None:
    reference = {"apiVersion": "v1", "kind": "Secret", "namespace": "shoot", "name": name}
    spec = {**SPECS["SelfHostedShootExposure"], "credentialsRef": reference}
    assert fields(found("SelfHostedShootExposure", spec)) == ["spec.credentialsRef.name"]


def test_etcds_are_validated() -> None:
    store = {"prefix": "shoot", "provider": "tape"}
    assert fields(found("Etcd", {"backup": {"store": store}})) == [
        "spec.backup.store.prefix",
        "spec.backup.store.provider",
    ]
    assert found("Etcd", {"backup": {}}) == []
    assert (
        found("Etcd", {"backup": {"store": {"prefix": "other/shoot/main"}}}, {"backup": {}}) == []
    )


def test_only_the_strict_profile_validates_the_purpose_of_a_control_plane() -> None:
    assert found("ControlPlane", {"purpose": "x"}) == []
    assert fields(found("ControlPlane", {"purpose": "x"}, profile="strict")) == ["spec.purpose"]
    assert found("ControlPlane", {"purpose": "exposure"}, {"purpose": "normal"}) == []
    changed = found("ControlPlane", {"purpose": "exposure"}, {"purpose": "normal"}, "strict")
    assert fields(changed) == ["spec.purpose"]


# 15.9, and the request around it


def test_the_example_of_the_specification() -> None:
    verdict = review(
        {
            "kind": "Infrastructure",
            "metadata": {"name": "i", "namespace": "n"},
            "spec": {"type": "aws"},
        }
    )
    assert verdict.message == (
        'Infrastructure.extensions.gardener.cloud "i" is invalid: '
        "[spec.region: Required value: field is required, "
        "spec.secretRef.name: Required value: field is required]"
    )


def test_other_operations_are_allowed_and_a_missing_object_is_a_bad_request() -> None:
    handler = ExtensionValidation(BY_NAME["Worker"], "relaxed")
    request = Request(
        uid="u",
        operation="DELETE",
        kind=GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Worker"),
        resource=GroupVersionResource("extensions.gardener.cloud", "v1alpha1", "workers"),
    )
    assert handler(request).allowed
    verdict = review({"kind": "Worker", "spec": [1]})
    assert (verdict.allowed, verdict.code) == (False, 400)


def test_null_and_empty_values_are_equal() -> None:
    assert found("Infrastructure", {"providerConfig": {"a": {}}}, {"providerConfig": None}) == []
    assert found("Extension", {"type": "x"}, {}) == []


def served() -> dict[str, Handler]:
    """Return the handlers by path."""
    dependencies = Dependencies(Installation("runtime"), DocumentLookups([]))
    return handlers(webhooks(Webhooks(), dependencies))


def test_every_kind_is_registered_with_a_served_path() -> None:
    entries = registrations(Installation("runtime"))
    assert {entry.path for entry in entries} == set(served())
    names = {entry.name for entry in entries}
    assert "validation.extensions.bastions.resources.gardener.cloud" in names
    assert "validation.extensions.etcds.resources.gardener.cloud" in names
    assert "/validate-druid-gardener-cloud-v1alpha1-etcd" in served()
    for entry in entries:
        (rule,) = entry.rules
        assert list(rule.operations) == ["CREATE", "UPDATE"]
        assert not any("/" in resource for resource in rule.resources)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


NESTED: dict[str, JsonObject] = {
    "ingress": {"ipBlock": None},
    "endpoints": {"nodeName": None, "addresses": {"type": None, "address": None}},
    "credentialsRef": {"apiVersion": None, "kind": None, "namespace": None, "name": None},
    "backup": {"store": {"prefix": None, "provider": None}},
    "files": {
        "path": None,
        "hostName": None,
        "content": {"secretRef": {"name": None}, "inline": {"data": None, "encoding": None}},
    },
    "units": {"name": None, "filePaths": None, "dropIns": {"name": None, "content": None}},
    "criConfig": {
        "cgroupDriver": None,
        "containerd": {
            "sandboxImage": None,
            "registries": {
                "upstream": None,
                "server": None,
                "hosts": {"url": None, "capabilities": None},
            },
            "plugins": {"op": None, "path": None, "values": None},
        },
    },
    "pools": {"architecture": None, "nodeTemplate": {"capacity": {"pods": None, "a/b": None}}},
}
"""Paths below a spec that are reviewed; a map also represents lists of such maps."""

METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "name", "generation")


def shaped(shape: JsonObject | None) -> st.SearchStrategy[object]:
    """Draw values of a shape, with arbitrary values in some places."""
    if shape is None:
        return anything
    parts = {name: shaped(below) for name, below in shape.items()}
    well = st.fixed_dictionaries({}, optional=parts)
    return well | st.lists(well, min_size=1, max_size=2) | anything


def specs(kind: Kind) -> st.SearchStrategy[JsonObject]:
    """Draw arbitrary values in the validated places."""
    names = {*SPECS[kind.kind], *NESTED, "ttl", "ipFamilies", "region", "recordType", "values"}
    optional = {name: shaped(NESTED.get(name)) for name in sorted(names)}
    return st.fixed_dictionaries({}, optional=optional)


metadata = st.dictionaries(st.sampled_from(METADATA), anything, max_size=2)


@given(st.data(), st.sampled_from(KINDS), st.sampled_from(["relaxed", "strict"]))
def test_no_object_breaks_the_validation(data: st.DataObject, kind: Kind, profile: Profile) -> None:
    new = obj(kind.kind, data.draw(specs(kind)), **data.draw(metadata))
    old = data.draw(st.none() | specs(kind))
    review(new, obj(kind.kind, old) if old is not None else None, profile)


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("DNSRecord", {"recordType": ["A"]}, "spec.recordType"),
        ("Network", {"ipFamilies": [["IPv4"]]}, "spec.ipFamilies[0]"),
        ("Etcd", {"backup": {"store": {"prefix": 7}}}, "spec.backup.store.prefix"),
        (
            "Etcd",
            {"backup": {"store": {"prefix": "shoot--main", "provider": ["aws"]}}},
            "spec.backup.store.provider",
        ),
        (
            "OperatingSystemConfig",
            {"files": [{"path": ["/a"]}], "units": [{"name": "u", "filePaths": [["/a"]]}]},
            "spec.units[0].filePaths[0]",
        ),
        (
            "OperatingSystemConfig",
            {
                "purpose": "reconcile",
                "criConfig": {
                    "containerd": {
                        "sandboxImage": "i",
                        "registries": [{"upstream": "a:" + "1" * 5000}],
                    }
                },
            },
            "spec.criConfig.containerd.registries[0].upstream",
        ),
    ],
)
def test_a_value_of_another_type_is_a_finding_of_its_field(
    kind: str, spec: JsonObject, field: str
) -> None:
    assert field in fields(found(kind, spec))
