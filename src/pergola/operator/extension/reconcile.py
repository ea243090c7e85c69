"""The steps of an Extension (spec 21 §13.2, §13.3)."""

import asyncio
from collections.abc import Awaitable
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.conditions import FALSE, TRUE
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
    map_at,
    name_of,
)
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.operator_v1alpha1.extension import INSTALLED, REQUIRED_RUNTIME
from pergola.bundle import BundleError
from pergola.charts import ChartError
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, KubeError
from pergola.kube.finalizers import add_finalizer, remove_finalizer
from pergola.operator.conditions import Conditions, condition_of, is_true
from pergola.operator.extension.admission import AdmissionPart
from pergola.operator.extension.errors import ExtensionFailed, NotYet
from pergola.operator.extension.garden_facts import GardenFacts
from pergola.operator.extension.names import (
    ADMISSION_RUNTIME_CHART,
    ADMISSION_VIRTUAL_CHART,
    EXTENSION_CHART,
    chart_of,
)
from pergola.operator.extension.registration import RegistrationPart
from pergola.operator.extension.runtime import RuntimePart
from pergola.operator.extension.values import Resolved, resolve
from pergola.operator.oldest import oldest
from pergola.operator.time_limit import within_limit
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding

_GARDEN_SECONDS: Final = 10.0
_EXPECTED: Final = (OperatorError, ChartError, BundleError, KubeError)
_NO_GARDEN: Final = "NoGardenFound"
NO_GARDEN_TEXT: Final = "No garden found"
GARDEN_UNFINISHED_TEXT: Final = "garden is not yet successfully reconciled"
"""What an Extension says while it waits for the Garden; health rules compare these texts."""
_RECONCILED: Final = "ReconcileSuccessful"
_RECONCILE_FAILED: Final = "ReconcileFailed"
_DELETED: Final = "DeleteSuccessful"
_DELETE_FAILED: Final = "DeleteFailed"
_STILL_REQUIRED: Final = "InstalledInRuntime"


class Parts(NamedTuple):
    """The parts of an Extension."""

    runtime: RuntimePart
    admission: AdmissionPart
    registration: RegistrationPart


