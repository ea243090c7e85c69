"""Worker pools and ControlPlaneConfigs of Shoots on AWS."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference
from conformance.oracles import Answer
from conformance.strategies.aws import TYPES, ZONES, config
from conformance.strategies.aws_infrastructure import BASES
from conformance.strategies.aws_pools import FIELDS, POOLS, TYPED
from conformance.strategies.fields import (
    ANYTHING,
    BOOLEANS,
    changed,
    changes,
    free,
    one_of_changed,
)
from conformance.subjects.aws_verdicts import OfAws, compared
from pergola.api.objects import JsonObject
from pergola.providers.aws.shoot_checks import CONTROL_PLANE, check_shoot
from pergola.providers.aws.validation.pools import check_pools


class AwsWorker(OfAws):
    """The verdict about a worker pool with its WorkerConfig, and about its change."""

    name = "aws-worker"
    title = "AWS: WorkerConfig and worker pools"
    code = (
        "pergola.providers.aws.validation.pools",
        "pergola.providers.aws.validation.worker_config",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield valid pools, and no change of each."""
        for pool in POOLS:
            yield {"pool": pool, "zones": list(ZONES)}
            yield {"pool": pool, "old": pool, "zones": list(ZONES)}
        amount = config("WorkerConfig", {"nodeTemplate": {"capacity": {"cpu": "Gi"}}})
        yield {"pool": {**POOLS[0], "providerConfig": amount}, "zones": list(ZONES)}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return pools with a few odd fields; the others are as in the old pool."""
        return st.one_of(list(map(_pools, POOLS)))

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts."""
        old = question.get("old")
        before = None if old is None else _shoot_of(old)
        shoot = _shoot_of(question["pool"])
        return compared(answer, list(check_pools(shoot, before, question["zones"], None)))


class AwsControlPlane(OfAws):
    """The verdict about a ControlPlaneConfig."""

    name = "aws-control-plane"
    title = "AWS: ControlPlaneConfig"
    code = ("pergola.providers.aws.shoot_checks",)

    def table(self) -> Iterator[JsonObject]:
        """Yield a valid config for each version of Kubernetes."""
        for version in _VERSIONS:
            yield {"config": _CONTROL_PLANE, "version": version}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return configs with a few odd fields."""
        return st.fixed_dictionaries(
            {
                "config": one_of_changed(
                    [_CONTROL_PLANE, config("ControlPlaneConfig", {})], _FIELDS
                ),
                "version": st.sampled_from(_VERSIONS),
            }
        )

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts; our findings about a Shoot that is valid otherwise."""
        shoot = {
            "spec": {
                "region": "eu-west-1",
                "kubernetes": {"version": question["version"]},
                "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
                "provider": {
                    "type": "aws",
                    "infrastructureConfig": BASES[1],
                    "controlPlaneConfig": question["config"],
                    "workers": [POOLS[0]],
                },
            }
        }
        return compared(answer, list(check_shoot(shoot)), under=CONTROL_PLANE)


def _shoot_of(pool: JsonObject) -> JsonObject:
    return {"spec": {"region": "eu-west-1", "provider": {"workers": [pool]}}}


def _pools(base: JsonObject) -> SearchStrategy[JsonObject]:
    old = st.none() | changes(TYPED, most=1).map(lambda made: changed(base, made))
    drawn = st.tuples(old, changes(FIELDS), st.sampled_from([list(ZONES), list(ZONES), [ZONES[0]]]))
    return drawn.map(
        lambda parts: {
            "pool": changed(parts[0] or base, parts[1]),
            "zones": parts[2],
            **({"old": parts[0]} if parts[0] is not None else {}),
        }
    )


_VERSIONS: Final = ("1.32.9", "1.33.5", "1.34.2", "1.35.1", "1.36.0")
_CONTROL_PLANE: Final = config(
    "ControlPlaneConfig",
    {
        "cloudControllerManager": {
            "featureGates": {"AllAlpha": False},
            "useCustomRouteController": True,
        },
        "loadBalancerController": {"enabled": True, "ingressClassName": "alb"},
        "storage": {"managedDefaultClass": False},
    },
)
_GATES: Final = (
    "AllAlpha",
    "AllBeta",
    "CloudControllerManagerWebhook",
    "CloudControllerManagerWatchBasedRoutesReconciliation",
    "CloudDualStackNodeIPs",
    "ContextualLogging",
    "DynamicResourceAllocation",
    "InPlacePodVerticalScaling",
    "InTreePluginAWSUnregister",
    "LegacyServiceAccountTokenTracking",
    "MutatingAdmissionPolicy",
    "NoSuchGate",
    "SidecarContainers",
    "StructuredAuthenticationConfiguration",
    "VolumeAttributesClass",
    "WatchList",
    "",
    "allalpha",
)
_FIELDS: Final[dict[str, SearchStrategy[Any]]] = free(
    {
        "cloudControllerManager.featureGates": st.dictionaries(
            st.sampled_from(_GATES), st.booleans(), max_size=2
        ),
        **{f"cloudControllerManager.featureGates.{gate}": st.booleans() for gate in _GATES if gate},
        "cloudControllerManager.useCustomRouteController": BOOLEANS,
        "loadBalancerController.enabled": BOOLEANS,
        "loadBalancerController.ingressClassName": st.sampled_from(
            ["alb", "", "ALB", "a.b-c", "a_b", "-", ".", "a" * 253, "a" * 254, "ä", "a\n", "a/b"]
        )
        | ANYTHING,
        "storage.managedDefaultClass": BOOLEANS,
    }
    | TYPES
)
