"""The controller `csr-approver`: when a request is decided, and the write (spec 11 §3).

While Node and Machines may still change (the Machine is labelled after the kubelet's request,
addresses appear one by one), a denial waits until the request is `patience` old. The request's own
timestamp counts, so a restart does not grant a second grace period.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pergola.api.kinds import CSR, NODE
from pergola.api.objects import JsonObject, Key, map_at, maps_at, metadata_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.resource_manager.controllers.csr_approver.judge import (
    KUBELET_SERVING,
    Judge,
    Judged,
    Seen,
)
from pergola.resource_manager.controllers.csr_approver.rules import (
    Approved,
    Denied,
    Machine,
    Node,
    Verdict,
    node_name,
)
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch, changed, exists
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("csr-approver")

API_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
DEADLINE_SECONDS: Final = 180.0
DENIED_EVENT: Final = "CertificateSigningRequestDenied"
PENDING_EVENT: Final = "CertificateSigningRequestPending"
_DECISIONS: Final = frozenset({"Approved", "Denied"})
_FIRST_WAIT: Final = timedelta(seconds=1)
_WHAT: Final = {
    KUBELET_SERVING: "kubelet server certificate",
    API_CLIENT: "gardener-node-agent certificate",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the approver.

    Attributes:
        workers: The number of requests to decide in parallel.
        machine_namespace: Of the Machines in the source cluster; None if Nodes have no Machines.
        patience: The minimum age of a request before it is denied for a reason that may still
            resolve itself.
    """

    workers: int = 1
    machine_namespace: str | None = None
    patience: timedelta = timedelta(seconds=30)


