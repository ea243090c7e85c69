"""Helm charts: `pergola.charts`."""

import base64
import gzip
import io
import tarfile
from pathlib import Path

from pergola.charts import (
    Access,
    Blobs,
    Chart,
    ChartReference,
    Credentials,
    Helm,
    Limits,
    Puller,
    Release,
    credentials_in,
    embedded_chart,
    merge_values,
    read_chart,
)


def archive() -> bytes:
    """Return a chart in an archive."""
    content = io.BytesIO()
    files = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0", "templates/x.yaml": ""}
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"web/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(content.getvalue())


def reading() -> None:
    """Check a chart before anything renders it."""
    content = archive()
    chart = read_chart(content, "web.tgz", Limits(files=100))
    assert isinstance(chart, Chart)
    assert (chart.name, chart.version) == ("web", "1.0.0")
    text = base64.b64encode(content).decode()
    assert embedded_chart(text, "field rawChart").digest == chart.digest
    assert merge_values({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}) == {"a": {"b": 3, "c": 2}}


async def pulling(folder: Path) -> None:
    """Prepare pulling a chart from a registry with a pull secret, and rendering it."""
    reference = ChartReference.parse("registry.example/charts/web:1.0.0")
    assert reference.registry == "registry.example"
    config = '{"auths": {"registry.example": {"username": "ann", "password": "x"}}}'
    data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
    secret = {"type": "kubernetes.io/dockerconfigjson", "metadata": {"name": "pull"}, "data": data}
    credentials = credentials_in(secret, reference)
    assert credentials == Credentials("ann", "x")
    access, puller = Access(credentials=credentials), Puller(Blobs(folder))
    release = Release(name="web", namespace="shop", values={"a": 1}, kube_version="1.36.0")

    async def render() -> list[dict[str, object]]:
        return await Helm.of({}).render(await puller.pull(reference, access), release)

    assert callable(render)
