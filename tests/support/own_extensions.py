"""Our own extensions, as the examples install them."""

from pergola.api.objects import JsonObject, map_at
from pergola.charts import ChartReference
from pergola.kube.yaml import parse
from pergola.shipped import EXAMPLES


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
