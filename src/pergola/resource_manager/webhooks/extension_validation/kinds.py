"""All validated kinds, and their rules (spec 12 §15.2)."""

from typing import Final

from pergola.api.network_validation import (
    check_network,
    check_network_update,
)
from pergola.resource_manager.webhooks.extension_validation.dns_record import (
    check_dns_record,
    check_dns_record_update,
)
from pergola.resource_manager.webhooks.extension_validation.exposure_and_etcd import (
    check_etcd,
    check_etcd_update,
    check_exposure,
)
from pergola.resource_manager.webhooks.extension_validation.operating_system_config import (
    check_operating_system_config,
    check_operating_system_config_update,
)
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import (
    Check,
    CheckUpdate,
    Kind,
    check_bastion,
    check_control_plane,
    check_control_plane_update,
    simple,
)
from pergola.resource_manager.webhooks.extension_validation.worker import check_worker

EXTENSIONS: Final = "extensions.gardener.cloud"
DRUID: Final = "druid.gardener.cloud"
_PLACED: Final = ("type", "region", "secretRef.name")


def _kind(
    kind: str,
    plural: str,
    word: str,
    checks: tuple[Check, CheckUpdate],
    *,
    group: str = EXTENSIONS,
    namespaced: bool = True,
) -> Kind:
    return Kind(group, kind, plural, word, *checks, namespaced=namespaced)


KINDS: Final = (
    _kind(
        "BackupBucket",
        "backupbuckets",
        "backup bucket",
        simple(_PLACED, ("type", "region")),
        namespaced=False,
    ),
    _kind(
        "BackupEntry",
        "backupentries",
        "backup entry",
        simple(("type", "bucketName", "region", "secretRef.name"), ("type",)),
        namespaced=False,
    ),
    _kind(
        "Bastion",
        "bastions",
        "bastion",
        simple(("type", "userData"), ("type", "userData"), check_bastion),
    ),
    _kind(
        "ContainerRuntime",
        "containerruntimes",
        "container runtime",
        simple(("type", "binaryPath", "workerPool.name"), ("type", "workerPool.name")),
    ),
    _kind(
        "ControlPlane",
        "controlplanes",
        "control plane",
        (simple(_PLACED, (), check_control_plane)[0], check_control_plane_update),
    ),
    _kind("DNSRecord", "dnsrecords", "dns record", (check_dns_record, check_dns_record_update)),
    _kind("Extension", "extensions", "extension", simple(("type",), ("type",))),
    _kind(
        "Infrastructure",
        "infrastructures",
        "infrastructure",
        simple(_PLACED, ("type", "region")),
    ),
    _kind("Network", "networks", "network", (check_network, check_network_update)),
    _kind(
        "OperatingSystemConfig",
        "operatingsystemconfigs",
        "operatingsystemconfig",
        (check_operating_system_config, check_operating_system_config_update),
    ),
    _kind(
        "SelfHostedShootExposure",
        "selfhostedshootexposures",
        "SelfHostedShootExposure",
        (check_exposure, simple((), ("type",))[1]),
    ),
    _kind("Worker", "workers", "worker", (check_worker, simple((), ("type", "region"))[1])),
    _kind("Etcd", "etcds", "etcd", (check_etcd, check_etcd_update), group=DRUID),
)
