"""Routes of control-plane pods to their API server: spec 12 §12."""

import hypothesis
import pytest
from hypothesis import strategies as st

from pergola.admission.review import Verdict
from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.names import caller_label, port_id
from pergola.kube.errors import ApiError, KubeError, NotFound, Unreachable
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.pod_kube_apiserver_load_balancing import (
    PATH,
    PodKubeApiserverLoadBalancing,
    registrations,
)
from tests.support.reviews import patched, pod, review_of

LABEL = (
    "networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443"
)
HOSTS = ["api.internal", "api.example.com"]
KUBECONFIG: JsonObject = {
    "name": "kubeconfig",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token"}},
            {"secret": {"name": "generic-token-kubeconfig-1a2b"}},
        ]
    },
}


def missing(kind: str, name: str) -> NotFound:
    return NotFound(404, {"message": f'{kind} "{name}" not found', "reason": "NotFound"})


class ControlPlane:
    """A namespace's ConfigMap, and the gateway's Service; None if absent."""

    def __init__(
        self, data: JsonObject | None = None, *addresses: str, error: KubeError | None = None
    ) -> None:
        self.data = data
        self.addresses = addresses
        self.error = error
        self.asked: list[Key] = []

    async def config_map(self, key: Key) -> JsonObject:
        self.asked.append(key)
        if self.error:
            raise self.error
        if self.data is None:
            raise missing("configmaps", key.name)
        return {"data": self.data}

    async def service(self, key: Key) -> JsonObject:
        self.asked.append(key)
        if not self.addresses:
            raise missing("services", key.name)
        return {"spec": {"clusterIPs": list(self.addresses)}}

    async def review(self, given: JsonObject) -> Verdict:
        handler = PodKubeApiserverLoadBalancing(self.config_map, self.service)
        return await handler(review_of(given, namespace="shoot--a--b"))


CONFIG = {"hosts": ",".join(HOSTS), "istio-namespace": "istio-ingress"}


async def test_a_dual_stack_service_gives_two_aliases_in_order() -> None:
    given = pod(volumes=[KUBECONFIG])
    cluster = ControlPlane(CONFIG, "10.0.0.1", "2001:db8::1")
    changed = patched(given, await cluster.review(given))
    assert changed["spec"]["hostAliases"] == [
        {"ip": "10.0.0.1", "hostnames": HOSTS},
        {"ip": "2001:db8::1", "hostnames": HOSTS},
    ]
    assert changed["metadata"]["labels"] == {LABEL: "allowed"}
    assert cluster.asked == [
        Key("shoot--a--b", "istio-internal-load-balancing"),
        Key("istio-ingress", "istio-ingressgateway-internal"),
    ]


@pytest.mark.parametrize(
    "volumes",
    [
        [],
        [{"name": "a", "secret": {"secretName": "other"}}],
        [{"name": "generic-token-kubeconfig", "emptyDir": {}}],
        [{"name": "a", "projected": {"sources": [{"configMap": {"name": "c"}}]}}],
    ],
)
async def test_a_pod_without_the_kubeconfig_is_unchanged_and_nothing_is_read(
    volumes: list[JsonObject],
) -> None:
    cluster = ControlPlane(CONFIG, "10.0.0.1")
    verdict = await cluster.review(pod(volumes=volumes))
    assert (verdict.edits, cluster.asked) == ((), [])
    assert verdict.because == "the pod does not mount the generic kubeconfig"


async def test_a_secret_volume_is_recognized_too() -> None:
    volume = {"name": "a", "secret": {"secretName": "generic-token-kubeconfig"}}
    assert (await ControlPlane(CONFIG, "10.0.0.1").review(pod(volumes=[volume]))).edits


async def test_without_the_config_map_nothing_changes() -> None:
    verdict = await ControlPlane().review(pod(volumes=[KUBECONFIG]))
    assert (verdict.allowed, verdict.edits) == (True, ())
    assert verdict.because == ("ConfigMap shoot--a--b/istio-internal-load-balancing does not exist")


