"""A Garden with DNS records in Route 53 and backups in S3, as changes to another one."""

from typing import Any, Final

REGION: Final = "eu-west-1"
ZONE: Final = "local.gardener.cloud"
NAMES: Final = (
    f"api.virtual-garden.{ZONE}",
    f"gardener.virtual-garden.{ZONE}",
    f"*.ingress.runtime-garden.{ZONE}",
)
"""Its DNS records, in a hosted zone of the name `ZONE`."""
BUCKET: Final = "garden-backups"
KEYS: Final = {"accessKeyID": "AKIATEST", "secretAccessKey": "secret"}
"""The data of Secret `garden/credentials`, for both."""
_BACKUP: Final = "spec.virtualCluster.etcd.main.backup"
IN_AWS: Final[dict[str, Any]] = {
    "spec.runtimeCluster.provider.region": REGION,
    "spec.dns.providers": [
        {"name": "primary", "type": "aws-route53", "secretRef": {"name": "credentials"}}
    ],
    "spec.runtimeCluster.ingress.domains": [
        {"name": f"ingress.runtime-garden.{ZONE}", "provider": "primary"}
    ],
    "spec.virtualCluster.dns.domains": [{"name": f"virtual-garden.{ZONE}", "provider": "primary"}],
    f"{_BACKUP}.provider": "aws",
    f"{_BACKUP}.secretRef": {"name": "credentials"},
}
"""The values of a Garden by dotted path; the operator chooses the name of the bucket."""
IN_BUCKET: Final = {**IN_AWS, f"{_BACKUP}.region": REGION, f"{_BACKUP}.bucketName": BUCKET}
"""The same with a bucket whose name is given."""
