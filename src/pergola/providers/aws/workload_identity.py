"""Workload identities: a Secret with a token for a role in AWS, instead of keys (spec 31 §8)."""

import binascii
from base64 import b64decode
from typing import Final

from msgspec import field

from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.api.schema.declare import Value
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_strict
from pergola.kube.yaml import YamlError, parse
from pergola.providers.aws.config import GROUP

WORKLOAD_IDENTITY: Final = GroupVersionKind(
    "security.gardener.cloud", "v1alpha1", "WorkloadIdentity"
)
WORKLOAD_IDENTITY_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "WorkloadIdentityConfig")
_PURPOSE: Final = "security.gardener.cloud/purpose"
_REQUESTOR: Final = "workload-identity-token-requestor"
_CONFIG: Final = "config"


class WorkloadIdentityConfig(Value):
    """`WorkloadIdentityConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1`."""

    role_arn: str = field(name="roleARN")
    """The ARN of the role."""


def has_workload_identity(secret: JsonObject) -> bool:
    """Return whether a Secret has a token for a role, instead of keys."""
    return labels_of(secret).get(_PURPOSE) == _REQUESTOR


def role_of(secret: JsonObject) -> str:
    """Return the ARN of the role that the workload identity of a Secret takes.

    Raises:
        ExtensionError: the Secret has no valid configuration.
    """
    where = f"Secret {Key.of(secret)}: key {_CONFIG}"
    gvk = WORKLOAD_IDENTITY_CONFIG
    text = text_in(secret, _CONFIG)
    try:
        config = parse(text)
        if config is None:
            raise configuration_problem(f"{where} is empty; it must be a {gvk.kind}")
        found = read_strict(WorkloadIdentityConfig, config, gvk, path=_CONFIG, needs_type=True)
    except (YamlError, Malformed) as error:
        raise configuration_problem(f"{where} is not a {gvk.kind}: {error}") from None
    return found.role_arn


def text_in(secret: JsonObject, key: str) -> str:
    """Return the text under a key of a Secret with credentials.

    Raises:
        ExtensionError: there is none.
    """
    value = map_at(secret, "data").get(key)
    title = f"Secret {Key.of(secret)}"
    if not isinstance(value, str):
        raise configuration_problem(f"{title} has no key {key}, which access to AWS needs")
    try:
        return b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        raise configuration_problem(f"{title}: key {key} is not base64 of a text") from None
