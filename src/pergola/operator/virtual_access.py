"""Following the Secrets with the kubeconfigs of the virtual cluster (spec 21 §5.2)."""

from hashlib import blake2b
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.garden.components.gardener_access import EXTERNAL, INTERNAL
from pergola.garden.landscape import NAMESPACE
from pergola.kube.selectors import format_selector
from pergola.manifests.shoot_access import requests_token
from pergola.operator.copies import Copies
from pergola.operator.virtual_cluster import NotConnected, VirtualCluster, kubeconfig_in
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("virtual-cluster-access")

NAME: Final = "virtual-cluster-access"

_LABELS: Final = format_selector({"matchLabels": requests_token()})
_SECRETS: Final = frozenset({Key(NAMESPACE, INTERNAL), Key(NAMESPACE, EXTERNAL)})


def virtual_cluster_access(copies: Copies, virtual: VirtualCluster, *, metrics: Metrics) -> Unit:
    """Return the controller that connects to the virtual cluster as soon as a token exists.

    It renews the connection whenever the token, the authority or the server changes.
    """

    async def reconcile(_: Key) -> Outcome:
        try:
            await virtual.client()
        except NotConnected as error:
            log.info("no access to the virtual cluster", reason=str(error))
        return DONE

    contents = View(copies.of(SECRET, NAMESPACE), _content, labels=_LABELS)
    connected = Key(NAMESPACE, INTERNAL)
    return Controller(
        NAME,
        reconcile,
        watches=[Watch(contents, to=lambda _: (connected,), when=_matters)],
        metrics=metrics,
    )


def _matters(change: Change[bytes]) -> bool:
    return change.key in _SECRETS and change.new is not None and change.new != change.old


def _content(secret: JsonObject) -> bytes:
    """Return a digest of a Secret's kubeconfig, to avoid a second copy of its token."""
    return blake2b(kubeconfig_in(secret), digest_size=16).digest()
