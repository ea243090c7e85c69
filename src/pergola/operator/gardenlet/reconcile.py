"""The steps of a Gardenlet (spec 21 §14)."""

import random
from collections.abc import Awaitable
from datetime import datetime
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.conditions import FALSE, PROGRESSING, TRUE
from pergola.api.kinds import SECRET, SEED
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    name_of,
    namespace_of,
    resource_version_of,
)
from pergola.charts import ChartError
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, KubeError
from pergola.operator.chart_source import Charts
from pergola.operator.conditions import Conditions
from pergola.operator.gardenlet.backup import backup_checksum
from pergola.operator.gardenlet.bootstrap import BootstrapTokens
from pergola.operator.gardenlet.connection import GardenAddress, address_for, garden_address
from pergola.operator.gardenlet.decide import FORCE, RENEW, Step, must_renew, operation_of, step_for
from pergola.operator.gardenlet.deploy import (
    Rendering,
    apply_chart,
    delete_secret,
    render_chart,
)
from pergola.operator.gardenlet.errors import GardenletMoved
from pergola.operator.gardenlet.names import GARDENLET, REGISTERED, chart_of, kubeconfig_secret
from pergola.operator.gardenlet.target import (
    Target,
    check_free,
    check_unchanged,
    open_target,
    record,
)
from pergola.operator.gardenlet.values import Inherited, Situation, kubeconfig_key, render_values
from pergola.operator.time_limit import within_limit
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding

_AGAIN: Final = Again(600)
"""The interval until the Seed is registered: its gardenlet may need another bootstrap token."""
_EXPECTED: Final = (OperatorError, ChartError, KubeError)
_RECONCILED: Final = "Reconciled"
_RECONCILING: Final = "Reconciling"
_FAILED: Final = "ReconcileError"


class Clusters(NamedTuple):
    """Clients of both clusters of a Garden."""

    runtime: Client
    virtual: Client


class _Bootstrap(NamedTuple):
    """The credentials with which a gardenlet starts.

    Attributes:
        kubeconfig: With a bootstrap token; empty if gardenlet has its own credentials.
        must_renew: Whether to remove the current kubeconfig of gardenlet.
        hidden: Texts that must not appear in errors.
    """

    kubeconfig: str = ""
    must_renew: bool = False
    hidden: frozenset[str] = frozenset()


