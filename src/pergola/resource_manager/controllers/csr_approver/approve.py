"""Decisions about CertificateSigningRequests of nodes (spec 11 §3).

The approval of a kubelet's request may rely on cached state. A denial is final, so it never does:
Node and Machines are read again first. While they may still change (the Machine is labelled after
the kubelet's request, addresses appear one by one), the denial waits until the request is
`patience` old. The request's own timestamp counts, so a restart does not grant a second grace
period.

A request that cannot be decoded is denied if it is for a kubelet's serving certificate, which has
no other approver; other requests may have one and are ignored.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.kinds import NODE
from pergola.api.objects import JsonObject, Key, map_at, maps_at, metadata_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.resource_manager.controllers.csr_approver import rules
from pergola.resource_manager.controllers.csr_approver.observe import Live, Seen
from pergola.resource_manager.controllers.csr_approver.request import (
    Request,
    UndecodableRequest,
    decode,
)
from pergola.resource_manager.controllers.csr_approver.requests import (
    API_CLIENT,
    KUBELET_SERVING,
    Requests,
)
from pergola.resource_manager.controllers.csr_approver.rules import (
    Approved,
    Denied,
    Machine,
    Verdict,
)
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger

log = get_logger("csr-approver")

DENIED_EVENT: Final = "CertificateSigningRequestDenied"
PENDING_EVENT: Final = "CertificateSigningRequestPending"
_FIRST_WAIT: Final = timedelta(seconds=1)
_WHAT: Final = {
    KUBELET_SERVING: "kubelet server certificate",
    API_CLIENT: "gardener-node-agent certificate",
}


class Judged(NamedTuple):
    """A verdict, and the name of the Node it concerns; empty if unknown."""

    verdict: Verdict
    node: str = ""


class Approver:
    """The reconciler of undecided requests.

    Args:
        client: Of the target cluster, which holds the requests.
        namespace: Of the Machines; None if Nodes have no Machines.
        patience: The minimum age of a request before it is denied for a reason that may still
            resolve itself.
    """

    def __init__(
        self,
        client: Client,
        requests: Requests,
        seen: Seen,
        live: Live,
        *,
        namespace: str | None,
        patience: timedelta,
        clock: Clock,
        recorder: Recorder,
    ) -> None:
        self._client = client
        self._requests = requests
        self._seen = seen
        self._live = live
        self._namespace = namespace
        self._patience = patience
        self._clock = clock
        self._recorder = recorder

    async def reconcile(self, key: Key) -> Outcome:
        """Decide a request if it is ours and the decision is due."""
        csr = self._requests.undecided(key)
        if csr is None:
            return DONE
        judged = await self.judge(csr)
        if judged is None:
            return DONE
        if isinstance(judged.verdict, Denied) and judged.verdict.may_pass:
            wait = seconds_to_wait(_created(csr), self._clock.now(), self._patience)
            if wait > 0:
                await self._report_waiting(csr, judged, judged.verdict)
                return Again(wait)
        await self._write(csr, judged)
        return DONE

    async def judge(self, csr: JsonObject) -> Judged | None:
        """Return the verdict on a request, or None if it is not ours."""
        for_kubelet = map_at(csr, "spec").get("signerName") == KUBELET_SERVING
        try:
            request = decode(csr)
        except UndecodableRequest as error:
            log.warning("csr cannot be decoded", csr=Key.of(csr).name, error=str(error))
            denied = Denied(f"unable to parse csr: {error}")
            return Judged(denied, _kubelet_of(csr)) if for_kubelet else None
        if for_kubelet:
            early = rules.kubelet_request(request)
            return Judged(early or await self._kubelet(request), _kubelet_of(csr))
        if request.common_name.startswith(rules.GARDENADM):
            return Judged(rules.gardenadm(request))
        machine = rules.machine_name(request.common_name)
        return None if machine is None else await self._node_agent(request, machine)

    async def _kubelet(self, request: Request) -> Verdict:
        name = rules.node_name(request.common_name)
        if self._seen.is_synced:
            verdict = await self._by_node(request, name, self._seen)
            if isinstance(verdict, Approved):
                return verdict
        return await self._by_node(request, name, self._live)

    async def _by_node(self, request: Request, name: str, place: Seen | Live) -> Verdict:
        node = await place.node(name)
        machines = await place.machines_of(name) if node else []
        others = await place.others(name, rules.claims_in(request)) if node else {}
        return rules.kubelet_node(request, node, machines, self._namespace, others)

    async def _node_agent(self, request: Request, name: str) -> Judged:
        """Judge by live state only: here, the absence of a Node justifies an approval."""
        machine: Machine | None = Machine(node=name)
        if self._namespace is not None:
            machine = await self._live.machine(name)
        node = await self._live.node(machine.node) if machine else None
        return Judged(rules.node_agent(request, machine, node), machine.node if machine else "")

    async def _write(self, csr: JsonObject, judged: Judged) -> None:
        verdict, name = judged.verdict, Key.of(csr).name
        try:
            written = await self._client.update(decided(csr, verdict), subresource="approval")
        except NotFound:
            return
        self._requests.observe(written)
        if isinstance(verdict, Approved):
            log.info("csr approved", csr=name)
            return
        log.info("csr denied", csr=name, reason=verdict.reason)
        regarding = await self._regarding(csr, judged)
        self._recorder.warning(regarding, DENIED_EVENT, f"denied the csr {name}: {verdict.reason}")

    async def _report_waiting(self, csr: JsonObject, judged: Judged, denied: Denied) -> None:
        """Record at once why a request is pending; the denial may be half a minute away."""
        name = Key.of(csr).name
        log.info("denial waits", csr=name, reason=denied.reason)
        note = (
            f"the csr {name} is pending: {denied.reason}; it will be denied "
            f"{self._patience.total_seconds():.0f}s after its creation unless that changes"
        )
        self._recorder.warning(await self._regarding(csr, judged), PENDING_EVENT, note)

    async def _regarding(self, csr: JsonObject, judged: Judged) -> Regarding:
        node = await self._seen.node(judged.node)
        return Regarding(NODE, Key("", judged.node), node.uid) if node else Regarding.of(csr)


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


def _created(csr: JsonObject) -> datetime:
    return datetime.fromisoformat(metadata_of(csr)["creationTimestamp"])


def _kubelet_of(csr: JsonObject) -> str:
    return rules.node_name(map_at(csr, "spec").get("username") or "")
