"""The component with both etcds (spec 20 §15.1)."""

from typing import Final

from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.etcd_druid import ETCD_DRUID
from pergola.garden.components.etcds.access import ROLES, credentials, name
from pergola.garden.components.etcds.autoscaling import autoscaler
from pergola.garden.components.etcds.backups import learn
from pergola.garden.components.etcds.etcd import etcd
from pergola.garden.components.etcds.metrics import service_monitor
from pergola.garden.components.etcds.peers import TRUST
from pergola.garden.components.removal import removable
from pergola.garden.landscape import Landscape


def render(landscape: Landscape) -> Rendered:
    """Return both etcds, their autoscalers and their ServiceMonitors."""
    parts = (etcd, autoscaler, service_monitor)
    return Rendered(direct=tuple(part(landscape, role) for role in ROLES for part in parts))


ETCDS: Final = Component(
    name="virtual-garden-etcds",
    deploy="Deploying main and events ETCDs of virtual garden",
    wait=task_names.ETCDS_READY,
    after=(ETCD_DRUID.ready, task_names.BACKUP_ENTRY),
    learn=learn,
    credentials=credentials,
    render=render,
    before=(TRUST,),
    limit=300.0,
    removable=removable(
        *(
            f"{kind} {named}"
            for role in ROLES
            for kind, named in (
                ("Etcd", name(role)),
                ("VerticalPodAutoscaler", name(role)),
                ("ServiceMonitor", f"garden-{name(role)}"),
            )
        )
    ),
)
