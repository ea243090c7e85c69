"""A Garden with DNS records in Route 53 and backups in S3, as changes to the example."""

from typing import Final

from pergola.api.objects import JsonObject

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
IN_AWS: Final[JsonObject] = {
    "spec": {
        "dns": {
            "providers": [
                {"name": "route53", "type": "aws-route53", "secretRef": {"name": "credentials"}}
            ]
        },
        "runtimeCluster": {
            "ingress": {
                "domains": [{"name": f"ingress.runtime-garden.{ZONE}", "provider": "route53"}]
            }
        },
        "virtualCluster": {
            "dns": {"domains": [{"name": f"virtual-garden.{ZONE}", "provider": "route53"}]},
            "etcd": {
                "main": {
                    "backup": {
                        "provider": "aws",
                        "region": REGION,
                        "bucketName": BUCKET,
                        "secretRef": {"name": "credentials"},
                    }
                }
            },
        },
    }
}
"""The patch of a Garden."""
