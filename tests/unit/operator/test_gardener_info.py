"""The ConfigMap about Gardener for users of the virtual cluster (spec 20 §16.2)."""

from pergola.operator.reconcile.gardener_info import gardener_info
from tests.support.garden import landscape


def test_it_has_the_version_and_the_issuer_of_workload_identities() -> None:
    found = gardener_info(landscape(), "v1.130.0")
    assert found["metadata"] == {"name": "gardener-info", "namespace": "gardener-system-public"}
    assert found["data"] == {
        "gardenerAPIServer": (
            "version: v1.130.0\n"
            "workloadIdentityIssuerURL: https://discovery.ingress.runtime-garden.local."
            "gardener.cloud/garden/workload-identity/issuer\n"
        )
    }
