"""Access of components to the virtual cluster (spec 20 §12.3, §13)."""

import base64

from pergola.api.objects import map_at, maps_at
from pergola.garden.components.virtual_access import access_secret, credentials, kubeconfig_volume
from pergola.garden.landscape import Landscape
from pergola.kube.yaml import parse
from pergola.manifests.shoot_access import KUBECONFIG_PATH, kubeconfig_mount
from pergola.secrets_manager import Kubeconfig
from tests.support.garden import landscape


def cluster_and_user(of: Landscape) -> tuple[dict[str, object], dict[str, object]]:
    (credential,) = credentials(of)
    assert isinstance(credential.config, Kubeconfig)
    config = parse(credential.config.content)
    assert isinstance(config, dict)
    (cluster,), (user,) = maps_at(config, "clusters"), maps_at(config, "users")
    return map_at(cluster, "cluster"), map_at(user, "user")


def test_the_kubeconfig_trusts_the_old_and_the_new_authority() -> None:
    cluster, _ = cluster_and_user(landscape())
    assert base64.b64decode(str(cluster["certificate-authority-data"])) == b"bundle"


def test_components_reach_the_api_server_under_its_domain_if_istio_terminates_tls() -> None:
    cluster, _ = cluster_and_user(landscape())
    assert cluster["server"] == "https://api.virtual-garden.local.gardener.cloud"


def test_components_reach_the_service_of_the_api_server_if_istio_passes_tls_through() -> None:
    cluster, _ = cluster_and_user(landscape(feature_gates={"IstioTLSTermination": False}))
    assert cluster["server"] == "https://virtual-garden-kube-apiserver"


def test_pods_find_the_token_where_the_kubeconfig_expects_it() -> None:
    _, user = cluster_and_user(landscape())
    directory = kubeconfig_mount()["mountPath"]
    assert f"{directory}/kubeconfig" == KUBECONFIG_PATH
    assert user == {"tokenFile": f"{directory}/token"}
    volume = kubeconfig_volume(landscape(), "example")
    secrets = [map_at(each, "secret")["name"] for each in maps_at(volume, "projected", "sources")]
    assert secrets == ["generic-token-kubeconfig-0123abcd", "shoot-access-example"]


def test_an_access_secret_has_no_data_so_its_token_is_kept() -> None:
    secret = access_secret("example", expiration="24h")
    assert "data" not in secret
    assert map_at(secret, "metadata", "annotations") == {
        "serviceaccount.resources.gardener.cloud/name": "example",
        "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
        "serviceaccount.resources.gardener.cloud/token-expiration-duration": "24h",
    }
