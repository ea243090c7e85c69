"""The reconciliation of a Service's NetworkPolicies, step by step (spec 11 §4.9)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key
from pergola.api.texts import abridged
from pergola.controllers.network_policy.apply import (
    ForeignPolicy,
    Plan,
    RejectedPolicy,
    Writer,
    plan,
)
from pergola.controllers.network_policy.descriptions import go_map
from pergola.controllers.network_policy.desired import desired
from pergola.controllers.network_policy.intents import Intent, intents
from pergola.controllers.network_policy.kept import is_kept
from pergola.controllers.network_policy.names import ALLOWED
from pergola.controllers.network_policy.service import ServiceView
from pergola.controllers.network_policy.watches import Watches
from pergola.kube.errors import Conflict
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger

log = get_logger("networkpolicy")

TOO_LONG: Final = "PodLabelSelectorKey(s)TooLong"
MALFORMED: Final = "NetworkPolicyAnnotationMalformed"
TAKEN: Final = "NetworkPolicyNameTaken"
REJECTED: Final = "NetworkPolicyRejected"
UNWATCHED: Final = "NetworkPolicyNamespaceNotWatched"
_MUTATED: Final = (
    "Usual pod label selector contained at least one key exceeding 63 characters - "
    "it had to be mutated"
)


class NetworkPolicies:
    """The reconciler of Services."""

    def __init__(self, watches: Watches, writer: Writer, recorder: Recorder) -> None:
        self._watches = watches
        self._writer = writer
        self._recorder = recorder

    async def reconcile(self, key: Key) -> Outcome:
        """Apply the policies of a Service, or delete them if it was deleted."""
        watches = self._watches
        if not watches.services.covers(key.namespace):
            return DONE  # another instance handles this namespace
        environment = await watches.environment(key)
        service = watches.services.get(key)
        namespace = watches.namespaces.get(Key("", key.namespace))
        if service is None or not service.is_selecting or not watches.handles(namespace):
            await self._apply(key, service, plan({}, watches.policies_of(key)))
            return DONE
        peers = watches.peers.of(service)
        intended = intents(service, peers, environment)
        self._report(service, intended)
        policies = self._within_reach(service, desired(service, intended))
        present = watches.policies_of(key)
        kept = [policy for policy in present if peers and is_kept(service, policy)]
        await self._apply(key, service, plan(policies, present, kept))
        seconds = watches.until_unneeded(intended)
        return DONE if seconds is None else Again(seconds)

    async def _apply(self, key: Key, service: ServiceView | None, planned: Plan) -> None:
        todo = self._writer.outstanding(planned)
        if todo.is_empty:
            return
        failures = await self._writer.apply(key, todo)
        counts = {"put": len(todo.put), "deleted": len(todo.delete), "failed": len(failures)}
        log.info("network policies applied", service=str(key), **counts)
        if service is not None:
            self._report_failures(service, failures)
        _raise(failures)

    def _within_reach(
        self, service: ServiceView, policies: Mapping[Key, JsonObject]
    ) -> dict[Key, JsonObject]:
        """Return the policies in watched namespaces; the state of the others is unknown."""
        reached = {k: p for k, p in policies.items() if self._watches.policies.covers(k.namespace)}
        if beyond := sorted({key.namespace for key in policies.keys() - reached.keys()}):
            self._warn(
                service,
                UNWATCHED,
                f"no NetworkPolicies are written to {abridged(beyond)}: not among "
                "targetClientConnection.namespaces of the resource manager; add them there",
            )
        return reached

    def _report(self, service: ServiceView, intended: Sequence[Intent]) -> None:
        for problem in service.problems:
            self._warn(service, MALFORMED, problem)
        shortened = {i.label: i.full_label for i in intended if i.label != i.full_label}
        for label, full in shortened.items():
            old, new = go_map({full: ALLOWED}), go_map({label: ALLOWED})
            log.debug(_MUTATED, service=str(service.key), old=old, new=new)
            self._warn(service, TOO_LONG, f"{_MUTATED}. Old: {old}, new: {new}")

    def _report_failures(self, service: ServiceView, failures: Iterable[Exception]) -> None:
        for failure in failures:
            if isinstance(failure, ForeignPolicy):
                self._warn(service, TAKEN, str(failure))
            elif isinstance(failure, RejectedPolicy):
                self._warn(service, REJECTED, str(failure))

    def _warn(self, service: ServiceView, reason: str, note: str) -> None:
        log.info("service warned", service=str(service.key), reason=reason, note=note)
        regarding = Regarding(SERVICE, service.key, service.uid)
        self._recorder.warning(regarding, reason, note)


def _raise(failures: Sequence[Exception]) -> None:
    """Raise failures so that they are retried: their causes may disappear without an event."""
    if not failures:
        return
    if all(isinstance(failure, Conflict) for failure in failures):
        raise failures[0]
    raise ReconcileError(abridged([*dict.fromkeys(map(str, failures))], separator="; "))
