"""Defaults that extensions set in Shoots, given as data (spec 40 §6.2, §10).

Users' values are always kept; a default applies only to unset fields (Beyond 9).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pergola.admission.draft import Draft, Path
from pergola.admission.registration import Registration
from pergola.admission.review import Request
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, JsonValue
from pergola.extensions.webhooks.declare import WebhookError, webhook_name
from pergola.extensions.webhooks.mutation import Mutate, mutating
from pergola.extensions.webhooks.provider_configs import SHOOT_NETWORK_CONFIG
from pergola.extensions.webhooks.shoots import (
    cloud_of,
    is_left_alone,
    network_of,
    of_cloud,
    of_network,
    shoot_rule,
)

PATH: Final = "/webhooks/mutate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootDefault:
    """A default value for new Shoots.

    Attributes:
        path: of the field in the Shoot.
        because: the reason, for people who wonder about the change.
        networks: only Shoots with these network plugins; all Shoots if empty.
        stays: whether a Shoot that later omits the field gets its previous value back.
    """

    path: Path
    value: JsonValue
    because: str
    networks: Sequence[str] = ()
    stays: bool = False


KUBE_PROXY_OFF: Final = ShootDefault(
    path=("spec", "kubernetes", "kubeProxy", "enabled"),
    value=False,
    because="cilium routes Services itself",
    networks=("cilium",),
)
"""The default of cilium in new Shoots."""

OVERLAY_OFF: Final = ShootDefault(
    path=(*SHOOT_NETWORK_CONFIG, "overlay"),
    value={"enabled": False},
    because="the cloud routes pods without an overlay",
    networks=("calico", "cilium"),
    stays=True,
)
"""The default of clouds whose routers know the pod ranges."""


def shoot_mutator(
    component: str,
    defaults: Sequence[ShootDefault],
    *,
    network: str = "",
    cloud: str = "",
    path: str = PATH,
) -> Webhook:
    """Return the webhook of an admission component on Shoots of a network plugin or cloud.

    Shoots without workers, under deletion, or moving to another seed are not changed.

    Args:
        component: such as `admission-cilium`.
        network: the network plugin of the Shoots; either this or `cloud`.
        cloud: the type of their infrastructure.

    Raises:
        WebhookError: neither or both of `network` and `cloud` are given.
    """
    if bool(network) == bool(cloud):
        raise WebhookError(
            f"the Shoot mutator of {component} is for a network or for a cloud: give one of both"
        )

    def choose(request: Request, obj: JsonObject) -> Iterator[Mutate]:
        is_mine = network_of(obj) == network if network else cloud_of(obj) == cloud
        if is_mine and not is_left_alone(obj, request.old_object):
            yield from (_setter(d) for d in defaults if _concerns(d, obj))

    keeps = any(default.stays for default in defaults)
    registration = Registration(
        name=webhook_name("mutator", component),
        path=path,
        kind="mutating",
        rules=(shoot_rule("CREATE", "UPDATE") if keeps else shoot_rule("CREATE"),),
        object_selector=of_network(network) if network else of_cloud(cloud),
    )
    return Webhook(registration=registration, handler=mutating(choose))


def _concerns(default: ShootDefault, shoot: JsonObject) -> bool:
    return not default.networks or network_of(shoot) in default.networks


def _setter(default: ShootDefault) -> Mutate:
    def mutate(draft: Draft, old: JsonObject | None) -> None:
        if draft.get(*default.path) is not None:
            return
        if old is None:
            draft.set(default.path, default.value, default.because)
            return
        before = Draft(old).get(*default.path)
        if default.stays and before is not None:
            draft.set(default.path, before, "it was left out, and stays as it was")

    return mutate
