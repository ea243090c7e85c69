"""Objects of the garden on AWS: profiles, backups, and credentials."""

import base64
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.aws import TYPES, config
from conformance.strategies.fields import (
    Fields,
    below,
    changed,
    changes,
    free,
    one_of_changed,
    or_absent,
)
from pergola.api.objects import JsonObject

_CORE: Final = "core.gardener.cloud/v1beta1"
_SECURITY: Final = "security.gardener.cloud/v1alpha1"
_NAMESPACE: Final = "garden-demo"
_DELETED: Final = {"metadata.deletionTimestamp": st.just("2026-01-01T00:00:00Z")}
_NAMES: Final = or_absent("gardenlinux", "mine", "", None)
_NUMBERS: Final = or_absent("1", "2", "", None)
_ARCHITECTURES: Final = or_absent("amd64", "arm64", "riscv", "", None)
_PLACES: Final = or_absent("eu-west-1", "eu-central-1", "", None)
_VALUES: Final = st.lists(st.sampled_from(["amd64", "arm64", "other", ""]), max_size=2)
_MODES: Final = st.lists(st.sampled_from(["uefi", "bios", "other"]), max_size=3)
_CAPABILITIES: Final = st.fixed_dictionaries(
    {}, optional={"architecture": _VALUES, "bootMode": _MODES, "other": _MODES}
)
_DEFINED: Final = or_absent(
    [],
    [{"name": "architecture", "values": ["arm64", "amd64"]}],
    [{"name": "architecture", "values": ["arm64"]}],
    [{"name": "bootMode", "values": ["uefi", "bios"]}],
)
_DEFINITIONS: Final[list[JsonObject]] = [
    {"name": "architecture", "values": ["amd64", "arm64"]},
    {"name": "bootMode", "values": ["uefi", "bios"]},
]


def _object(kind: str, name: str, spec: JsonObject, namespace: str = "") -> JsonObject:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    api = _SECURITY if kind in ("CredentialsBinding", "WorkloadIdentity") else _CORE
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **spec}


def _flavor(ami: str, **capabilities: list[str]) -> JsonObject:
    return {"capabilities": capabilities, "regions": [{"name": "eu-west-1", "ami": ami}]}


def _image(name: str, version: str, content: JsonObject) -> JsonObject:
    return {"name": name, "versions": [{"version": version, **content}]}


_REGIONS: Final[JsonObject] = {
    "regions": [
        {"name": "eu-west-1", "ami": "ami-1"},
        {"name": "eu-west-1", "ami": "ami-2", "architecture": "arm64"},
    ]
}
_FLAVORS: Final[JsonObject] = {
    "capabilityFlavors": [
        _flavor("ami-1", architecture=["amd64"], bootMode=["uefi"]),
        _flavor("ami-2", architecture=["arm64"]),
    ]
}
_BOTH: Final[JsonObject] = {"architectures": ["amd64", "arm64"]}
_OFFERED_FLAVORS: Final[JsonObject] = {
    "capabilityFlavors": [
        {"architecture": ["amd64"], "bootMode": ["uefi"]},
        {"architecture": ["arm64"]},
    ]
}


def _profile(offered: JsonObject, mapped: JsonObject, *, has_capabilities: bool) -> JsonObject:
    images = {"machineImages": [_image("gardenlinux", "1", mapped)]}
    spec: JsonObject = {
        "type": "aws",
        "kubernetes": {"versions": [{"version": "1.34.2"}]},
        "machineTypes": [],
        "regions": [{"name": "eu-west-1"}],
        "machineImages": [_image("gardenlinux", "1", offered)],
        "providerConfig": config("CloudProfileConfig", images),
    }
    if has_capabilities:
        spec["machineCapabilities"] = _DEFINITIONS
    return _object("CloudProfile", "aws", {"spec": spec})


_PROFILES: Final = (
    _profile(_BOTH, _REGIONS, has_capabilities=False),
    _profile(_OFFERED_FLAVORS, _FLAVORS, has_capabilities=True),
    _profile(_OFFERED_FLAVORS, _REGIONS, has_capabilities=True),
)


def _own(offered: JsonObject, mapped: JsonObject) -> JsonObject:
    images = {"machineImages": [_image("mine", "1", mapped)]}
    spec: JsonObject = {
        "parent": {"kind": "CloudProfile", "name": "aws"},
        "machineImages": [_image("mine", "1", offered)],
        "providerConfig": config("CloudProfileConfig", images),
    }
    return _object("NamespacedCloudProfile", "own", {"spec": spec}, _NAMESPACE)


_OWN: Final = (_own(_BOTH, _REGIONS), _own(_OFFERED_FLAVORS, _FLAVORS), _own(_BOTH, _FLAVORS))

