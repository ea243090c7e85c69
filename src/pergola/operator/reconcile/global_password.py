"""Providing the password of the observability hosts of all Seeds (spec 20 §10.4, §17.2).

The operator keeps it in the runtime cluster, for the garden's Prometheus, and replicates it to the
virtual cluster, where gardenlets read it. Up to Gardener 1.149, gardener-controller-manager
generates it in the virtual cluster, and it is replicated in the other direction.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of, uid_of
from pergola.garden.components.observability.global_password import (
    COPIES,
    NAME,
    REPLICA,
    ROLE,
    SEED_PASSWORD,
    is_generated_here,
    provided,
)
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.credentials import Credential
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.operator.run.direct import MANAGER
from pergola.operator.run.run import Run
from pergola.secrets_manager import BasicAuth, Options

_PREFIX: Final = "global-"
_ROTATED: Final = "last-rotation-initiation-time"
_GENERATED: Final = Credential(BasicAuth(NAME), Options(labels=ROLE, persist=True))


async def replicate(run: Run) -> None:
    """Provide the password in both clusters.

    Raises:
        OperatorError: Users provide more than one.
        NotConnected: The virtual cluster cannot be reached.
        SecretsManagerError: It cannot be generated.
        KubeError: A cluster refused, or did not answer.
    """
    if is_generated_here(run.current()):
        secret = await _own(run)
        virtual = await run.virtual_client()
        name = name_of(secret).removeprefix(_PREFIX)
        await _copy(virtual, secret, name, REPLICA | ROLE | _rotation(secret))
        await _delete_copies(run.client, keep="")
        return
    virtual = await run.virtual_client()
    found = await virtual.list(SECRET, NAMESPACE, labels=SEED_PASSWORD)
    if found:
        secret = min(found, key=name_of)
        await _copy(run.client, secret, f"{_PREFIX}{name_of(secret)}", REPLICA)


async def _own(run: Run) -> JsonObject:
    """Return the Secret that a user provides, or the generated one."""
    secret = await provided(run.client)
    if secret is None:
        await run.generate([_GENERATED])
        secret = run.current().credentials.current(NAME).obj
    return secret


def _rotation(secret: JsonObject) -> dict[str, str]:
    """Return the label that announces a rotation to gardenlets; none for a user's Secret."""
    labels = labels_of(secret)
    return {_ROTATED: labels[_ROTATED]} if _ROTATED in labels else {}


async def _copy(client: Client, secret: JsonObject, name: str, labels: Mapping[str, str]) -> None:
    """Write the copy, and delete older ones."""
    current = await client.find(SECRET, Key(NAMESPACE, name))
    desired = _replica(secret, name, labels)
    if current is None or (map_at(current, "data"), labels_of(current)) != (
        map_at(secret, "data"),
        dict(labels),
    ):
        if current is not None and _is_unchangeable(current, desired):
            with suppress(NotFound):
                await client.delete(SECRET, Key.of(current), uid=uid_of(current))
        await client.apply(desired, manager=MANAGER, force=True)
    await _delete_copies(client, keep=name)


def _is_unchangeable(current: JsonObject, desired: JsonObject) -> bool:
    """Return whether the API server would refuse to change a copy: its Secret was recreated."""
    is_fixed = current.get("immutable") is True
    other_data = map_at(current, "data") != map_at(desired, "data")
    other_type = current.get("type") != desired["type"]
    return other_type or (is_fixed and (other_data or not desired["immutable"]))


async def _delete_copies(client: Client, *, keep: str) -> None:
    copies = await client.list(SECRET, NAMESPACE, labels=COPIES, metadata_only=True)
    for copy in copies:
        if name_of(copy) != keep:
            await client.delete(SECRET, Key.of(copy), uid=uid_of(copy))


def _replica(secret: JsonObject, name: str, labels: Mapping[str, str]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "type": secret.get("type", "Opaque"),
        "immutable": bool(secret.get("immutable")),
        "data": map_at(secret, "data"),
    }
