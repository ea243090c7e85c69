"""The kubeconfig of the virtual cluster, as a Secret of the runtime cluster has it.

The resource manager of the virtual cluster writes a token of 12 hours into it, and renews it in
time (spec 20 §15.5, spec 21 §12.2).
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pergola.cli.cluster_options import ClusterOptions

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.kube.client import Client

_DATA: Final = "kubeconfig"


class GardenAccessError(Exception):
    """There is no access to a virtual cluster; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """A kubeconfig of the virtual cluster.

    Attributes:
        secret: The Secret that contains it.
        document: The kubeconfig, with a token.
        expires: When the token expires; None if unknown.
    """

    secret: "Key"
    document: "JsonObject"
    token: str
    expires: datetime | None


async def observe_access(cluster: ClusterOptions, *, internal: bool) -> Access:
    """Return the access that a runtime cluster currently offers.

    Args:
        internal: Whether to use the Service in the runtime cluster rather than the public address.

    Raises:
        GardenAccessError: The cluster has no Garden, or its virtual cluster is not ready yet.
        KubeError: The runtime cluster refused, or did not answer.
    """
    from pergola.api.kinds import SECRET
    from pergola.api.objects import Key
    from pergola.garden.components.gardener_access import EXTERNAL, INTERNAL
    from pergola.garden.landscape import NAMESPACE
    from pergola.kube.client import Client

    config = cluster.config()
    key = Key(NAMESPACE, INTERNAL if internal else EXTERNAL)
    async with Client.connect(config) as client:
        secret = await client.find(SECRET, key)
        if secret is None:
            raise await _refused(client, config.context, f"Secret {key} does not exist")
        found = access_of(key, secret)
        if not found.token:
            raise await _refused(client, config.context, f"Secret {key} has no token yet")
    if found.expires is not None and found.expires <= datetime.now(UTC):
        raise GardenAccessError(
            f"the token in Secret {key} expired at {found.expires:%Y-%m-%d %H:%M} UTC: check that "
            f"Deployment {NAMESPACE}/virtual-garden-gardener-resource-manager runs, which renews it"
        )
    return found


def access_of(key: "Key", secret: "JsonObject") -> Access:
    """Return the kubeconfig in a Secret, without a token if it has none yet.

    Raises:
        GardenAccessError: The Secret contains something else.
    """
    from pergola.api.objects import map_at
    from pergola.kube.yaml import parse
    from pergola.resource_manager.controllers.token_requestor.kubeconfig import (
        KubeconfigError,
        credentials_in,
    )
    from pergola.resource_manager.controllers.token_requestor.observe import facts_of

    try:
        content = base64.b64decode(str(map_at(secret, "data").get(_DATA) or ""), validate=True)
        token = credentials_in(content).token if content else b""
        document = parse(content)
    except (binascii.Error, ValueError):
        raise GardenAccessError(f"Secret {key}: data.{_DATA} is not valid base64") from None
    except KubeconfigError as error:
        raise GardenAccessError(f"Secret {key}: data.{_DATA} {error}") from None
    facts = facts_of(token)
    parsed = document if isinstance(document, dict) else {}
    return Access(key, parsed, token.decode(), facts.expires if facts else None)


async def _refused(client: "Client", context: str, problem: str) -> GardenAccessError:
    """Return the error about missing access, including the Garden's status."""
    from pergola.api.objects import deletion_timestamp_of, map_at, name_of
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.kube.errors import UnknownKind

    try:
        gardens = await client.list(GARDEN)
    except UnknownKind:
        gardens = []
    if not gardens:
        return GardenAccessError(
            f'the cluster of context "{context}" has no Garden; name the runtime cluster with '
            "--kubeconfig or --context"
        )
    garden = gardens[0]
    if deletion_timestamp_of(garden):
        return GardenAccessError(f"Garden {name_of(garden)} is being deleted: {problem}")
    last = map_at(garden, "status", "lastOperation")
    state = f"{last.get('type')} is {last.get('state')} at {last.get('progress', 0)} %"
    progress = f"{state}: {last.get('description')}" if last else "no operation has started"
    return GardenAccessError(f"Garden {name_of(garden)} is not ready yet: {problem} ({progress})")
