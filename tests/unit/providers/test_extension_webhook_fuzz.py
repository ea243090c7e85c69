"""Webhooks of extensions respond to any request with a valid review, and never fail."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.documents import client_of
from conformance.questions import collected
from pergola.admission.webhook import Webhook
from pergola.api.objects import GroupVersionKind, JsonObject, map_at
from pergola.extensions.garden import CloudProfiles, Garden
from pergola.extensions.webhooks.clouds import AZURE
from pergola.extensions.webhooks.network_mutator import network_mutator
from pergola.kube.yaml import parse_documents
from pergola.providers.aws.admission import webhooks as aws
from pergola.providers.networking.admission import admission_webhooks
from pergola.providers.networking.calico.plugin import Calico
from pergola.providers.networking.cilium import node_local_dns
from pergola.providers.networking.cilium.plugin import Cilium
from pergola.runtime.metrics import Metrics
from tests.support.fuzzing import Fuzzed, Sample, examples

pytestmark = pytest.mark.thorough("fuzz")

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
PROFILE: Final[JsonObject] = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "CloudProfile",
    "metadata": {"name": "aws"},
    "spec": {
        "machineImages": [{"name": "i", "versions": [{"version": "1"}]}],
        "regions": [{"name": "eu-west-1", "zones": [{"name": "eu-west-1a"}]}],
    },
}


def documents(path: str) -> list[JsonObject]:
    found = [document.value for document in parse_documents((EXAMPLES / path).read_text())]
    return [value for value in found if isinstance(value, dict)]


def of_kind(kind: str, path: str) -> JsonObject:
    [found] = [each for each in documents(path) if each["kind"] == kind]
    return found


def shoot(path: str) -> Sample:
    found = map_at(of_kind("Cluster", path), "spec", "shoot")
    return Sample("core.gardener.cloud", "shoots", found)


def aws_shoot() -> Sample:
    """Return the Shoot of a user-provided network, with the configuration of its Infrastructure."""
    path = "aws/pattern-2-byo.yaml"
    group, plural, found = shoot(path)
    config = map_at(of_kind("Infrastructure", path), "spec")["providerConfig"]
    found["spec"]["provider"]["infrastructureConfig"] = config
    found["spec"]["provider"]["workers"] = [aws_pool()]
    return Sample(group, plural, found)


def aws_pool() -> JsonObject:
    """Return a pool of workers with a complete `WorkerConfig`."""
    return {
        "name": "w",
        "machine": {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1.0.0"}},
        "volume": {"type": "gp3", "size": "50Gi"},
        "dataVolumes": [{"name": "data", "type": "io1", "size": "50Gi"}],
        "zones": ["eu-west-1a"],
        "updateStrategy": "AutoInPlaceUpdate",
        "providerConfig": {
            "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "WorkerConfig",
            "nodeTemplate": {"capacity": {"cpu": "2"}, "virtualCapacity": {"example.com/x": 1}},
            "volume": {"iops": 3000, "throughput": 200},
            "dataVolumes": [{"name": "data", "iops": 400, "snapshotID": "snap-1"}],
            "iamInstanceProfile": {"name": "nodes"},
            "instanceMetadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
            "cpuOptions": {"coreCount": 2, "threadsPerCore": 1, "amdSevSnp": "enabled"},
            "capacityReservation": {"capacityReservationId": "cr-1"},
            "networkInterfaces": [{"networkCardIndexRange": {"from": 1, "to": 2}, "type": "efa"}],
            "placement": {"tenancy": "host", "hostId": "h-1", "partitionNumber": 1},
            "instanceMarketOptions": {"marketType": "spot"},
        },
    }


def network(path: str) -> Sample:
    return Sample("extensions.gardener.cloud", "networks", of_kind("Network", path))


def core_file() -> Sample:
    metadata = {"name": "node-local-dns-0123", "namespace": "kube-system"}
    data = {"Corefile": ".:53 {\n    bind 169.254.20.10 10.0.0.10\n    cache 30\n}\n"}
    obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Sample("", "configmaps", obj)


def dns_daemon_set() -> Sample:
    containers = [{"name": "node-cache", "args": ["-localip", "169.254.20.10", "-skipteardown"]}]
    template = {"spec": {"hostNetwork": True, "containers": containers, "initContainers": []}}
    obj: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "node-local-dns", "namespace": "kube-system"},
        "spec": {"template": template},
    }
    return Sample("apps", "daemonsets", obj)


class KnownProfile(Garden):
    """A garden with one CloudProfile, and what other objects of AWS refer to."""

    def __init__(self) -> None:
        others = [each for question in QUESTIONS for each in question.get("others", ())]
        super().__init__(client_of([PROFILE, *others]))

    def cloud_profiles(self) -> CloudProfiles:
        return lambda _: PROFILE


def of_garden() -> list[Sample]:
    """Return an object of each kind that the webhooks of AWS get."""
    found = {each["object"]["kind"]: each["object"] for each in QUESTIONS}
    return [
        Sample(GroupVersionKind.of(obj).group, plural_of(kind), obj) for kind, obj in found.items()
    ]


def plural_of(kind: str) -> str:
    return f"{kind.lower().removesuffix('y')}{'ies' if kind.endswith('y') else 's'}"


QUESTIONS: Final = [*collected("aws-garden-objects")]
AWS: Final = [aws_shoot(), *of_garden()]
CALICO: Final = [shoot("network/calico/cluster.yaml")]
CILIUM: Final = [shoot("network/cilium/cluster.yaml")]
NETWORKS: Final = [network("network/calico/network.yaml"), network("network/cilium/network.yaml")]
NODE_LOCAL_DNS: Final = [core_file(), dns_daemon_set()]
WEBHOOKS: Final[dict[str, tuple[Webhook, list[Sample]]]] = {
    **{f"calico {each.short_name}": (each, CALICO) for each in admission_webhooks(Calico())},
    **{
        f"cilium {each.short_name}": (each, CILIUM)
        for each in admission_webhooks(Cilium(), Cilium().shoot_defaults())
    },
    **{f"cilium {each.short_name}": (each, NODE_LOCAL_DNS) for each in (node_local_dns.webhook(),)},
    **{f"aws {each.short_name}": (each, AWS) for each in aws.admission_webhooks(KnownProfile())},
    "azure networks": (network_mutator("provider-azure", "azure", AZURE), NETWORKS),
}


@pytest.mark.parametrize("name", sorted(WEBHOOKS))
@given(data=st.data())
@settings(max_examples=examples(), suppress_health_check=[HealthCheck.too_slow])
def test_a_webhook_of_an_extension_responds_to_any_request(name: str, data: st.DataObject) -> None:
    webhook, samples = WEBHOOKS[name]
    Fuzzed.of([webhook], Metrics()).check(data, webhook.registration.path, samples)
