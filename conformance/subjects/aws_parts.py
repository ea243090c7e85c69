"""Inputs of the extension for AWS other than Shoots: images, credentials, configs of backups."""

import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import Answer
from conformance.strategies.aws import TYPES, config
from conformance.strategies.fields import free, one_of_changed, or_absent
from conformance.subjects.aws_verdicts import OfAws, compared
from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.cloud.aws.credentials import credentials_of, region_of
from pergola.cloud.aws.identity import role_of
from pergola.cloud.errors import CredentialsInvalid
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.provider_config import read_leniently
from pergola.providers.aws.backup import retention_of
from pergola.providers.aws.cloud_profile_config import (
    AMD64,
    CLOUD_PROFILE_CONFIG,
    CloudProfileConfig,
)
from pergola.providers.aws.image_selection import definitions, flavor, machine_capabilities


class AwsBackupBucket(OfAws):
    """The verdict about a BackupBucketConfig."""

    name = "aws-backup-bucket"
    title = "AWS: BackupBucketConfig"
    code = ("pergola.extensions.provider_config",)

    def table(self) -> Iterator[JsonObject]:
        """Yield no config, one without content, and one with all."""
        for value in (None, config("BackupBucketConfig", {}), _BUCKET):
            yield {"config": value}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return configs with a few odd fields."""
        found = one_of_changed([_BUCKET, config("BackupBucketConfig", {})], _BUCKET_FIELDS)
        return found.map(lambda value: {"config": value})

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts."""
        ours: list[Cause] = []
        try:
            retention_of({"spec": {"providerConfig": question["config"]}})
        except (Malformed, ExtensionError) as error:
            ours.append(Cause("Invalid", str(error), ""))
        return compared(answer, ours)


class AwsCredentials(OfAws):
    """The identity in a Secret."""

    name = "aws-credentials"
    title = "AWS: Secrets with credentials"
    code = ("pergola.cloud.aws.credentials", "pergola.cloud.aws.identity")

    def table(self) -> Iterator[JsonObject]:
        """Yield keys, a role, and nothing."""
        for data in (_KEYS, _ROLE, {}):
            yield {"data": _encoded(data)}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Secrets with any of the fields, and odd texts in them."""
        fields = {name: st.sampled_from(texts) for name, texts in _TEXTS.items()}
        found = st.fixed_dictionaries({}, optional=fields)
        return found.map(lambda data: {"data": _encoded(data)})

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the identities; an error is one without fields."""
        data = {name: base64.b64decode(value) for name, value in question["data"].items()}
        odd = any(value.strip() != value for value in data.values())
        empty = any(data.get(name) == b"" for name in _NEEDED)
        note = " with spaces" * odd + " with an empty text" * empty
        for each in differences(answer.output, _identity(data)):
            yield msgspec.structs.replace(each, path=each.path + note)


