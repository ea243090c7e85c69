"""What AWS's extension reads besides Shoots: images, credentials, configs of backups."""

import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import AWS, Answer, OracleModule
from conformance.strategies.aws import TYPES, config
from conformance.strategies.changes import free, one_of_changed, or_absent
from conformance.subjects.aws_verdicts import compared
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
    CLOUD_PROFILE_CONFIG,
    CloudProfileConfig,
    known_capabilities,
    machine_capabilities,
)


class AwsBackupBucket:
    """The verdict about a BackupBucketConfig."""

    name = "aws-backup-bucket"
    title = "AWS: BackupBucketConfig"
    of: OracleModule = AWS
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


class AwsCredentials:
    """The identity in a Secret."""

    name = "aws-credentials"
    title = "AWS: Secrets with credentials"
    of: OracleModule = AWS
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
        return differences(answer.output, _identity(data))


class AwsImage:
    """The AMI for a machine, from the CloudProfile."""

    name = "aws-image"
    title = "AWS: CloudProfileConfig, images of machines"
    of: OracleModule = AWS
    code = ("pergola.providers.aws.cloud_profile_config",)

    def table(self) -> Iterator[JsonObject]:
        """Yield an image for each architecture."""
        yield _IMAGE
        yield {**_IMAGE, "machineType": {**_MACHINE, "architecture": "arm64"}}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return CloudProfiles with images by architecture, by capabilities, and both."""
        return st.fixed_dictionaries(
            {
                "config": st.lists(_version(), max_size=3).map(_config_of),
                "name": st.sampled_from(["gardenlinux"] * 6 + ["other"]),
                "version": st.sampled_from(["1.0.0"] * 6 + ["2.0.0"]),
                "region": st.sampled_from(["eu-west-1"] * 6 + ["eu-central-1"]),
            },
            optional={"machineType": _machine(), "machineCapabilities": _DEFINITIONS},
        ).map(lambda found: {**_IMAGE, **found})

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the AMIs."""
        value = question["config"]
        ours = read_leniently(CloudProfileConfig, value, CLOUD_PROFILE_CONFIG)
        known = known_capabilities(question)
        machine = machine_capabilities(question["machineType"], known)
        names = (question["name"], question["version"], question["region"])
        return differences(answer.output, {"ami": ours.ami(*names, machine, known)})


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


def _regions(*, architectures: bool) -> SearchStrategy[list[JsonObject]]:
    optional = {"architecture": st.sampled_from(["amd64", "arm64"])} if architectures else {}
    one = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["eu-west-1", "eu-west-1", "eu-central-1"]),
            "ami": st.sampled_from(["ami-1", "ami-2", "ami-3", "ami-4"]),
        },
        optional=optional,
    )
    return st.lists(one, max_size=3)


def _version() -> SearchStrategy[JsonObject]:
    flavor = st.fixed_dictionaries(
        {"regions": _regions(architectures=False)}, optional={"capabilities": _CAPABILITIES}
    )
    return st.fixed_dictionaries(
        {"version": st.sampled_from(["1.0.0", "1.0.0", "2.0.0"])},
        optional={
            "regions": _regions(architectures=True),
            "capabilityFlavors": st.lists(flavor, max_size=3),
        },
    )


def _machine() -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(
        {name: st.just(value) for name, value in _MACHINE.items()},
        optional={"capabilities": _CAPABILITIES},
    )


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
_TEXTS: Final[dict[str, list[str]]] = {
    "accessKeyID": ["AKIAIOSFODNN7EXAMPLE", "a", "", "a\n", " "],
    "secretAccessKey": ["a" * 40, "b", "", "b\n"],
    "region": ["eu-west-1", "", "eu-west-1\n"],
    "roleARN": ["arn:aws:iam::123456789012:role/a", ""],
    "token": ["t", ""],
    "config": [_IDENTITY_CONFIG, "", "{}", "text"],
    "other": ["a"],
}
_CAPABILITIES: Final = st.dictionaries(
    st.sampled_from(["architecture", "network"]),
    st.lists(st.sampled_from(["amd64", "arm64", "fast", "slow"]), min_size=1, max_size=2),
    max_size=2,
)
_DEFINITIONS: Final = st.sampled_from(
    [
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
)
_MACHINE: Final = {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"}
_IMAGE: Final = {
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
