"""The effect of each value of the operator's chart (spec 20 §2)."""

import base64
from pathlib import Path
from typing import Final

import pytest

from pergola import __version__
from pergola.api.objects import JsonObject, labels_of, map_at, name_of
from pergola.bundle.image_vector import OVERWRITE
from pergola.garden.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import parse
from tests.support.operator_chart import OperatorChart

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

CHART: Final = Path(__file__).parents[3] / "charts" / "operator"
ROLE: Final = "gardener.cloud:system:gardener-operator"
KUBECONFIG: Final = "apiVersion: v1\nkind: Config\n"


def chart(values: JsonObject | None = None) -> OperatorChart:
    return OperatorChart.rendered(CHART, values)


@pytest.fixture(scope="module")
def default() -> OperatorChart:
    return chart()


def test_the_numbers_of_replicas_and_old_revisions() -> None:
    spec = map_at(chart({"replicaCount": 3, "revisionHistoryLimit": 5}).one("Deployment"), "spec")

    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (3, 5)


def test_the_operator_can_be_scaled_to_zero() -> None:
    assert map_at(chart({"replicaCount": 0}).one("Deployment"), "spec")["replicas"] == 0


def test_the_service_account() -> None:
    found = chart({"serviceAccountName": "other"})

    assert found.spec["serviceAccountName"] == "other"
    assert name_of(found.one("ServiceAccount")) == "other"
    for binding in ("ClusterRoleBinding", "RoleBinding"):
        assert found.one(binding)["subjects"][0]["name"] == "other"


@pytest.mark.parametrize(
    ("tag", "image"),
    [
        ("", f"registry.example.org/a:{__version__}"),
        ("v1.150.0", "registry.example.org/a:v1.150.0"),
        ("sha256:0123", "registry.example.org/a@sha256:0123"),
    ],
)
def test_the_image(tag: str, image: str) -> None:
    given = {"repository": "registry.example.org/a", "tag": tag, "pullPolicy": "Always"}

    container = chart({"image": given}).container

    assert (container["image"], container["imagePullPolicy"]) == (image, "Always")


def test_the_resources() -> None:
    changed = chart({"resources": {"requests": {"cpu": 2}, "limits": None}}).container

    assert changed["resources"] == {"requests": {"cpu": 2, "memory": "256Mi"}}


def test_labels_and_annotations_of_pods() -> None:
    found = chart({"podLabels": {"team": "a", "app": "other"}, "podAnnotations": {"note": "b"}})

    labels = found.pod["metadata"]["labels"]
    assert labels["team"] == "a"
    assert labels["app"] == "gardener"
    assert found.pod["metadata"]["annotations"]["note"] == "b"
    assert "team" not in labels_of(found.one("Deployment"))


def test_host_aliases() -> None:
    aliases = [{"ip": "10.0.0.1", "hostnames": ["api.example.org"]}]

    assert chart({"hostAliases": aliases}).spec["hostAliases"] == aliases


