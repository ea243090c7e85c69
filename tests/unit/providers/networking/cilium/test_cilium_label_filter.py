"""The labels of identities, by the rules with which cilium reads its file."""

import orjson
import pytest

from pergola.api.objects import map_at, maps_at, name_of
from pergola.providers.networking.cilium import Cilium
from pergola.providers.networking.cilium.label_filter import label_prefixes
from tests.support.cilium_plans import cilium_plan


@pytest.mark.parametrize(
    ("label", "is_kept"),
    [
        ("app", True),
        ("app.kubernetes.io/name", True),
        ("batch.kubernetes.io/job-name", True),
        ("io.kubernetes.pod.namespace", True),
        ("io.cilium.k8s.namespace.labels.team", True),
        ("io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name", True),
        ("io.cilium.k8s.policy.serviceaccount", True),
        ("networking.gardener.cloud/to-dns", True),
        ("kubernetes.io/arch", False),
        ("pod-template-hash", False),
        ("controller-uid", False),
        ("batch.kubernetes.io/controller-uid", False),
        ("statefulset.kubernetes.io/pod-name", False),
        ("topology.kubernetes.io/zone", False),
    ],
)
def test_only_labels_used_by_policies_are_part_of_identities(label: str, is_kept: bool) -> None:
    excluding = [rule for rule in label_prefixes()["valid-prefixes"] if rule["source"] == "k8s"]

    assert any(label.startswith(rule["prefix"]) for rule in excluding) is not is_kept


def test_every_rule_has_a_source_and_none_includes_labels() -> None:
    for rule in label_prefixes()["valid-prefixes"]:
        assert rule["source"] in ("k8s", "reserved")
        assert rule["prefix"]
        assert rule["invert"] is True, "one rule that includes labels would exclude all others"


def test_agents_and_operator_mount_the_file_at_the_configured_path() -> None:
    rendered = {(obj["kind"], name_of(obj)): obj for obj in Cilium().render(cilium_plan()).shoot}
    path = rendered["ConfigMap", "cilium-config"]["data"]["label-prefix-file"]
    config_map = rendered["ConfigMap", "label-prefix-conf"]
    directory, _, key = path.rpartition("/")

    assert orjson.loads(config_map["data"][key]) == label_prefixes()
    for workload in (("DaemonSet", "cilium"), ("Deployment", "cilium-operator")):
        pod = map_at(rendered[workload], "spec", "template", "spec")
        [volume] = [
            volume["name"]
            for volume in maps_at(pod, "volumes")
            if map_at(volume, "configMap").get("name") == "label-prefix-conf"
        ]
        mounts = {m["mountPath"]: m["name"] for m in maps_at(pod, "containers")[0]["volumeMounts"]}
        assert mounts[directory] == volume
