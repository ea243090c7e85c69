"""Why an extension seems to ignore a request (spec 40 Beyond 5).

Waiting for an extension that is down looks like waiting for a working one. These are the reasons
why an extension silently ignores an object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pergola.api.kinds import LEASE
from pergola.api.leases import holder_of
from pergola.api.marks import OPERATION, OPERATION_RECONCILE, OPERATION_WAIT_FOR_STATE
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, namespace_of
from pergola.extension_api.caller.readiness import is_pending
from pergola.extension_api.caller.wait import Explain
from pergola.extension_api.cluster import CLUSTER, Cluster, MalformedCluster
from pergola.extension_api.heartbeat import LABEL, NAME, is_alive
from pergola.extension_api.kinds import STOPPED_BY_FAILURE
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound
from pergola.kube.selectors import select_name
from pergola.kube.states import State
from pergola.runtime.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """The extension that is responsible for an object.

    Attributes:
        name: the holder of its heartbeat, e.g. `networking-calico`; if empty, any name of the form
            `<something>-<type>`, where `provider-aws` also fits the type `aws-route53`.
        namespace: where it runs; all namespaces are searched if empty.
    """

    name: str = ""
    namespace: str = ""


def explainer(client: Client, clock: Clock, extension: Extension | None = None) -> Explain:
    """Return a function that explains why an object does not reach the desired state."""
    who = extension or Extension()

    async def explain(state: State) -> str:
        if state is None:
            return ""
        try:
            return (
                object_symptom(state)
                or await _cluster_symptom(client, state)
                or await _heartbeat_symptom(client, state, who, clock.now())
            )
        except KubeError:  # without permission to read these, there is no explanation
            return ""

    return explain


def object_symptom(obj: JsonObject) -> str:
    """Return the reason in the object itself; empty if there is none."""
    if annotations_of(obj).get(OPERATION) == OPERATION_WAIT_FOR_STATE:
        return "it waits for its state: the operation restore continues"
    operation = map_at(obj, "status", "lastOperation")
    migrated = operation.get("type") == "Migrate" and operation.get("state") == "Succeeded"
    if migrated and annotations_of(obj).get(OPERATION, OPERATION_RECONCILE) == OPERATION_RECONCILE:
        return "it was migrated away: only the operation restore brings it back"
    return ""


def cluster_symptom(cluster: Cluster | None, name: str, kind: str) -> str:
    """Return the reason in the Cluster of the object's namespace; empty if there is none.

    Args:
        kind: that of the object: some are served even if the Shoot has failed.
    """
    if cluster is None:
        return f"Cluster {name} does not exist: extensions wait until it is created"
    has_failed = cluster.shoot is not None and cluster.shoot.is_failed
    if has_failed and kind in STOPPED_BY_FAILURE:
        return f"the Shoot in Cluster {name} is Failed: extensions do nothing until it is retried"
    return ""


def heartbeat_symptom(
    leases: Sequence[JsonObject], extension_type: str, name: str, now: datetime
) -> str:
    """Return the problem of a type's extension according to heartbeats.

    Args:
        name: the name of the extension; if empty, any that fits the type. Extensions may have other
            names, so the absence of one that fits proves nothing.
    """
    serving = [lease for lease in leases if _serves(holder_of(lease), extension_type, name)]
    if not serving:
        known = ", ".join(sorted({holder_of(lease) for lease in leases} - {""})) or "none"
        if name or known == "none":
            who = f"extension {name}" if name else f"an extension for type {extension_type}"
            return f"{who} has no heartbeat (seen: {known}): is it installed and running?"
        return f"perhaps none of those that run serves type {extension_type} (they are {known})"
    return is_alive(max(serving, key=_last_beat), now) or ""


def _serves(holder: str, extension_type: str, name: str) -> bool:
    if name:
        return holder == name
    served = holder.partition("-")[2]
    return bool(served) and f"{extension_type}-".startswith(f"{served}-")


async def _cluster_symptom(client: Client, obj: JsonObject) -> str:
    name = namespace_of(obj)
    if not name or map_at(obj, "spec").get("class") not in (None, "", "shoot"):
        return ""
    try:
        cluster = Cluster.from_object(await client.get(CLUSTER, Key("", name)))
    except NotFound:
        return cluster_symptom(None, name, str(obj.get("kind")))
    except MalformedCluster as error:
        return str(error)
    return cluster_symptom(cluster, name, str(obj.get("kind")))


async def _heartbeat_symptom(
    client: Client, obj: JsonObject, extension: Extension, now: datetime
) -> str:
    if not is_pending(obj) and map_at(obj, "status", "lastOperation"):
        return ""
    found = await client.list(LEASE, extension.namespace or None, fields=select_name(NAME))
    found = [*found, *await client.list(LEASE, extension.namespace or None, labels=LABEL)]
    return heartbeat_symptom(found, str(map_at(obj, "spec").get("type")), extension.name, now)


def _last_beat(lease: JsonObject) -> str:
    return str(map_at(lease, "spec").get("renewTime") or "")