class ExtensionReconciler:
    """Installs Extensions, and removes them.

    Args:
        client: Of the runtime cluster.
    """

    def __init__(
        self,
        client: Client,
        virtual: VirtualCluster,
        parts: Parts,
        conditions: Conditions,
        events: Recorder,
    ) -> None:
        self._client = client
        self._virtual = virtual
        self._parts = parts
        self._conditions = conditions
        self._events = events

    async def reconcile(self, key: Key) -> Outcome:
        """Bring an Extension to its desired state.

        Raises:
            ReconcileError: It failed, and the Extension's condition has the reason.
            KubeError: The API server refused, or did not answer.
        """
        extension = await self._client.find(EXTENSION, key)
        if extension is None:
            return DONE
        found = oldest(await self._client.list(GARDEN))
        garden = None if found is None else GardenFacts.of(found)
        is_deleted = deletion_timestamp_of(extension) is not None
        if is_deleted and marks.OPERATOR_FINALIZER not in finalizers_of(extension):
            return DONE
        if is_deleted or (garden is not None and garden.is_deleted):
            return await self._report(extension, self._delete(extension), _DELETE_FAILED)
        if garden is None:
            return await self._without_garden(extension)
        kept = await add_finalizer(self._client, EXTENSION, extension, marks.OPERATOR_FINALIZER)
        if kept is None:
            return DONE
        return await self._report(kept, self._install(kept, garden), _RECONCILE_FAILED)

    async def _report(
        self, extension: JsonObject, steps: Awaitable[Outcome], failure: str
    ) -> Outcome:
        """Return the outcome of the steps; report a failure in the Extension's condition."""
        try:
            return await within_limit(steps)
        except Conflict:
            raise  # lost to a concurrent writer; the next attempt starts at once
        except _EXPECTED as error:
            await self._set(extension, FALSE, failure, str(error))
            self._events.warning(Regarding.of(extension), failure, str(error))
            if isinstance(error, NotYet):
                return Again(error.seconds)
            raise ReconcileError(str(error)) from error

    async def _without_garden(self, extension: JsonObject) -> Outcome:
        installed = condition_of(extension, INSTALLED)
        if (installed.get("status"), installed.get("reason")) != (FALSE, _DELETED):
            await self._set(extension, FALSE, _NO_GARDEN, NO_GARDEN_TEXT)
        return DONE

    async def _install(self, extension: JsonObject, garden: GardenFacts) -> Outcome:
        await self._runtime(extension)
        if not garden.is_reconciled:
            raise NotYet(GARDEN_UNFINISHED_TEXT, _GARDEN_SECONDS)
        await _all(self._admission(extension, garden), self._registration(extension))
        await self._set(extension, TRUE, _RECONCILED, "Extension has been reconciled successfully")
        return DONE

    async def _delete(self, extension: JsonObject) -> Outcome:
        name = name_of(extension)
        await _all(
            self._deleted(extension, self._parts.registration.delete(name)),
            self._deleted(extension, self._parts.admission.delete(name)),
            self._runtime(extension),
        )
        if is_true(extension, REQUIRED_RUNTIME):
            text = "Extension is still required in runtime cluster"
            await self._set(extension, TRUE, _STILL_REQUIRED, text)
            return DONE
        await self._set(extension, FALSE, _DELETED, "Extension has been deleted successfully")
        if deletion_timestamp_of(extension) is not None:
            live = await self._client.find(EXTENSION, Key.of(extension))
            if live is not None:
                await remove_finalizer(self._client, EXTENSION, live, marks.OPERATOR_FINALIZER)
        return DONE

    async def _values(self, extension: JsonObject, chart: str, field: str) -> Resolved:
        """Return the values of one part, so that a part does not need those of another one."""
        values = map_at(extension, "spec", "deployment", chart, field)
        return await resolve(self._client, extension, values, f"spec.deployment.{chart}.{field}")

    async def _runtime(self, extension: JsonObject) -> None:
        is_required = is_true(extension, REQUIRED_RUNTIME)
        if not is_required or not chart_of(extension, *EXTENSION_CHART):
            await self._deleted(extension, self._parts.runtime.delete(name_of(extension)))
            return
        values = await self._values(extension, "extension", "runtimeClusterValues")
        await self._parts.runtime.apply(extension, values)
        text = "Extension applied successfully in runtime cluster"
        self._events.normal(Regarding.of(extension), "Reconciled", text)

    async def _admission(self, extension: JsonObject, garden: GardenFacts) -> None:
        part, name = self._parts.admission, name_of(extension)
        has_virtual = bool(chart_of(extension, *ADMISSION_VIRTUAL_CHART))
        has_runtime = bool(chart_of(extension, *ADMISSION_RUNTIME_CHART))
        if not has_virtual:
            await self._deleted(extension, part.delete_virtual(name))
        if not has_runtime:
            await self._deleted(extension, part.delete_runtime(name))
        if not (has_virtual or has_runtime):
            return
        values = await self._values(extension, "admission", "values")
        if has_virtual:
            await part.apply_virtual(extension, values, await self._virtual.client())
        if has_runtime:
            if not garden.generic_kubeconfig:
                raise ExtensionFailed("generic kubeconfig secret name is not set for garden")
            await part.apply_runtime(extension, values, garden.generic_kubeconfig)

    async def _registration(self, extension: JsonObject) -> None:
        if chart_of(extension, *EXTENSION_CHART):
            await self._parts.registration.apply(extension)
        else:
            await self._deleted(extension, self._parts.registration.delete(name_of(extension)))

    async def _deleted(self, extension: JsonObject, deletion: Awaitable[bool]) -> None:
        if await deletion:
            text = "Extension deployment deleted successfully"
            self._events.normal(Regarding.of(extension), "Deleted", text)

    async def _set(self, extension: JsonObject, status: str, reason: str, message: str) -> None:
        key = Key.of(extension)
        await self._conditions.patch(key, INSTALLED, status, reason, message, observed=extension)


async def _all(*steps: Awaitable[None]) -> None:
    """Await all steps, even if some fail; raise the failures as one error."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in errors:
        if not isinstance(error, _EXPECTED) or isinstance(error, Conflict):
            raise error
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExtensionFailed("; ".join(map(str, errors)))
