"""Our own extensions, as the examples install them, and a Garden that needs the one for AWS."""

from typing import Any, Final

from pergola.api.objects import JsonObject, map_at
from pergola.charts import ChartReference
from pergola.kube.yaml import parse
from pergola.shipped import EXAMPLES

ON_AWS: Final[dict[str, Any]] = {
    "spec.runtimeCluster.provider.region": "eu-west-1",
    "spec.virtualCluster.etcd.main.backup": {
        "provider": "aws",
        "secretRef": {"name": "backup"},
    },
    "spec.dns": {
        "providers": [{"name": "primary", "type": "aws-route53", "secretRef": {"name": "dns"}}]
    },
}
"""Values of a Garden whose DNS records and backups are in AWS."""


def own_extension(name: str, chart: ChartReference, values: JsonObject) -> JsonObject:
    """Return an example without its admission, with the chart in another registry.

    Args:
        values: In addition to its own, in the runtime cluster.
    """
    parsed = parse((EXAMPLES / "extensions" / f"{name}.yaml").read_text())
    assert isinstance(parsed, dict)
    extension: JsonObject = parsed
    deployment = map_at(extension, "spec", "deployment", "extension")
    del extension["spec"]["deployment"]["admission"]
    deployment["helm"] = {"ociRepository": {"ref": str(chart)}}
    own = map_at(deployment, "runtimeClusterValues")
    deployment["runtimeClusterValues"] = {**own, **values}
    return extension