async def test_without_the_service_the_pod_is_refused() -> None:
    verdict = await ControlPlane(CONFIG).review(pod(volumes=[KUBECONFIG]))
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 404, "NotFound")
    assert "generic-token-kubeconfig-1a2b" in verdict.message
    assert "shoot--a--b/istio-internal-load-balancing" in verdict.message
    assert verdict.message.startswith('services "istio-ingressgateway-internal" not found (')


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"istio-namespace": "i"}, "hosts"),
        ({"hosts": "", "istio-namespace": "i"}, "hosts"),
        ({"hosts": " , ", "istio-namespace": "i"}, "hosts"),
        ({"hosts": "a"}, "istio-namespace"),
    ],
)
async def test_an_incomplete_config_map_refuses_the_pod(data: JsonObject, name: str) -> None:
    verdict = await ControlPlane(data, "10.0.0.1").review(pod(volumes=[KUBECONFIG]))
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert f'the key "{name}" of ConfigMap shoot--a--b/' in verdict.message


@pytest.mark.parametrize(
    ("error", "code"), [(ApiError(500, {"message": "broken"}), 500), (Unreachable("broken"), 403)]
)
async def test_a_config_map_that_cannot_be_read_refuses_the_pod(
    error: KubeError, code: int
) -> None:
    verdict = await ControlPlane(error=error).review(pod(volumes=[KUBECONFIG]))
    assert (verdict.allowed, verdict.code) == (False, code)
    assert verdict.message.startswith("broken (")
    assert verdict.message.endswith("/istio-internal-load-balancing)")


async def test_a_headless_service_is_named_as_the_reason() -> None:
    verdict = await ControlPlane(CONFIG, "None").review(pod(volumes=[KUBECONFIG]))
    assert not verdict.allowed
    assert "is headless" in verdict.message


async def test_a_second_call_duplicates_no_alias() -> None:
    given = pod(volumes=[KUBECONFIG])
    cluster = ControlPlane(CONFIG, "10.0.0.1")
    verdict = await cluster.review(patched(given, await cluster.review(given)))
    assert (verdict.edits, verdict.because) == ((), "its aliases and its label are already set")


async def test_an_alias_of_the_address_gets_only_the_missing_names() -> None:
    own = [{"ip": "10.0.0.1", "hostnames": ["mine", HOSTS[1]]}, {"ip": "10.9.9.9"}]
    given = pod(volumes=[KUBECONFIG], hostAliases=own)
    changed = patched(given, await ControlPlane(CONFIG, "10.0.0.1").review(given))
    assert changed["spec"]["hostAliases"] == [
        {"ip": "10.0.0.1", "hostnames": ["mine", HOSTS[1], HOSTS[0]]},
        {"ip": "10.9.9.9"},
    ]


def test_a_garden_has_an_additional_entry_on_the_same_path() -> None:
    (shoots,) = registrations(Installation("runtime"))
    assert shoots.namespace_selector == {"matchLabels": {"gardener.cloud/role": "shoot"}}
    same, garden = registrations(Installation("runtime", garden=True))
    assert same == shoots
    assert garden.name == (
        "pod-virtual-garden-kube-apiserver-load-balancing.resources.gardener.cloud"
    )
    assert garden.namespace_selector == {"matchLabels": {"kubernetes.io/metadata.name": "garden"}}
    expressions = garden.object_selector["matchExpressions"]
    assert {
        "key": "app",
        "operator": "NotIn",
        "values": ["gardener-resource-manager"],
    } in expressions
    assert {entry.path for entry in (shoots, garden)} == {PATH}


NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@hypothesis.given(NAMESPACES)
@hypothesis.example("istio-ingress--eu-west-1a")
async def test_the_label_is_valid_and_the_one_that_network_policies_select(istio: str) -> None:
    given = pod(volumes=[KUBECONFIG])
    cluster = ControlPlane({"hosts": "a", "istio-namespace": istio}, "10.0.0.1")
    (label,) = patched(given, await cluster.review(given))["metadata"]["labels"]
    assert len(label.partition("/")[2]) <= 63
    gateway = Key(istio, "istio-ingressgateway-internal")
    assert label == caller_label(istio, port_id(gateway.name, "TCP", 9443)).key