_REGION_FIELDS: Final[Fields] = {"name": _PLACES, "ami": or_absent("ami-3", "", None)}
_VERSION_FIELDS: Final[Fields] = {
    "version": _NUMBERS,
    "regions": or_absent([], None),
    **below("regions.0", {**_REGION_FIELDS, "architecture": _ARCHITECTURES}),
    **below("regions.1", {**_REGION_FIELDS, "architecture": _ARCHITECTURES}),
    "capabilityFlavors": or_absent([], None, _FLAVORS["capabilityFlavors"]),
    "capabilityFlavors.0.capabilities": _CAPABILITIES,
    "capabilityFlavors.1.capabilities": _CAPABILITIES,
    "capabilityFlavors.1.regions": or_absent([], None),
    **below("capabilityFlavors.0.regions.0", _REGION_FIELDS),
    "capabilityFlavors.0.regions.0.architecture": or_absent("amd64", "", None),
}
_CONFIG_FIELDS: Final[Fields] = {
    "machineImages.0.name": _NAMES,
    **below("machineImages.0.versions.0", _VERSION_FIELDS),
    "machineImages.0.unknown": st.just(1),
}
_OFFERED_FIELDS: Final[Fields] = {
    "name": st.sampled_from(["gardenlinux", "mine", "other"]),
    "versions": st.sampled_from([[], [{"version": "1"}, {"version": "2"}]]),
    "versions.0.version": st.sampled_from(["1", "2"]),
    "versions.0.architectures": or_absent([], ["arm64"], ["amd64"], ["riscv"], ["amd64", "amd64"]),
    "versions.0.capabilityFlavors": or_absent([])
    | st.lists(
        st.fixed_dictionaries({}, optional={"architecture": _VALUES, "bootMode": _MODES}),
        max_size=2,
    ),
}
"""Fields that the API server decodes have the right types."""


def _more_images(mapped: JsonObject) -> SearchStrategy[Any]:
    one = st.builds(
        _image,
        st.sampled_from(["gardenlinux", "mine", "other"]),
        st.sampled_from(["1", "2"]),
        st.sampled_from([mapped, _REGIONS, _FLAVORS]),
    )
    return st.lists(one, max_size=3)


_PROVIDER_CONFIG: Final[Fields] = {
    **below("spec.providerConfig", {**free(_CONFIG_FIELDS), **TYPES}),
    "spec.providerConfig": or_absent(None, {}, [], "text", 1),
    "spec.providerConfig.machineImages": _more_images(_REGIONS),
}
_PROFILE_FIELDS: Final[Fields] = {
    **_PROVIDER_CONFIG,
    **below("spec.machineImages.0", _OFFERED_FIELDS),
    "spec.machineImages": _more_images(_BOTH),
    "spec.machineCapabilities": _DEFINED,
    **_DELETED,
}
_OWN_FIELDS: Final[Fields] = {
    **_PROVIDER_CONFIG,
    **below("spec.machineImages.0", _OFFERED_FIELDS),
    "spec.machineImages": _more_images(_BOTH),
    "spec.parent.name": st.sampled_from(["aws", "other", ""]),
    "spec.parent.kind": st.sampled_from(["CloudProfile", "NamespacedCloudProfile", ""]),
    **_DELETED,
}
_PARENTS: Final = one_of_changed(
    _PROFILES,
    {
        **below("spec.machineImages.0", _OFFERED_FIELDS),
        "spec.machineImages": _more_images(_OFFERED_FLAVORS),
        "spec.machineCapabilities": _DEFINED,
    },
    most=2,
)
"""CloudProfiles that NamespacedCloudProfiles extend."""
_BUCKET: Final = config(
    "BackupBucketConfig",
    {
        "immutability": {
            "retentionType": "bucket",
            "retentionPeriod": "48h",
            "mode": "compliance",
        }
    },
)
_PERIODS: Final = or_absent("24h", "72h", "0s", "-24h", "25h", "1d", "", "24", None, "1440m")
_BUCKET_FIELDS: Final[Fields] = {
    **free(
        {
            "immutability.retentionPeriod": _PERIODS,
            "immutability.retentionType": or_absent("bucket", "object", "", None),
            "immutability.mode": or_absent("governance", "compliance", "", "GOVERNANCE", None),
            "immutability.unknown": st.just(1),
        }
    ),
    **TYPES,
}
_REFERENCE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "name": "cloud",
    "namespace": _NAMESPACE,
}
_REFERENCE_FIELDS: Final[Fields] = {
    "kind": or_absent("Secret", "WorkloadIdentity", "InternalSecret", "ConfigMap", ""),
    "apiVersion": or_absent("v1", _SECURITY, _CORE, "", "v2", "a/b/c"),
}
_BACKED_UP: Final[Fields] = {
    **below("providerConfig", _BUCKET_FIELDS),
    "providerConfig": or_absent(None, {}, _BUCKET, 1),
    **below("credentialsRef", _REFERENCE_FIELDS),
    "credentialsRef": or_absent(None, {}),
}
_BACKUP: Final[JsonObject] = {"providerConfig": _BUCKET, "credentialsRef": _REFERENCE}
_BACKUP_BUCKET: Final = _object(
    "BackupBucket", "b", {"spec": {"provider": {"type": "aws", "region": "eu-west-1"}, **_BACKUP}}
)
_SEED: Final = _object(
    "Seed",
    "seed",
    {
        "spec": {
            "provider": {"type": "aws", "region": "eu-west-1"},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "backup": {"provider": "aws", **_BACKUP},
        }
    },
)
_SEED_FIELDS: Final[Fields] = {
    **below("spec.backup", _BACKED_UP),
    "spec.backup": or_absent(),
    "spec.backup.provider": st.sampled_from(["aws", "gcp"]),
    **_DELETED,
}

