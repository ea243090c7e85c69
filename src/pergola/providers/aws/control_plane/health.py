"""The health of a control plane in AWS: the condition `ControlPlaneHealthy` (spec 31 §9)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from pergola.api.conditions import FALSE
from pergola.api.kinds import CORE_EVENT, DEPLOYMENT
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import (
    CONTROL_PLANE_HEALTHY,
    HEALTHY,
    CheckContext,
    HealthCheck,
    Verdict,
    deployment,
)
from pergola.extensions.seed import ShootAccess
from pergola.extensions.shoot_access import shoot_client
from pergola.health.times import read_time
from pergola.manifests import KUBE_SYSTEM
from pergola.providers.aws.control_plane.render import (
    cloud_controller,
    ebs_controller,
    pod_networks,
)

_RECENT: Final = timedelta(minutes=5)
_QUOTA: Final = "RouteLimitExceeded"
_REPORTER: Final = f"involvedObject.kind=ServiceAccount,involvedObject.name={pod_networks.ROUTES}"


def health_checks(access: ShootAccess = shoot_client) -> list[HealthCheck]:
    """Return the checks of the controllers, and of what the route controller reports."""
    return [
        deployment(cloud_controller.NAME),
        deployment(ebs_controller.NAME),
        deployment(ebs_controller.SNAPSHOTS),
        deployment(pod_networks.ROUTES),
        HealthCheck(
            name=f"Events of {pod_networks.ROUTES}",
            condition=CONTROL_PLANE_HEALTHY,
            run=_route_events(access),
        ),
    ]


def _route_events(
    access: ShootAccess,
) -> Callable[[CheckContext, JsonObject], Awaitable[Verdict]]:
    async def run(context: CheckContext, _: JsonObject) -> Verdict:
        """Return the newest warning of the route controller, such as a full route table."""
        key = Key(context.namespace, pod_networks.ROUTES)
        live, cluster = await context.read(DEPLOYMENT, key), await context.cluster()
        if not map_at(live or {}, "spec").get("replicas") or cluster is None:
            return HEALTHY
        async with access(context.client, cluster) as shoot:
            if shoot is None:
                return HEALTHY
            events = await shoot.list(CORE_EVENT, KUBE_SYSTEM, fields=_REPORTER)
        return verdict(events, context.now)

    return run


def verdict(events: list[JsonObject], now: datetime) -> Verdict:
    """Return the verdict by the Events about the route controller's account."""
    newest = max(events, key=_time_of, default=None)
    if newest is None or newest.get("type") != "Warning" or _time_of(newest) < now - _RECENT:
        return HEALTHY
    message = str(newest.get("message") or "")
    code = Code.QUOTA_EXCEEDED if _QUOTA in message else Code.RETRYABLE_DEPENDENCIES
    return Verdict(FALSE, f"[{pod_networks.ROUTES}] {newest.get('reason')}: {message}", (code,))


def _time_of(event: JsonObject) -> datetime:
    last, first = read_time(event.get("lastTimestamp")), read_time(event.get("eventTime"))
    return last or first or datetime.min.replace(tzinfo=UTC)
