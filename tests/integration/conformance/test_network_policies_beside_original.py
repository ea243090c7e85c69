"""The original and Pergola write the same NetworkPolicies for random Services, as processes.

`conformance/subjects/network_policies.py` compares what both decide about a cluster at rest. Here,
both follow changes: labels of Namespaces, annotations, ports, pods, Ingresses, VirtualServices, and
policies that others edit. Decision 593 lists what Pergola does otherwise.
"""

import random
import re
from typing import Final

import pytest

from conformance.subjects.network_policies import policies_of
from pergola.api.kinds import (
    GATEWAY,
    INGRESS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    SERVICE,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import JsonObject, Key, annotations_of, labels_of
from pergola.controllers.network_policy.names import DESCRIPTION, FROM_INGRESS_CONTROLLER
from pergola.kube.client import Client
from tests.support.beside_original import beside_original
from tests.support.istio_crds import install_istio_crds
from tests.support.random_services import CONTROLLER, HANDLED, Services

pytestmark = [pytest.mark.soak("originals"), pytest.mark.timeout(600)]

_ROUNDS: Final = 12
_KINDS: Final = (GATEWAY, INGRESS, NAMESPACE, POD, SERVICE, VIRTUAL_SERVICE)
_PRINTED: Final = re.compile(r"\{(map\[.*?\]) \[\]\}")
"""How the original describes a selector; Pergola leaves out the expressions that it never has."""
_CONTROLLERS: Final[JsonObject] = {
    "networkPolicy": {
        "enabled": True,
        "concurrentSyncs": 5,
        "namespaceSelectors": [*HANDLED],
        "ingressControllerSelector": CONTROLLER,
    }
}


async def test_random_services_have_the_policies_that_the_original_writes(
    chance: random.Random,
) -> None:
    """Takes a minute: after the last pods of callers ended, Pergola waits for 30 seconds.

    Their policies stay for so long (decision 585).
    """
    async with beside_original(_CONTROLLERS, install_istio_crds) as sides:
        services = Services(sides, chance)

        await services.fill()
        await sides.until_equal(policies, rules, services.describe, services.nudge)
        assert await policies(sides.ours)
        for _ in range(_ROUNDS):
            for _ in range(chance.randrange(3, 15)):
                await services.change()
            await sides.until_equal(policies, rules, services.describe, services.nudge)
        await services.end_callers()
        await sides.until_equal(policies, rules, services.describe, services.nudge)


async def policies(client: Client) -> dict[str, JsonObject]:
    """Return what a process wrote, by the keys of the policies."""
    found: dict[str, JsonObject] = {}
    for policy in await client.list(NETWORK_POLICY):
        key = Key.of(policy)
        text = _PRINTED.sub(r"\1", annotations_of(policy).get(DESCRIPTION, ""))
        # The seed's wording for ingress controllers: no client depends on either.
        text = "" if key.name.endswith(FROM_INGRESS_CONTROLLER) else text
        found[str(key)] = {"labels": labels_of(policy), "spec": policy["spec"], "text": text}
    return found


async def rules(client: Client) -> dict[str, JsonObject]:
    """Return what Pergola writes for the live objects, with the descriptions that exist."""
    objects = [obj for gvk in _KINDS for obj in await client.list(gvk)]
    question = {
        "objects": objects,
        "namespaceSelectors": [*HANDLED],
        "ingressControllerSelector": CONTROLLER,
    }
    written = await policies(client)
    return {
        key: {**policy, "text": written.get(key, {}).get("text")}
        for key, policy in (await policies_of(question)).items()
    }
