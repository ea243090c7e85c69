"""The file with which controllers authenticate to AWS, in Secret `cloudprovider` (spec 31 §8)."""

import base64
from typing import Final

from pergola.api.objects import JsonObject, labels_of, map_at
from pergola.providers.aws.control_plane.credentials import WORKLOAD_IDENTITY_DIRECTORY
from pergola.providers.aws.workload_identity import role_of, text_in

_PROVIDER: Final = "workloadidentity.security.gardener.cloud/provider"
_KEY_ID: Final = "accessKeyID"
_SECRET_KEY: Final = "secretAccessKey"  # noqa: S105 - the key of a Secret
_FILE: Final = "credentialsFile"
_TOKEN_FILE: Final = f"{WORKLOAD_IDENTITY_DIRECTORY}/token"


def with_credentials_file(secret: JsonObject, region: str) -> JsonObject:
    """Return the Secret with a credentials file that contains its keys, or refers to its token.

    Raises:
        ExtensionError: the Secret has no credentials.
    """
    if labels_of(secret).get(_PROVIDER) == "aws":
        role = role_of(secret)
        lines = [f"web_identity_token_file={_TOKEN_FILE}", f"role_arn={role}"]
        added = {"roleARN": role, "workloadIdentityTokenFile": _TOKEN_FILE}
    else:
        key_id, key = text_in(secret, _KEY_ID), text_in(secret, _SECRET_KEY)
        lines = [f"aws_access_key_id={key_id}", f"aws_secret_access_key={key}"]
        added = {}
    added[_FILE] = "\n".join(["[default]", *lines, f"region={region}"])
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in added.items()}
    return {**secret, "data": {**map_at(secret, "data"), **encoded}}
