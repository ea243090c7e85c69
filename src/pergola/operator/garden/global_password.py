"""The password of the observability hosts of all Seeds (spec 20 §10.4, §12.2).

It is kept in the virtual cluster, where gardenlets read it, and replicated to the runtime cluster
for the garden's Prometheus. Up to Gardener 1.149 gardener-controller-manager generates it.
"""

from collections.abc import Mapping
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, name_of, uid_of
from pergola.bundle.versions import Version
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector
from pergola.operator.garden.build import IDENTITY
from pergola.operator.garden.direct import MANAGER
from pergola.operator.garden.landscape import NAMESPACE
from pergola.operator.garden.rotation_times import rotation_times
from pergola.operator.garden.run import Run
from pergola.secrets_manager import BasicAuth, Options, SecretsManager

NAME: Final = "global-observability-ingress"
REPLICA: Final = {"gardener.cloud/purpose": "global-monitoring-secret-replica"}
"""The labels of the Secret in the runtime cluster."""

_ROLE: Final = {"gardener.cloud/role": "global-monitoring"}
_GENERATED_SINCE: Final = Version(1, 150)
_PREFIX: Final = "global-"


async def replicate(run: Run) -> None:
    """Generate the password if that is up to the operator, and copy it to the runtime cluster.

    Raises:
        NotConnected: The virtual cluster cannot be reached.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    landscape = run.current()
    if Version.parse(landscape.gardener_version) >= _GENERATED_SINCE:
        times = rotation_times(landscape.rotation)
        manager = await SecretsManager.open(
            virtual, NAMESPACE, IDENTITY, clock=run.clock, rotation_times=times
        )
        secret = (await manager.generate(BasicAuth(NAME), Options(labels=_ROLE, persist=True))).obj
        await manager.cleanup()
    else:
        found = await virtual.list(SECRET, NAMESPACE, labels=_selector(_ROLE))
        if not found:
            return
        secret = min(found, key=name_of)
    run.update(seed_password=await _copy(run.client, secret))


async def _copy(runtime: Client, secret: JsonObject) -> str:
    """Write the copy, delete older ones, and return its name."""
    name = f"{_PREFIX}{name_of(secret)}"
    copies = await runtime.list(SECRET, NAMESPACE, labels=_selector(REPLICA))
    current = next((copy for copy in copies if name_of(copy) == name), None)
    if current is None or map_at(current, "data") != map_at(secret, "data"):
        await runtime.apply(_replica(name, secret), manager=MANAGER, force=True)
    for copy in copies:
        if name_of(copy) != name:
            await runtime.delete(SECRET, Key.of(copy), uid=uid_of(copy))
    return name


def _replica(name: str, secret: JsonObject) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": REPLICA},
        "type": secret.get("type", "Opaque"),
        "immutable": bool(secret.get("immutable")),
        "data": map_at(secret, "data"),
    }


def _selector(labels: Mapping[str, str]) -> str:
    return format_selector({"matchLabels": dict(labels)})
