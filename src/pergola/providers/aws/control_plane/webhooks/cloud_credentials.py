"""The file with which controllers authenticate to AWS, in Secret `cloudprovider` (spec 31 §8)."""

import base64
import binascii
from typing import Final

from pergola.api.objects import JsonObject, Key, labels_of, map_at
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_strict
from pergola.kube.yaml import YamlError, parse
from pergola.providers.aws.control_plane.credentials import WORKLOAD_IDENTITY_DIRECTORY
from pergola.providers.aws.workload_identity_config import (
    WORKLOAD_IDENTITY_CONFIG,
    WorkloadIdentityConfig,
)

_PROVIDER: Final = "workloadidentity.security.gardener.cloud/provider"
_KEY_ID: Final = "accessKeyID"
_SECRET_KEY: Final = "secretAccessKey"  # noqa: S105 - the key of a Secret
_CONFIG: Final = "config"
_FILE: Final = "credentialsFile"
_TOKEN_FILE: Final = f"{WORKLOAD_IDENTITY_DIRECTORY}/token"
_GVK: Final = WORKLOAD_IDENTITY_CONFIG


def with_credentials_file(secret: JsonObject, region: str) -> JsonObject:
    """Return the Secret with a credentials file that contains its keys, or refers to its token.

    Raises:
        ExtensionError: the Secret has no credentials.
    """
    if labels_of(secret).get(_PROVIDER) == "aws":
        role = _role_of(secret)
        lines = [f"web_identity_token_file={_TOKEN_FILE}", f"role_arn={role}"]
        added = {"roleARN": role, "workloadIdentityTokenFile": _TOKEN_FILE}
    else:
        key_id, key = _text(secret, _KEY_ID), _text(secret, _SECRET_KEY)
        lines = [f"aws_access_key_id={key_id}", f"aws_secret_access_key={key}"]
        added = {}
    added[_FILE] = "\n".join(["[default]", *lines, f"region={region}"])
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in added.items()}
    return {**secret, "data": {**map_at(secret, "data"), **encoded}}


def _role_of(secret: JsonObject) -> str:
    where = f"Secret {Key.of(secret)}: key {_CONFIG}"
    text = _text(secret, _CONFIG)
    try:
        config = parse(text)
        if config is None:
            raise configuration_problem(f"{where} is empty; it must be a {_GVK.kind}")
        found = read_strict(WorkloadIdentityConfig, config, _GVK, path=_CONFIG, needs_type=True)
    except (YamlError, Malformed) as error:
        raise configuration_problem(f"{where} is not a {_GVK.kind}: {error}") from None
    return found.role_arn


def _text(secret: JsonObject, key: str) -> str:
    value = map_at(secret, "data").get(key)
    title = f"Secret {Key.of(secret)}"
    if not isinstance(value, str):
        raise configuration_problem(f"{title} has no key {key}, which access to AWS needs")
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        raise configuration_problem(f"{title}: key {key} is not base64 of a text") from None
