"""In a namespace that denies all connections, an extension is reached by those who call it.

Gardener writes the policies from the annotations of Services and the labels of pods. Here,
Pergola's own controller derives them from what each chart, and the SDK, deploy.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

import pytest

from pergola.api.objects import JsonObject, labels_of, map_at, maps_at
from pergola.controllers.network_policy.desired import desired
from pergola.controllers.network_policy.intents import Environment, intents
from pergola.controllers.network_policy.peers import peers_of
from pergola.controllers.network_policy.seen import SeenNamespace
from pergola.controllers.network_policy.service import read_service
from pergola.extensions.actuator import Actuator
from pergola.extensions.installation import installation_documents, installation_of
from pergola.extensions.loading import load_actuators
from pergola.extensions.seed import Seed
from pergola.sandbox.helm import render
from pergola.shipped import CHARTS
from tests.support.charts import with_image
from tests.support.network_policies import Endpoint, Network, Outside, Pod

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

OWN: Final = "extension-one"
NAMESPACES: Final = {
    OWN: {"gardener.cloud/role": "extension"},
    "garden": {"gardener.cloud/role": "garden"},
    "shoot--local--one": {"gardener.cloud/role": "shoot"},
    "istio-system": {"gardener.cloud/role": "istio-system"},
}
ALLOWED: Final = "networking.resources.gardener.cloud/to-"
PROMETHEUS: Final = Pod("garden", {f"{ALLOWED}extensions-all-seed-scrape-targets": "allowed"})
SHOOT_API_SERVER: Final = Pod(
    "shoot--local--one", {f"{ALLOWED}extensions-all-webhook-targets": "allowed"}
)
STRANGERS: Final = (Pod("istio-system", {}), Pod("shoot--local--one", {}), Pod("garden", {}))
CONNECTIONS: Final = {
    "networking.gardener.cloud/to-dns",
    "networking.gardener.cloud/to-private-networks",
    "networking.gardener.cloud/to-public-networks",
    "networking.gardener.cloud/to-runtime-apiserver",
    f"{ALLOWED}all-shoots-kube-apiserver-tcp-443",
}
ALL_KINDS: Final[dict[str, JsonObject]] = {
    "extension-aws": {"controlPlanes": {"enabled": True}, "workers": {"enabled": True}},
}


class Deployed(NamedTuple):
    """An extension.

    Attributes:
        objects: What is deployed.
        callers: Where its webhooks are registered: in the Seed, in Shoots.
    """

    objects: Sequence[JsonObject]
    actuators: Sequence[Actuator]

    @property
    def pod(self) -> JsonObject:
        """The template of its pods."""
        [found] = [each for each in self.objects if each["kind"] == "Deployment"]
        return map_at(found, "spec", "template")

    def port(self, name: str) -> int | None:
        """Return the number of a port of its container."""
        [container] = maps_at(self.pod, "spec", "containers")
        numbers = {each["name"]: each["containerPort"] for each in maps_at(container, "ports")}
        return cast("int | None", numbers.get(name))

    def registers(self, *, of_shoots: bool) -> bool:
        """Return whether it registers a webhook in Shoots, or in the Seed."""
        # Webhooks are declared without reading anything.
        seed = cast("Seed", None)
        return any(
            webhook.of_shoots is of_shoots
            for actuator in self.actuators
            for webhook in actuator.webhooks(seed)
        )

    def reachable(self, source: Endpoint, number: int | None) -> bool:
        """Return whether a connection to a port of its pods is possible."""
        assert number
        seen = {
            name: SeenNamespace({"kubernetes.io/metadata.name": name, **labels}, terminating=False)
            for name, labels in NAMESPACES.items()
        }
        policies = [closed(name) for name in NAMESPACES if name == OWN]
        for obj in self.objects:
            if obj["kind"] == "Service":
                service = read_service({**obj, "metadata": {**obj["metadata"], "uid": "1"}})
                found = intents(service, peers_of(service, seen), Environment(has_caller=None))
                policies += desired(service, found).values()
        [container] = maps_at(self.pod, "spec", "containers")
        target = Pod.of(
            {
                "metadata": {"namespace": OWN, "labels": labels_of(self.pod)},
                "spec": {"containers": [container]},
            }
        )
        return Network(NAMESPACES, policies).may_reach(source, target, "TCP", number)


def closed(namespace: str) -> JsonObject:
    """Return the policy by which Gardener denies all connections."""
    return {
        "metadata": {"name": "deny-all", "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }


def chart(name: str, reference: str) -> Deployed:
    objects = render(CHARTS / name, with_image(ALL_KINDS.get(name)), namespace=OWN)
    return Deployed(objects, load_actuators([reference]))


def of_sdk(reference: str) -> Deployed:
    actuators = load_actuators([reference])
    found = installation_of(actuators, [reference], "registry.example/pergola")
    objects = [
        {**obj, "metadata": {**obj["metadata"], "namespace": OWN}}
        for obj in installation_documents(found)
    ]
    return Deployed(objects, actuators)


EXTENSIONS: Final[dict[str, Callable[[], Deployed]]] = {
    "chart of calico": lambda: chart("networking-calico", "calico"),
    "chart of cilium": lambda: chart("networking-cilium", "cilium"),
    "chart of aws": lambda: chart("extension-aws", "aws"),
    "SDK, calico": lambda: of_sdk("calico"),
    "SDK, cilium": lambda: of_sdk("cilium"),
    "SDK, aws": lambda: of_sdk("aws"),
}


@pytest.fixture(params=EXTENSIONS)
def extension(request: pytest.FixtureRequest) -> Deployed:
    """Return each of our extensions, from its chart and from the SDK."""
    return EXTENSIONS[request.param]()


def test_prometheus_reads_the_metrics(extension: Deployed) -> None:
    number = extension.port("metrics")

    assert extension.reachable(PROMETHEUS, number)
    assert not extension.reachable(Outside(), number)
    annotations = map_at(extension.pod, "metadata", "annotations")
    assert annotations["prometheus.io/scrape"] == "true"
    assert annotations["prometheus.io/port"] == str(number)


def test_the_api_server_of_the_seed_reaches_webhooks_from_outside(extension: Deployed) -> None:
    if extension.registers(of_shoots=False):
        assert extension.reachable(Outside(), extension.port("webhooks"))


def test_api_servers_of_shoots_reach_webhooks(extension: Deployed) -> None:
    if extension.registers(of_shoots=True):
        assert extension.reachable(SHOOT_API_SERVER, extension.port("webhooks"))


def test_nobody_else_reaches_its_health_and_metrics(extension: Deployed) -> None:
    for name in ("health", "metrics"):
        for source in STRANGERS:
            assert not extension.reachable(source, extension.port(name)), (name, source)


def test_an_extension_connects_to_dns_api_servers_and_clouds(extension: Deployed) -> None:
    labels = labels_of(extension.pod)

    assert {name for name, value in labels.items() if value == "allowed"} == CONNECTIONS
