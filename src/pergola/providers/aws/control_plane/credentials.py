"""The Secret with which the controllers of a control plane reach AWS (spec 31 §7.1)."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.extensions.control_planes import data_checksum
from pergola.providers.aws.workload_identity import has_workload_identity

SECRET_NAME: Final = "cloudprovider"  # noqa: S105 - the name of a Secret
"""The Secret with the credentials, beside the controllers."""
WORKLOAD_IDENTITY_DIRECTORY: Final = "/var/run/secrets/gardener.cloud/workload-identity"
"""The directory with the token in pods; AWS's own file formats refer to it."""
_TOKEN: Final = "token"  # noqa: S105 - the key of a Secret


def credentials_checksum(secret: JsonObject) -> str:
    """Return the checksum of a Secret for annotations of pods.

    A new token does not count: pods read it again by themselves.
    """
    data = map_at(secret, "data")
    if has_workload_identity(secret):
        data = {key: value for key, value in data.items() if key != _TOKEN}
    return data_checksum({"data": data})
