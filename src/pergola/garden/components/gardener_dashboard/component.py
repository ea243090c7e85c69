"""The dashboard as a component of the Garden."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.gardener_dashboard.exposure import certificate, exposure
from pergola.garden.components.gardener_dashboard.permissions import permissions
from pergola.garden.components.gardener_dashboard.settings import NAME, PROGRAM
from pergola.garden.components.gardener_dashboard.workload import CERTIFICATE, SESSION, workload
from pergola.garden.components.seeds import learn_seeds
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.secrets_manager import BasicAuth, Options, Rotate

_MONTH: Final = timedelta(days=30)
_SESSIONS_END: Final = timedelta(hours=24)


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden has no dashboard, or None if it has one."""
    if landscape.virtual.gardener.dashboard is None:
        return "spec.virtualCluster.gardener.gardenerDashboard is not set"
    return None


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificates and the session key; the previous key is valid for another day."""
    if absent(landscape):
        return
    yield authorities.runtime_server(CERTIFICATE, *authorities.service_hosts(NAME, NAMESPACE))
    yield Credential(
        BasicAuth(SESSION),
        Options(rotate=Rotate.KEEP_OLD, validity=_MONTH, ignore_old_after=_SESSIONS_END),
    )
    yield from certificate(landscape)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, its routes and its permissions."""
    runtime = PROGRAM.runtime(*workload(landscape), *exposure(landscape))
    virtual = PROGRAM.virtual(*permissions(landscape))
    return Rendered(managed=(runtime, virtual), direct=(access_secret(NAME),))


GARDENER_DASHBOARD: Final = Component(
    name=NAME,
    deploy="Reconciling Gardener Dashboard",
    after=(
        task_names.GARDENER_API_SERVER_READY,
        task_names.CONNECTION,
    ),
    absent=absent,
    learn=learn_seeds,
    credentials=credentials,
    render=render,
    removable=PROGRAM.removable(),
)