def csr_approver(
    source: Client,
    target: Client,
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller that decides the CertificateSigningRequests of nodes.

    Args:
        source: For the cluster with the Machines.
        target: For the cluster with the requests and Nodes; also receives the Events.
    """
    clock = clock or SystemClock()
    recorder = Recorder(target, "csr-approver-controller", clock=clock)
    requests = {signer: _undecided(target, signer) for signer in _WHAT}
    by_node = Index(requests[KUBELET_SERVING], _node_names)
    seen = Seen(source, target, settings.machine_namespace)
    judge = Judge(source, target, settings.machine_namespace, seen)
    approver = Approver(target, requests, judge, seen, settings.patience, clock, recorder)

    def of_node(change: Change[Node]) -> Collection[Key]:
        return by_node.keys(change.key.name)

    def of_machine(change: Change[Machine]) -> Collection[Key]:
        nodes = {machine.node for machine in (change.old, change.new) if machine}
        return {key for node in nodes for key in by_node.keys(node)}

    watches: list[Watch[Any, Key]] = [Watch(cache, when=exists) for cache in requests.values()]
    watches.append(Watch(seen.nodes, to=of_node, when=changed))
    if seen.machines is not None:
        watches.append(Watch(seen.machines, to=of_machine, when=changed))
    return Controller(
        "csr-approver",
        approver.reconcile,
        watches=watches,
        workers=settings.workers,
        metrics=metrics,
        deadline=DEADLINE_SECONDS,
        tasks=[recorder.run],
    )


class Approver:
    """The reconciler of undecided requests.

    Args:
        client: Of the target cluster, which holds the requests.
        requests: The undecided requests by signer.
        patience: The minimum age of a request before it is denied for a reason that may still
            resolve itself.
    """

    def __init__(
        self,
        client: Client,
        requests: dict[str, Cache[JsonObject | None]],
        judge: Judge,
        seen: Seen,
        patience: timedelta,
        clock: Clock,
        recorder: Recorder,
    ) -> None:
        self._client = client
        self._requests = requests
        self._judge = judge
        self._seen = seen
        self._patience = patience
        self._clock = clock
        self._recorder = recorder

    async def reconcile(self, key: Key) -> Outcome:
        """Decide a request if it is ours and the decision is due."""
        found = (cache.get(key) for cache in self._requests.values())
        csr = next((csr for csr in found if csr is not None), None)
        judged = await self._judge.judge(csr) if csr else None
        if csr is None or judged is None:
            return DONE
        if isinstance(judged.verdict, Denied) and judged.verdict.may_pass:
            wait = seconds_to_wait(_created(csr), self._clock.now(), self._patience)
            if wait > 0:
                self._report_waiting(csr, judged, judged.verdict)
                return Again(wait)
        await self._write(csr, judged)
        return DONE

    async def _write(self, csr: JsonObject, judged: Judged) -> None:
        verdict, name = judged.verdict, Key.of(csr).name
        try:
            written = await self._client.update(decided(csr, verdict), subresource="approval")
        except NotFound:
            return
        self._requests[map_at(csr, "spec")["signerName"]].observe(written)
        if isinstance(verdict, Approved):
            log.info("csr approved", csr=name)
            return
        log.info("csr denied", csr=name, reason=verdict.reason)
        self._warn(csr, judged, DENIED_EVENT, f"denied the csr {name}: {verdict.reason}")

    def _report_waiting(self, csr: JsonObject, judged: Judged, denied: Denied) -> None:
        """Record at once why a request is pending; the denial may be half a minute away."""
        name = Key.of(csr).name
        log.info("denial waits", csr=name, reason=denied.reason)
        note = (
            f"the csr {name} is pending: {denied.reason}; it will be denied "
            f"{self._patience.total_seconds():.0f}s after its creation unless that changes"
        )
        self._warn(csr, judged, PENDING_EVENT, note)

    def _warn(self, csr: JsonObject, judged: Judged, reason: str, note: str) -> None:
        """Report about the Node if it exists, else about the request."""
        key = Key("", judged.node)
        node = self._seen.nodes.get(key)
        regarding = Regarding(NODE, key, node.uid) if node else Regarding.of(csr)
        self._recorder.warning(regarding, reason, note)


def decided(csr: JsonObject, verdict: Verdict) -> JsonObject:
    """Return the request with its decision as an additional condition."""
    what = _WHAT[map_at(csr, "spec")["signerName"]]
    if isinstance(verdict, Approved):
        kind, message = "Approved", f"Approving {what} CSR (all checks passed)"
    else:
        kind, message = "Denied", f"Denying {what} CSR ({verdict.reason})"
    reason = "RequestApproved" if kind == "Approved" else "RequestDenied"
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    conditions = [*maps_at(csr, "status", "conditions"), condition]
    return {**csr, "status": {**map_at(csr, "status"), "conditions": conditions}}


def seconds_to_wait(created: datetime, now: datetime, patience: timedelta) -> float:
    """Return the seconds until a request is judged again; 0 if it may be denied now.

    The pause equals the age of the request, but is at least one second: about six runs in half a
    minute. A request with a timestamp in the future has no usable age, so it gets no grace period.
    """
    age = now - created
    if not -patience < age < patience:
        return 0.0
    wait = max(age, _FIRST_WAIT)
    return min(wait, patience - age).total_seconds()


def keep_undecided(csr: JsonObject) -> JsonObject | None:
    """Return the whole request, which will be written back, or None once it is decided."""
    conditions = maps_at(csr, "status", "conditions")
    decided = any(condition.get("type") in _DECISIONS for condition in conditions)
    return None if decided or map_at(csr, "status").get("certificate") else csr


def _undecided(client: Client, signer: str) -> Cache[JsonObject | None]:
    return Cache(client, CSR, keep_undecided, fields=f"spec.signerName={signer}")


def _node_names(_: Key, csr: JsonObject | None) -> Collection[str]:
    name = node_name(map_at(csr, "spec").get("username") or "") if csr else ""
    return (name,) if name else ()


def _created(csr: JsonObject) -> datetime:
    return datetime.fromisoformat(metadata_of(csr)["creationTimestamp"])
