"""Decides CertificateSigningRequests of nodes, and writes the decision (spec 11 §3).

An approval of a kubelet's request may rest on what was last seen. A denial, which is final, never
does: Node and Machines are asked for once more before. Where they may be about to change (the
Machine gets its label after the kubelet asked, addresses appear one by one), the denial waits until
the request is `patience` old. How old it is says the request itself, so that a restart gives nobody
a second grace.

A request that cannot be decoded is denied if it is for a kubelet's serving certificate, which
nobody else approves; other ones may be meant for other approvers and are left alone.
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
_FIRST_WAIT: Final = timedelta(seconds=1)
_WHAT: Final = {
    KUBELET_SERVING: "kubelet server certificate",
    API_CLIENT: "gardener-node-agent certificate",
}


class Judged(NamedTuple):
    """A verdict, and the name of the Node that it is about; empty if none is known."""

    verdict: Verdict
    node: str = ""


class Approver:
    """The reconciler of the requests that are undecided.

    Args:
        client: of the target, where the requests are.
        namespace: where the Machines are; None where Nodes have none.
        patience: how old a request must be to be denied for what may still change.
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
        """Decides one request, if that is ours to do and can be done now."""
        csr = self._requests.undecided(key)
        if csr is None:
            return DONE
        judged = await self._judged(csr)
        if judged is None:
            return DONE
        if isinstance(judged.verdict, Denied) and judged.verdict.may_pass:
            wait = seconds_to_wait(_created(csr), self._clock.now(), self._patience)
            if wait > 0:
                reason = judged.verdict.reason
                log.info("denial waits", csr=key.name, reason=reason, seconds=round(wait, 3))
                return Again(wait)
        await self._write(csr, judged)
        return DONE

    async def _judged(self, csr: JsonObject) -> Judged | None:
        """What is to be done with a request; None if it is none of ours."""
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
        machines = await place.machines_of(name) if node else 0
        return rules.kubelet_node(request, node, machines, self._namespace)

    async def _node_agent(self, request: Request, name: str) -> Judged:
        """By the live state only: here it is the absence of a Node that makes a request good."""
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
        node = await self._seen.node(judged.node)
        regarding = Regarding(NODE, Key("", judged.node), node.uid) if node else Regarding.of(csr)
        self._recorder.warning(regarding, DENIED_EVENT, f"denied the csr {name}: {verdict.reason}")


def decided(csr: JsonObject, verdict: Verdict) -> JsonObject:
    """The request with its decision as a further condition."""
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
    """Until a request is looked at once more before it is denied; 0 if it has waited enough.

    As long as it has waited already, at least a second: some six looks in half a minute. A request
    that is from the future says nothing about its age, and has no grace.
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