_KEYS: Final = {
    "accessKeyID": "AKIAIOSFODNN7EXAMPLE",
    "secretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}


def _encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def _texts(*texts: str | bytes) -> SearchStrategy[Any]:
    return or_absent(*map(_encoded, texts))


_KEY_IDS: Final = _texts(
    *("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPL", "AKIAIOSFODNN7EXAMPLES", ""),
    *("akiaiosfodnn7example", "AKIAIOSFODNN7EXAMPL\n", "AKIAIOSFODNN7EXAMPL\u00c4", b"\xff" * 20),
    *("\uff21" * 20, "A" * 5000),
)
_SECRET_KEYS: Final = _texts(
    *("a" * 40, "a" * 39, "a" * 41, "", "a" * 39 + "\n", "a" * 39 + "-", "=" * 40, b"\xff" * 40)
)
_KEY_REGIONS: Final = _texts(
    *("eu-west-1", "", "eu-west", "eu-west-\u0661", "EU-WEST-1", "-1", "a" * 30 + "-11"),
    *("eusc-de-east-1", "eu-west-1\n", "--1", "a-1-1"),
)
_DATA_FIELDS: Final[Fields] = {
    "accessKeyID": _KEY_IDS,
    "AWS_ACCESS_KEY_ID": _KEY_IDS,
    "secretAccessKey": _SECRET_KEYS,
    "AWS_SECRET_ACCESS_KEY": _SECRET_KEYS,
    "region": _KEY_REGIONS,
    "AWS_REGION": _KEY_REGIONS,
    "extra": _texts("a"),
    "roleARN": _texts("arn:aws:iam::123456789012:role/a"),
}
_SECRET: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "cloud", "namespace": _NAMESPACE},
    "type": "Opaque",
    "data": {name: _encoded(text) for name, text in _KEYS.items()},
}
_SECRET_FIELDS: Final[Fields] = {
    **below("data", _DATA_FIELDS),
    "data": or_absent({}),
    **_DELETED,
}
_ROLES: Final = or_absent(
    *("arn:aws:iam::123456789012:role/own", "arn:aws-cn:iam::123456789012:role/a/b/c", "", None),
    *("arn:aws:iam::12345678901:role/own", "arn:aws:iam::123456789012:role/", "arn:aws:iam"),
    *("arn:aws:iam::123456789012:role/a//b", "arn:aws:iam::123456789012:user/own"),
    *("arn:aws:iam:eu-west-1:123456789012:role/own", "arn:aws:iam::123456789012:role/\u00e4"),
    *("arn:aws:iam::\u0661\u0662\u0663456789012:role/own", "arn:aws:iam::123456789012:role/own\n"),
    *(" arn:aws:iam::123456789012:role/own", "arn:awsX:iam::123456789012:role/own"),
    "arn:aws:iam::123456789012:role/" + "a" * 3000,
)
_IDENTITY: Final = _object(
    "WorkloadIdentity",
    "cloud",
    {
        "spec": {
            "audiences": ["a"],
            "targetSystem": {
                "type": "aws",
                "providerConfig": config(
                    "WorkloadIdentityConfig", {"roleARN": "arn:aws:iam::123456789012:role/own"}
                ),
            },
        }
    },
    _NAMESPACE,
)
_IDENTITY_FIELDS: Final[Fields] = {
    **below("spec.targetSystem.providerConfig", {**free({"roleARN": _ROLES}), **TYPES}),
    "spec.targetSystem.providerConfig": or_absent(None, {}, 1),
    **_DELETED,
}
_SECRET_BINDING: Final = _object(
    "SecretBinding",
    "b",
    {
        "provider": {"type": "aws"},
        "secretRef": {"name": "cloud", "namespace": _NAMESPACE},
    },
    _NAMESPACE,
)
_CREDENTIALS_BINDING: Final = _object(
    "CredentialsBinding",
    "b",
    {"provider": {"type": "aws"}, "credentialsRef": _REFERENCE},
    _NAMESPACE,
)
_SECRET_BINDING_FIELDS: Final[Fields] = {
    "secretRef.name": st.just("other"),
    "provider.type": st.sampled_from(["aws", "gcp", "aws,gcp"]),
    **_DELETED,
}
_CREDENTIALS_BINDING_FIELDS: Final[Fields] = {
    **below("credentialsRef", _REFERENCE_FIELDS),
    "credentialsRef.name": st.just("other"),
    **_DELETED,
}