def test_environment_variables() -> None:
    variables: list[JsonObject] = [
        {"name": "WEBHOOK_MODE", "value": "url"},
        {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
    ]

    own = chart().container["env"]
    assert chart({"env": variables}).container["env"] == [*own, *variables]


def test_additional_volumes(default: OperatorChart) -> None:
    volume: JsonObject = {"name": "more", "emptyDir": {}}
    mount: JsonObject = {"name": "more", "mountPath": "/more"}

    found = chart({"additionalVolumes": [volume], "additionalVolumeMounts": [mount]})

    assert found.spec["volumes"] == [*default.spec["volumes"], volume]
    assert found.container["volumeMounts"] == [*default.container["volumeMounts"], mount]


@pytest.mark.parametrize(
    ("value", "variable"),
    [
        ("imageVectorOverwrite", OVERWRITE),
        ("componentImageVectorOverwrites", "IMAGEVECTOR_OVERWRITE_COMPONENTS"),
        ("chartsImageVectorOverwrite", "IMAGEVECTOR_OVERWRITE_CHARTS"),
    ],
)
def test_image_vectors(value: str, variable: str, default: OperatorChart) -> None:
    text = 'images:\n- name: "a"\n  tag: "1.10"\n'

    found = chart({value: text})

    (_, set_variable) = found.container["env"]
    assert set_variable["name"] == variable
    folder, _, file = set_variable["value"].rpartition("/")
    (mounted,) = (m for m in found.container["volumeMounts"] if m["mountPath"] == folder)
    (volume,) = (v for v in found.spec["volumes"] if v["name"] == mounted["name"])
    assert found.named(volume["configMap"]["name"])["data"] == {file: text}
    assert len(found.objects) == len(default.objects) + 1


def test_tolerations_of_broken_nodes() -> None:
    given = {"defaultNotReadyTolerationSeconds": 0, "defaultUnreachableTolerationSeconds": 3600000}

    found = chart({"nodeToleration": given})

    seconds = {each["key"]: each["tolerationSeconds"] for each in found.spec["tolerations"]}
    assert seconds == {
        "node.kubernetes.io/not-ready": 0,
        "node.kubernetes.io/unreachable": 3600000,
    }
    assert found.file["nodeToleration"] == given


def test_tolerations_default_to_those_of_the_cluster() -> None:
    found = chart({"nodeToleration": None})

    assert "tolerations" not in found.spec
    assert "nodeToleration" not in found.file


def test_tolerations_in_the_configuration_take_precedence() -> None:
    own = {"defaultNotReadyTolerationSeconds": 5}

    assert chart({"config": {"nodeToleration": own}}).file["nodeToleration"] == own


def test_the_configuration_is_rendered_unchanged() -> None:
    given: JsonObject = {
        "logLevel": "debug",
        "leaderElection": {"resourceName": "other"},
        "controllers": {
            "garden": {"etcdConfig": {"backupCompactionController": {"eventsThreshold": 12345678}}},
            "gardenCare": {"conditionThresholds": []},
            "networkPolicy": {"additionalNamespaceSelectors": [{"matchLabels": {"a": "true"}}]},
        },
    }
    defaults = parse((CHART / "values.yaml").read_text())
    assert isinstance(defaults, dict)

    found = chart({"config": given})

    owner: JsonObject = {"server": {"webhooks": {"ownerClusterRole": ROLE}}}
    expected = apply_merge_patch(map_at(defaults, "config"), {**given, **owner})
    header = {key: found.file[key] for key in ("apiVersion", "kind")}
    assert found.file == {**expected, **header, "nodeToleration": defaults["nodeToleration"]}
    assert found.config.log_level == "debug"


def test_a_changed_configuration_gets_a_new_name_and_rolls_out_the_pods(
    default: OperatorChart,
) -> None:
    changed = chart({"config": {"logLevel": "debug"}})

    assert changed.pod != default.pod
    names = {name_of(each.named("gardener-operator-configmap-")) for each in (changed, default)}
    assert len(names) == 2


def test_the_default_configuration_is_valid_and_equals_the_original(
    default: OperatorChart,
) -> None:
    config = default.config

    assert config.leader_election.resource_name == "gardener-operator-leader-election"
    assert config.leader_election.resource_namespace == "garden"
    assert config.feature_gates == {"DefaultSeccompProfile": True}
    assert config.controllers.garden.etcd_config.etcd_controller.workers == 3
    assert config.controllers.gardenlet_deployer.concurrent_syncs == 5
    assert len(config.controllers.garden_care.condition_thresholds) == 4
    assert config.node_toleration.default_not_ready_toleration_seconds == 60


def test_changed_ports_are_used_everywhere() -> None:
    ports: JsonObject = {
        "webhooks": {"port": 1001},
        "healthProbes": {"port": 1002},
        "metrics": {"port": 1003},
    }

    found = chart({"config": {"server": ports}})

    assert [port["containerPort"] for port in found.container["ports"]] == [1001, 1002, 1003]
    service = found.one("Service")
    assert [port["targetPort"] for port in service["spec"]["ports"]] == [1003, 1001]
    assert map_at(service, "metadata")["annotations"] == open_ports(GARDEN_SCRAPES, 1003)
    assert found.file["server"] == apply_merge_patch(
        ports, {"webhooks": {"ownerClusterRole": ROLE}}
    )


def test_without_ports_the_process_uses_its_defaults() -> None:
    found = chart({"config": {"server": None}})

    assert [port["containerPort"] for port in found.container["ports"]] == [2750, 2751, 2752]


def test_the_lease_name_can_be_changed() -> None:
    found = chart({"config": {"leaderElection": {"resourceName": "other"}}})

    names = [rule.get("resourceNames") for rule in found.one("Role")["rules"]]
    assert ["other"] in names
    assert ["gardener-operator-leader-election"] not in names


def test_a_kubeconfig_is_kept_in_a_secret_and_replaces_the_token() -> None:
    found = chart({"config": {"runtimeClientConnection": {"kubeconfig": KUBECONFIG}}})

    path = found.config.runtime_client_connection.kubeconfig
    folder, _, file = path.rpartition("/")
    (mounted,) = (m for m in found.container["volumeMounts"] if m["mountPath"] == folder)
    (volume,) = (v for v in found.spec["volumes"] if v["name"] == mounted["name"])
    secret = found.one("Secret")
    assert volume["secret"]["secretName"] == name_of(secret)
    assert base64.b64decode(secret["data"][file]).decode() == KUBECONFIG
    assert not [volume for volume in found.spec["volumes"] if "projected" in volume]
    assert KUBECONFIG not in found.named("gardener-operator-configmap-")["data"]["config.yaml"]


def test_a_role_of_the_release_owns_the_webhooks_in_the_same_cluster(
    default: OperatorChart,
) -> None:
    role = default.config.server.webhooks.owner_cluster_role

    assert role in [name_of(each) for each in default.of("ClusterRole")]
    readable = [
        rule
        for rule in default.one("ClusterRole")["rules"]
        if rule.get("resourceNames") == [role] and "get" in rule["verbs"]
    ]
    assert readable
    elsewhere = chart({"config": {"runtimeClientConnection": {"kubeconfig": KUBECONFIG}}})
    assert not elsewhere.config.server.webhooks.owner_cluster_role
