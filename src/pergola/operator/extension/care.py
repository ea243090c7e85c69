"""Conditions about the health of Extensions (spec 21 §13.6)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from pergola.api.conditions import (
    TRUE,
    UNKNOWN,
    get_condition,
    init_condition,
    merge_conditions,
    update_condition,
)
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.health import failing_status
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.conditions import Conditions
from pergola.operator.extension.health import (
    HEALTHY,
    INSTALLATIONS_HEALTHY,
    Unable,
    Verdict,
    check_installations,
    check_resources,
    relevant,
)
from pergola.operator.extension.installations import Installations
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome

CHECK_ERROR: Final = "ConditionCheckError"


class ExtensionCare:
    """The reconciler of an Extension's health.

    Args:
        client: Of the runtime cluster.
        period: The time between two runs without an event.
        thresholds: How long each condition type may be `Progressing`.
    """

    def __init__(
        self,
        client: Client,
        installations: Installations,
        conditions: Conditions,
        clock: Clock,
        *,
        period: timedelta,
        thresholds: Mapping[str, timedelta],
    ) -> None:
        self._client = client
        self._installations = installations
        self._conditions = conditions
        self._clock = clock
        self._period = period
        self._thresholds = thresholds

    async def reconcile(self, key: Key) -> Outcome:
        """Check an Extension, and write the conditions that changed.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        extension = await self._client.find(EXTENSION, key)
        if extension is None:
            return DONE
        verdicts = await self._check(extension, key.name)
        now = self._clock.now()
        change = partial(
            updated_conditions, verdicts=verdicts, thresholds=self._thresholds, now=now
        )
        await self._conditions.change(key, change)
        return Again(self._period.total_seconds())

    async def _check(self, extension: JsonObject, name: str) -> dict[str, Verdict]:
        checked = relevant(extension, name)
        keys = {key for keys in checked.values() for key in keys}
        resources = {key: await self._resource(key) for key in keys}
        verdicts: dict[str, Verdict] = {}
        for kind, behind in checked.items():
            if kind == INSTALLATIONS_HEALTHY:
                verdicts[kind] = self._check_installations(name)
            else:
                verdicts[kind] = check_resources(behind, resources.get, self._clock.now())
        return verdicts

    def _check_installations(self, name: str) -> Verdict:
        if not self._installations.are_known:
            return Unable("failed to list controller installations: no virtual cluster is reached")
        current = self._installations.current_version(name)
        return check_installations(self._installations.of(name), current)

    async def _resource(self, key: Key) -> JsonObject | None:
        try:
            return await self._client.find(MANAGED_RESOURCE, key)
        except UnknownKind:
            return None


def updated_conditions(
    stored: list[JsonObject],
    *,
    verdicts: Mapping[str, Verdict],
    thresholds: Mapping[str, timedelta],
    now: datetime,
) -> list[JsonObject]:
    """Return all conditions, with verdicts applied and health without a verdict removed.

    Args:
        stored: All conditions of an Extension.
    """
    kept = [each for each in stored if each.get("type") not in HEALTHY.keys() - verdicts.keys()]
    updated = []
    for kind, verdict in verdicts.items():
        previous = get_condition(stored, kind) or init_condition(kind, now)
        status, reason, message = _content(previous, kind, verdict, thresholds, now)
        updated.append(
            update_condition(previous, status=status, reason=reason, message=message, now=now)
        )
    return merge_conditions(kept, *updated)


def _content(
    previous: JsonObject,
    kind: str,
    verdict: Verdict,
    thresholds: Mapping[str, timedelta],
    now: datetime,
) -> tuple[str, str, str]:
    if verdict is None:
        return (TRUE, *HEALTHY[kind])
    if isinstance(verdict, Unable):
        return UNKNOWN, CHECK_ERROR, verdict.message
    status = failing_status(previous, verdict.reason, now=now, threshold=thresholds.get(kind))
    return status, verdict.reason, verdict.message