class GardenletReconciler:
    """Deploys the first gardenlet of a Seed, until the Seed is registered.

    Args:
        charts: Pulls with Secrets of the virtual cluster.
        events: Events about Gardenlets, in the virtual cluster.
    """

    def __init__(
        self,
        clusters: Clusters,
        charts: Charts,
        inherited: Inherited,
        events: Recorder,
        clock: Clock,
    ) -> None:
        self._runtime, self._virtual = clusters
        self._charts = charts
        self._inherited = inherited
        self._events = events
        self._clock = clock
        self._tokens = BootstrapTokens(clusters.virtual, random.SystemRandom())
        self._conditions = Conditions(clusters.virtual, GARDENLET, clock)

    async def reconcile(self, key: Key) -> Outcome:
        """Bring a Gardenlet to its desired state.

        Raises:
            ReconcileError: It failed, and the Gardenlet's condition has the reason.
            KubeError: The virtual cluster refused, or did not answer.
        """
        gardenlet = await self._virtual.find(GARDENLET, key)
        if gardenlet is None:
            return DONE
        seed = await self._virtual.find(SEED, Key("", key.name))
        match step_for(gardenlet, seed):
            case Step.LEAVE:
                return DONE
            case Step.HAND_OVER:
                return await self._report(gardenlet, self._hand_over(gardenlet))
            case Step.DEPLOY:
                return await self._report(gardenlet, self._deploy(gardenlet, seed))

    async def _report(self, gardenlet: JsonObject, steps: Awaitable[Outcome]) -> Outcome:
        """Return the outcome of the steps; report a failure in the Gardenlet's condition."""
        try:
            return await within_limit(steps)
        except Conflict:
            raise  # lost to a concurrent writer; the next attempt starts at once
        except _EXPECTED as error:
            await self._set(gardenlet, FALSE, _FAILED, str(error))
            self._events.warning(Regarding.of(gardenlet), _FAILED, str(error))
            if isinstance(error, GardenletMoved):
                return DONE  # until a user changes it
            raise ReconcileError(str(error)) from error

    async def _hand_over(self, gardenlet: JsonObject) -> Outcome:
        """Remove the access to the cluster: gardenlet updates itself from now on."""
        name = kubeconfig_secret(gardenlet)
        if name:
            await delete_secret(self._virtual, Key(namespace_of(gardenlet), name))
            await self._virtual.patch(
                GARDENLET, Key.of(gardenlet), {"spec": {"kubeconfigSecretRef": None}}
            )
        text = f'Gardenlet deployed and Seed "{name_of(gardenlet)}" registered'
        await self._set(gardenlet, TRUE, _RECONCILED, text)
        self._events.normal(Regarding.of(gardenlet), _RECONCILED, text)
        return DONE

    async def _deploy(self, gardenlet: JsonObject, seed: JsonObject | None) -> Outcome:
        async with open_target(gardenlet, self._runtime, self._virtual) as target:
            check_unchanged(gardenlet, target)
            await check_free(gardenlet, target)
            chart = await self._charts.pull(chart_of(gardenlet))
            address = address_for(gardenlet, await garden_address(self._runtime))
            bootstrap = await self._bootstrap(gardenlet, seed, target, address)
            found = Situation(
                server=address.server,
                bootstrap=bootstrap.kubeconfig,
                backup=await backup_checksum(gardenlet, self._virtual),
                is_runtime=target.is_runtime,
            )
            values = render_values(gardenlet, self._inherited, found)
            rendering = Rendering(chart, values, bootstrap.hidden)
            objects = await render_chart(self._charts, target.client, rendering)
            gardenlet = await record(gardenlet, target, self._virtual)
            if bootstrap.must_renew:  # gardenlet then requests another certificate
                await delete_secret(target.client, kubeconfig_key(gardenlet))
            await apply_chart(target.client, objects, self._clock)
        text = f"gardenlet deployed into {target.where}"
        self._events.normal(Regarding.of(gardenlet), _RECONCILING, text)
        await self._set(gardenlet, PROGRESSING, _FAILED, "Waiting for seed registration")
        await self._operation_is_done(gardenlet)
        return _AGAIN

    async def _bootstrap(
        self,
        gardenlet: JsonObject,
        seed: JsonObject | None,
        target: Target,
        address: GardenAddress,
    ) -> _Bootstrap:
        now: datetime = self._clock.now()
        own = await target.client.find(SECRET, kubeconfig_key(gardenlet), metadata_only=True)
        renews = own is not None and must_renew(gardenlet, seed, now)
        if own is not None and not renews:
            return _Bootstrap()
        token = await self._tokens.apply(Key.of(gardenlet), now)
        text = token.kubeconfig(address)
        return _Bootstrap(text, renews, frozenset({text, token.secret}))

    async def _operation_is_done(self, gardenlet: JsonObject) -> None:
        """Remove the annotation that requested a deployment, unless it has changed since."""
        operation = operation_of(gardenlet)
        if operation not in (FORCE, RENEW):
            return
        live = await self._virtual.find(GARDENLET, Key.of(gardenlet))
        if live is None or annotations_of(live).get(marks.OPERATION) != operation:
            return
        metadata = {
            "resourceVersion": resource_version_of(live),
            "annotations": {marks.OPERATION: None},
        }
        await self._virtual.patch(GARDENLET, Key.of(gardenlet), {"metadata": metadata})

    async def _set(self, gardenlet: JsonObject, status: str, reason: str, message: str) -> None:
        key = Key.of(gardenlet)
        await self._conditions.patch(key, REGISTERED, status, reason, message, observed=gardenlet)
