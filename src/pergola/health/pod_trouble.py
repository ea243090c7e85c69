"""Why a pod is not ready, from its status alone: the first obstacle, in one sentence."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, deletion_timestamp_of, map_at, maps_at
from pergola.health.conditions import condition, describe


class Cause(Enum):
    """A kind of problem, which determines the remedy."""

    UNSCHEDULABLE = auto()
    IMAGE = auto()
    """An image cannot be pulled."""
    CONFIG = auto()
    """A container cannot be created, usually because an object that it refers to is missing."""
    MEMORY = auto()
    """A container was killed because it exceeded its memory limit."""
    COMMAND = auto()
    """A container is created, but its command cannot be started."""
    CRASH = auto()
    NOT_READY = auto()
    """A container runs, but its probes fail, or it has not finished starting."""
    CREATING = auto()
    """Volumes, the network or images are being prepared."""
    TERMINATING = auto()
    FAILED = auto()
    """The pod has ended, for example because of an eviction."""
    GATE = auto()
    """Only a readiness gate is missing."""


class Trouble(NamedTuple):
    """The problem of a pod.

    Attributes:
        container: The failing container; empty if the pod itself is failing.
        has_log: Whether the container has run.
        has_previous: Whether it has run before, so that the previous run's log is more informative.
    """

    cause: Cause
    problem: str
    container: str = ""
    has_log: bool = False
    has_previous: bool = False


_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
    | {"ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
)
_PREPARING: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
_CRASHED: Final = "CrashLoopBackOff"
_CAUSES: Final = {
    "OOMKilled": Cause.MEMORY,
    "StartError": Cause.COMMAND,
    "ContainerCannotRun": Cause.COMMAND,
}
"""Causes by the reason for which a container ended; for any other reason, it crashed."""


def pod_trouble(pod: JsonObject) -> Trouble | None:
    """Return what prevents a pod from being ready, or None if it is ready or has completed."""
    status = map_at(pod, "status")
    if status.get("phase") == "Succeeded":
        return None
    return next(_troubles(pod, status), None)


def _troubles(pod: JsonObject, status: JsonObject) -> Iterator[Trouble]:
    if status.get("phase") == "Failed":
        text = ": ".join(filter(None, (_text(status, "reason"), _text(status, "message"))))
        yield Trouble(Cause.FAILED, f"it failed: {text or 'without a reason'}")
    if deletion_timestamp_of(pod):
        yield Trouble(Cause.TERMINATING, "it is being deleted")
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        reason = _text(scheduled, "message") or _text(scheduled, "reason")
        yield Trouble(Cause.UNSCHEDULABLE, f"it cannot be scheduled: {reason}")
    yield from _by_gravity(_containers(status, "initContainerStatuses", "init container"))
    yield from _by_gravity(_containers(status, "containerStatuses", "container"))
    if not maps_at(status, "containerStatuses"):
        yield Trouble(Cause.CREATING, f"phase is {status.get('phase') or 'unknown'}")
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        yield Trouble(Cause.GATE, describe(ready) if ready else "condition Ready is missing")


def _by_gravity(troubles: Iterator[Trouble]) -> list[Trouble]:
    """Return containers that cannot run before those that are merely not ready yet."""
    return sorted(troubles, key=lambda it: it.cause in (Cause.NOT_READY, Cause.CREATING))


def _containers(status: JsonObject, field: str, noun: str) -> Iterator[Trouble]:
    for container in maps_at(status, field):
        is_init = field == "initContainerStatuses"
        trouble = _trouble(container, f'{noun} "{container.get("name")}"', is_init=is_init)
        if trouble is not None:
            yield trouble


def _trouble(container: JsonObject, named: str, *, is_init: bool) -> Trouble | None:
    name = _text(container, "name")
    state = map_at(container, "state")
    if "waiting" in state:
        return _waiting(container, map_at(state, "waiting"), name, named)
    if "terminated" in state:
        ended = map_at(state, "terminated")
        if is_init and ended.get("exitCode") == 0:
            return None
        return _ended(container, ended, name, f"{named} ended")
    if "running" in state and not container.get("ready"):
        what = "has not completed" if is_init and not container.get("started") else "is not ready"
        last = map_at(container, "lastState", "terminated")
        before = _ended(container, last, name, "; its last run ended").problem if last else ""
        return Trouble(Cause.NOT_READY, f"{named} runs but {what}{before}", name, has_log=True)
    return None


def _waiting(container: JsonObject, waiting: JsonObject, name: str, named: str) -> Trouble:
    reason, message = _text(waiting, "reason"), _text(waiting, "message")
    said = f"{reason}: {message}" if message else reason
    if reason == _CRASHED:
        last = map_at(container, "lastState", "terminated")
        return _ended(container, last, name, f"{named} crashes")
    if reason in _IMAGE:
        image = _text(container, "image")
        return Trouble(Cause.IMAGE, f"{named} cannot pull image {image}: {said}", name)
    if reason in _PREPARING:
        return Trouble(Cause.CREATING, f"{named} is being created", name)
    return Trouble(Cause.CONFIG, f"{named} cannot be created: {said}", name)


def _ended(container: JsonObject, ended: JsonObject, name: str, what: str) -> Trouble:
    reason, code = _text(ended, "reason"), ended.get("exitCode")
    restarts = container.get("restartCount") or 0
    signal = f"signal {ended['signal']}" if ended.get("signal") else f"exit code {code}"
    causes = [signal] if code is not None else []
    causes += [reason] if reason and reason != "Error" else []
    if restarts:
        causes.append("restarted once" if restarts == 1 else f"restarted {restarts} times")
    message = _text(ended, "message").strip()
    problem = f"{what} ({', '.join(causes)})" if causes else what
    cause = _CAUSES.get(reason, Cause.CRASH)
    has_log = cause is not Cause.COMMAND
    return Trouble(
        cause,
        f"{problem}: {message}" if message else problem,
        name,
        has_log=has_log,
        has_previous=has_log and bool(map_at(container, "state", "waiting")),
    )


def _text(obj: JsonObject, field: str) -> str:
    return str(obj.get(field) or "")