def _held(obj: JsonObject) -> JsonObject:
    """Return an object with a finalizer if it is being deleted."""
    if "deletionTimestamp" not in obj["metadata"]:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "finalizers": ["gardener"]}}


def _written(base: JsonObject, fields: Fields) -> SearchStrategy[JsonObject]:
    """Return questions about a new object, and about the change of one."""
    created = changes(fields).map(lambda made: {"object": _held(changed(base, made))})
    updated = st.tuples(changes(fields, most=1), changes(fields)).map(
        lambda made: {
            "object": _held(changed(changed(base, made[0]), made[1])),
            "old": _held(changed(base, made[0])),
        }
    )
    return created | updated


def _with(
    questions: SearchStrategy[JsonObject], others: SearchStrategy[list[JsonObject]]
) -> SearchStrategy[JsonObject]:
    return st.tuples(questions, others).map(lambda drawn: {**drawn[0], "others": drawn[1]})


def _internal(secret: JsonObject) -> JsonObject:
    return {**secret, "apiVersion": _CORE, "kind": "InternalSecret"}


_SECRETS: Final = one_of_changed([_SECRET], below("data", _DATA_FIELDS))
_CREDENTIALS: Final = st.tuples(
    _SECRETS,
    _SECRETS.map(_internal),
    one_of_changed(
        [_IDENTITY], {k: v for k, v in _IDENTITY_FIELDS.items() if k not in _DELETED}, most=1
    ),
).map(list)
_PROFILE_QUESTIONS: Final = st.one_of([_written(each, _PROFILE_FIELDS) for each in _PROFILES])
_OWN_QUESTIONS: Final = _with(
    st.one_of([_written(each, _OWN_FIELDS) for each in _OWN]), _PARENTS.map(lambda each: [each])
)
OBJECTS: Final[SearchStrategy[JsonObject]] = st.one_of(
    _PROFILE_QUESTIONS,
    _OWN_QUESTIONS,
    _written(_BACKUP_BUCKET, {**below("spec", _BACKED_UP), **_DELETED}),
    _written(_SEED, _SEED_FIELDS),
    _written(_SECRET, _SECRET_FIELDS),
    _written(_IDENTITY, _IDENTITY_FIELDS),
    _with(_written(_SECRET_BINDING, _SECRET_BINDING_FIELDS), _CREDENTIALS),
    _with(_written(_CREDENTIALS_BINDING, _CREDENTIALS_BINDING_FIELDS), _CREDENTIALS),
)
"""Objects of each kind with their changes, and what they refer to."""


def _status(parent: JsonObject) -> JsonObject:
    return {"cloudProfileSpec": parent["spec"], "observedGeneration": 1}


_MERGED: Final = st.tuples(
    one_of_changed(_OWN, _OWN_FIELDS),
    one_of_changed(_PROFILES, {**_PROVIDER_CONFIG, **_PROFILE_FIELDS}),
    st.sampled_from([1, 1, 1, 2]),
).map(
    lambda drawn: {
        "object": {
            **_held(drawn[0]),
            "metadata": {**_held(drawn[0])["metadata"], "generation": drawn[2]},
            "status": _status(drawn[1]),
        },
        "others": [{k: v for k, v in drawn[1].items() if k != "metadata"} | _NAMED],
    }
)
_NAMED: Final[JsonObject] = {"metadata": {"name": "aws"}}
FLAVORS: Final[SearchStrategy[JsonObject]] = st.one_of(
    one_of_changed(_PROFILES, _PROFILE_FIELDS).map(lambda each: {"object": _held(each)}),
    _MERGED,
    _MERGED,
)
"""CloudProfiles, and NamespacedCloudProfiles with the status that they have from a parent."""
