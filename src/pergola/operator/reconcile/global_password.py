"""The password of the observability hosts of all Seeds (spec 20 §10.4, §17.2).

The operator keeps it in the runtime cluster, for the garden's Prometheus, and replicates it to the
virtual cluster, where gardenlets read it. Up to Gardener 1.149, gardener-controller-manager
generates it in the virtual cluster, and it is replicated in the other direction.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of, uid_of
from pergola.bundle.versions import Version
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import format_selector
from pergola.operator.run.direct import MANAGER
from pergola.operator.run.run import Run
from pergola.secrets_manager import BasicAuth, Options

NAME: Final = "global-observability-ingress"
REPLICA: Final = {"gardener.cloud/purpose": "global-monitoring-secret-replica"}
"""The labels of a copy."""

_ROLE: Final = {"gardener.cloud/role": "global-monitoring"}
SEED_PASSWORD: Final = format_selector({"matchLabels": _ROLE})
"""Selects the Secret with the password, whether user-provided or not."""
_GENERATED_SINCE: Final = Version(1, 150)
_PREFIX: Final = "global-"
_ROTATED: Final = "last-rotation-initiation-time"
_MANAGED_BY: Final = "managed-by"


async def replicate(run: Run) -> None:
    """Provide the password in both clusters, and record its Secret's name in the landscape.

    Raises:
        OperatorError: Users provide more than one.
        NotConnected: The virtual cluster cannot be reached.
        SecretsManagerError: It cannot be generated.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    if Version.parse(run.current().gardener_version) >= _GENERATED_SINCE:
        secret = await _own(run)
        name = name_of(secret).removeprefix(_PREFIX)
        await _copy(virtual, secret, name, REPLICA | _ROLE | _rotation(secret))
        await _delete_copies(run.client, keep="")
        run.update(seed_password=name_of(secret))
        return
    found = await virtual.list(SECRET, NAMESPACE, labels=_selector(_ROLE))
    if found:
        secret = min(found, key=name_of)
        name = f"{_PREFIX}{name_of(secret)}"
        await _copy(run.client, secret, name, REPLICA)
        run.update(seed_password=name)


async def _own(run: Run) -> JsonObject:
    """Return the Secret that a user provides, or the generated one."""
    found = await run.client.list(SECRET, NAMESPACE, labels=_selector(_ROLE))
    provided = [each for each in found if _MANAGED_BY not in labels_of(each)]
    if len(provided) > 1:
        names = ", ".join(sorted(str(Key.of(each)) for each in provided))
        [label] = ("=".join(each) for each in _ROLE.items())
        raise OperatorError(
            f"there are {len(provided)} Secrets with the label {label} ({names}), but only one "
            "can be the password of all Seeds: remove the label of the others"
        )
    if provided:
        return provided[0]
    generated = await run.built.secrets.generate(BasicAuth(NAME), _OPTIONS)
    return generated.obj


_OPTIONS: Final = Options(labels=_ROLE, persist=True)


def _rotation(secret: JsonObject) -> dict[str, str]:
    """Return the label that announces a rotation to gardenlets; none for a user's Secret."""
    labels = labels_of(secret)
    return {_ROTATED: labels[_ROTATED]} if _ROTATED in labels else {}


async def _copy(client: Client, secret: JsonObject, name: str, labels: Mapping[str, str]) -> None:
    """Write the copy, and delete older ones."""
    current = await client.find(SECRET, Key(NAMESPACE, name))
    wanted = _replica(secret, name, labels)
    if current is None or (map_at(current, "data"), labels_of(current)) != (
        map_at(secret, "data"),
        dict(labels),
    ):
        if current is not None and _is_unchangeable(current, wanted):
            with suppress(NotFound):
                await client.delete(SECRET, Key.of(current), uid=uid_of(current))
        await client.apply(wanted, manager=MANAGER, force=True)
    await _delete_copies(client, keep=name)


def _is_unchangeable(current: JsonObject, wanted: JsonObject) -> bool:
    """Return whether the API server would refuse to change a copy: its Secret was recreated."""
    is_fixed = current.get("immutable") is True
    other_data = map_at(current, "data") != map_at(wanted, "data")
    other_type = current.get("type") != wanted["type"]
    return other_type or (is_fixed and (other_data or not wanted["immutable"]))


async def _delete_copies(client: Client, *, keep: str) -> None:
    copies = await client.list(SECRET, NAMESPACE, labels=_selector(REPLICA), metadata_only=True)
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


def _selector(labels: Mapping[str, str]) -> str:
    return format_selector({"matchLabels": dict(labels)})
