"""Builders of Kubernetes objects: pure functions from values to plain maps.

`objects` builds any object; `containers`, `volumes` and `workloads` build the parts of pods, `rbac`
identities and permissions, `services` and `autoscaling` the companions of workloads; `token_access`
gives pods a token that expires, `shoot_access` the kubeconfig of a Shoot; `labels` names the labels
that Gardener's controllers look for.

Nothing here reads a cluster, knows a product or chooses values; that is up to callers. `bundle`
ships the objects.
"""

from pergola.manifests.autoscaling import target_reference, vertical_pod_autoscaler
from pergola.manifests.containers import (
    PRIVILEGED,
    RUNTIME_DEFAULT,
    capable,
    env,
    exec_probe,
    flag,
    from_config_map,
    from_pod,
    host_port,
    http_probe,
    https_probe,
    port,
    requests,
    restricted,
)
from pergola.manifests.objects import KUBE_SYSTEM, Images, manifest, selector
from pergola.manifests.rbac import (
    READ,
    account,
    cluster_role,
    group,
    role,
    rule,
    service_account,
    user,
)
from pergola.manifests.services import HEADLESS, service, service_port
from pergola.manifests.shoot_access import KUBECONFIG_PATH, kubeconfig_mount, kubeconfig_volume
from pergola.manifests.token_access import token_mount, token_volume
from pergola.manifests.volumes import (
    config_map_volume,
    empty_dir,
    host_path,
    mount,
    projected,
    secret_files,
)
from pergola.manifests.workloads import (
    LINUX,
    ON_EVERY_NODE,
    SYSTEM_PRIORITY,
    TOLERATE_EVERYTHING,
    at_most_one_per_node,
    disruption_budget,
    non_root,
    spread,
)

__all__ = [
    "HEADLESS",
    "KUBECONFIG_PATH",
    "KUBE_SYSTEM",
    "LINUX",
    "ON_EVERY_NODE",
    "PRIVILEGED",
    "READ",
    "RUNTIME_DEFAULT",
    "SYSTEM_PRIORITY",
    "TOLERATE_EVERYTHING",
    "Images",
    "account",
    "at_most_one_per_node",
    "capable",
    "cluster_role",
    "config_map_volume",
    "disruption_budget",
    "empty_dir",
    "env",
    "exec_probe",
    "flag",
    "from_config_map",
    "from_pod",
    "group",
    "host_path",
    "host_port",
    "http_probe",
    "https_probe",
    "kubeconfig_mount",
    "kubeconfig_volume",
    "manifest",
    "mount",
    "non_root",
    "port",
    "projected",
    "requests",
    "restricted",
    "role",
    "rule",
    "secret_files",
    "selector",
    "service",
    "service_account",
    "service_port",
    "spread",
    "target_reference",
    "token_mount",
    "token_volume",
    "user",
    "vertical_pod_autoscaler",
]