class AwsImage(OfAws):
    """The AMI for a machine, from the CloudProfile."""

    name = "aws-image"
    title = "AWS: CloudProfileConfig, images of machines"
    code = (
        "pergola.providers.aws.cloud_profile_config",
        "pergola.providers.aws.image_selection",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield an image for each architecture."""
        yield _IMAGE
        arm = {**_MACHINE, "architecture": "arm64"}
        yield {**_IMAGE, "machineType": arm, "architecture": "arm64"}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return CloudProfiles with images by architecture, by capabilities, and both."""
        return st.one_of([_images(definitions) for definitions in _DEFINITIONS])

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the AMIs."""
        value = question["config"]
        ours = read_leniently(CloudProfileConfig, value, CLOUD_PROFILE_CONFIG)
        known = definitions(question)
        machine_type = question["machineType"]
        architecture = str(machine_type.get("architecture") or AMD64)
        machine = machine_capabilities(machine_type, architecture, known)
        names = (question["name"], question["version"], question["region"])
        found = flavor(ours, *names, machine, known)
        return differences(answer.output.get("ami"), found and found.ami, "ami")


def _encoded(data: JsonObject) -> JsonObject:
    return {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}


def _identity(data: dict[str, bytes]) -> JsonObject:
    try:
        role = role_of(data, "Secret")
        if role is not None:
            return {"role": role, "region": region_of(data)}
        keys = credentials_of(data, "Secret")
    except CredentialsInvalid:
        return {}
    return {"id": keys.access_key_id, "secret": keys.secret_access_key, "region": region_of(data)}


def _config_of(versions: list[JsonObject]) -> JsonObject:
    images = [{"name": "gardenlinux", "versions": versions}]
    return config("CloudProfileConfig", {"machineImages": images})


def _images(definitions: list[JsonObject]) -> SearchStrategy[JsonObject]:
    """Return questions with images that a CloudProfile with these definitions may have."""
    capabilities = _capabilities(definitions)
    flavor = st.fixed_dictionaries({"regions": _REGIONS}, optional={"capabilities": capabilities})
    flavors = st.lists(flavor, min_size=1, max_size=3)
    architectures = next(
        (each["values"] for each in definitions if each["name"] == "architecture"),
        ["amd64", "arm64"],
    )
    version = _OLD_VERSION
    if definitions:
        version |= st.fixed_dictionaries({"version": _VERSIONS, "capabilityFlavors": flavors})
    return st.fixed_dictionaries(
        {
            "config": st.lists(version, max_size=3).map(_config_of),
            "name": st.sampled_from(["gardenlinux"] * 6 + ["other"]),
            "version": _VERSIONS,
            "region": st.sampled_from(["eu-west-1"] * 6 + ["eu-central-1"]),
            "machineCapabilities": st.just(definitions),
            "machineType": st.fixed_dictionaries(
                {name: st.just(value) for name, value in _MACHINE.items()},
                optional={"capabilities": capabilities} if definitions else {},
            ),
            "architecture": st.sampled_from(architectures),
        },
    ).map(_image)


def _place_of(image: Any) -> tuple[str, str]:
    return str(image["name"]), str(image.get("architecture", "amd64"))


def _image(found: JsonObject) -> JsonObject:
    """Return a question; the API server defaults the architecture of a pool to its machine's."""
    machine = {**found["machineType"], "architecture": found["architecture"]}
    return {**_IMAGE, **found, "machineType": machine}


def _capabilities(definitions: list[JsonObject]) -> SearchStrategy[JsonObject]:
    values = {
        str(each["name"]): st.lists(st.sampled_from(each["values"]), min_size=1, unique=True)
        for each in definitions
    }
    return st.fixed_dictionaries({}, optional=values)


_BUCKET: Final = config(
    "BackupBucketConfig",
    {
        "immutability": {
            "retentionPeriod": "48h",
            "retentionType": "bucket",
            "mode": "compliance",
        }
    },
)
_BUCKET_FIELDS: Final[dict[str, SearchStrategy[Any]]] = free(
    {
        "immutability.retentionPeriod": or_absent(
            *("24h", "24h0m0s", "1440m", "0", "0s", "-24h", "23h", "25h", "24h1ns", "1d", "", "24"),
            *("24.0h", "+24h", ".5h", "1e3h", "24H", " 24h", "2400000h", "3000000h", "86400s"),
            *(
                "24h0",
                "8760h",
                "24h0m0.0s",
                "86400000ms",
                "86400000000us",
                "86400000000µs",
                "\uff11h",
            ),
            86400,
            None,
        ),
        "immutability.retentionType": or_absent("bucket", "object", "", "Bucket", None),
        "immutability.mode": or_absent("governance", "compliance", "", "GOVERNANCE", None),
    }
    | TYPES
)
_KEYS: Final = {"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "a" * 40}
_ROLE: Final = {"roleARN": "arn:aws:iam::123456789012:role/a", "token": "t"}
_IDENTITY_CONFIG: Final = (
    '{"apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", '
    '"kind": "WorkloadIdentityConfig", "roleARN": "arn:aws:iam::123456789012:role/b"}'
)
_NEEDED: Final = ("accessKeyID", "secretAccessKey", "roleARN", "token")
_TEXTS: Final[dict[str, list[str]]] = {
    "accessKeyID": ["AKIAIOSFODNN7EXAMPLE", "a", "", "a\n", " "],
    "secretAccessKey": ["a" * 40, "b", "", "b\n"],
    "region": ["eu-west-1", "", "eu-west-1\n"],
    "roleARN": ["arn:aws:iam::123456789012:role/a", ""],
    "token": ["t", ""],
    "config": [_IDENTITY_CONFIG, "", "{}", "text"],
    "other": ["a"],
}
_DEFINITIONS: Final[list[list[JsonObject]]] = [
    [],
    [{"name": "architecture", "values": ["amd64", "arm64"]}],
    [{"name": "architecture", "values": ["arm64"]}],
    [
        {"name": "architecture", "values": ["amd64", "arm64"]},
        {"name": "network", "values": ["fast", "slow"]},
    ],
    [
        {"name": "network", "values": ["slow", "fast"]},
        {"name": "architecture", "values": ["arm64", "amd64"]},
    ],
]
_AMIS: Final = st.sampled_from([f"ami-{number}" for number in range(9)])
_REGION_NAMES: Final = st.sampled_from(["eu-west-1", "eu-west-1", "eu-central-1"])
_REGIONS: Final = st.lists(
    st.fixed_dictionaries({"name": _REGION_NAMES, "ami": _AMIS}),
    min_size=1,
    max_size=2,
    unique_by=lambda region: str(region["name"]),
)
_VERSIONS: Final = st.sampled_from(["1.0.0"] * 6 + ["2.0.0"])
_OLD_VERSION: Final = st.fixed_dictionaries(
    {
        "version": _VERSIONS,
        "regions": st.lists(
            st.fixed_dictionaries(
                {"name": _REGION_NAMES, "ami": _AMIS},
                optional={"architecture": st.sampled_from(["amd64", "arm64"])},
            ),
            min_size=1,
            max_size=3,
            unique_by=_place_of,
        ),
    }
)
_MACHINE: Final[JsonObject] = {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"}
_IMAGE: Final[JsonObject] = {
    "config": _config_of(
        [
            {
                "version": "1.0.0",
                "regions": [
                    {"name": "eu-west-1", "ami": "ami-1"},
                    {"name": "eu-west-1", "ami": "ami-2", "architecture": "arm64"},
                ],
            }
        ]
    ),
    "machineType": _MACHINE,
    "name": "gardenlinux",
    "version": "1.0.0",
    "region": "eu-west-1",
}
