"""A cloud provider's webhook that adapts Networks to its cloud (spec 40 §7.1)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import Request
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.kinds import GROUP, VERSION
from pergola.extensions.webhooks.declare import selects, webhook_name
from pergola.extensions.webhooks.mutation import Mutate, mutating

CLOUD_LABEL: Final = "shoot.gardener.cloud/provider"
NETWORK_LABEL: Final = "networking.shoot.gardener.cloud/provider"
PATH: Final = "/network"


def network_mutator(
    component: str, cloud: str, mutators: Mapping[str, Mutate], *, path: str = PATH
) -> Webhook:
    """Return the webhook of a component for the Networks of its cloud.

    Args:
        component: such as `provider-azure`.
        cloud: the type of the Shoots' infrastructure, such as `azure`.
        mutators: by type of the Network, such as `calico`.
    """

    def choose(_: Request, obj: JsonObject) -> Iterator[Mutate]:
        mutate = mutators.get(str(map_at(obj, "spec").get("type")))
        if mutate is not None:
            yield mutate

    expressions = [selects(CLOUD_LABEL, [cloud]), selects(NETWORK_LABEL, mutators)]
    registration = Registration(
        name=webhook_name("network", component),
        path=path,
        kind="mutating",
        rules=(Rule(("CREATE", "UPDATE"), (GROUP,), (VERSION,), ("networks",)),),
        namespace_selector={"matchExpressions": expressions},
    )
    return Webhook(registration=registration, handler=mutating(choose))
