"""The packed charts of a release, and the definitions of each product."""

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.bastion_v1alpha1 import bastion_crd
from pergola.api.extensions_v1alpha1 import cluster_crd, network_crd
from pergola.api.infrastructure_v1alpha1 import infrastructure_crd
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import extension_crd, garden_crd
from pergola.api.resources_v1alpha1 import managed_resource_crd
from pergola.kube.yaml import dump, parse
from tools.release.commands import ROOT

_IN_IMAGE: Final = r"(?m)^(image:\n(?: +.*\n)*?  {field}:).*$"


def pack_all(folder: Path, epoch: int, image: str, digest: str) -> Iterator[Path]:
    """Pack all Helm charts, and yield the archives.

    Args:
        epoch: the time of all files, in seconds since 1970.
        image: the repository of the image in the values; empty to leave it to the user.
        digest: of the image, `sha256:…`; empty to leave it to the user.
    """
    for path in sorted(ROOT.glob("charts/*/Chart.yaml")):
        yield _packed(path.parent, folder, epoch, image, digest)


def _packed(chart: Path, folder: Path, epoch: int, image: str, digest: str) -> Path:
    """Pack a chart as Helm does, save that the order and all metadata of its files are fixed."""
    described = parse((chart / "Chart.yaml").read_text())
    if not isinstance(described, dict):
        raise SystemExit(f"error: {chart / 'Chart.yaml'} is not an object")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(chart.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                member = tarfile.TarInfo(f"{described['name']}/{path.relative_to(chart)}")
                content = path.read_bytes()
                if path == chart / "values.yaml":
                    content = _with_image(content.decode(), image, digest).encode()
                member.size, member.mtime, member.mode = len(content), epoch, 0o644
                tar.addfile(member, io.BytesIO(content))
    target = folder / f"{described['name']}-{described['version']}.tgz"
    target.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return target


def _with_image(values: str, image: str, digest: str) -> str:
    """Fill in an image, and leave the rest of the values as it is."""
    for field, text in (("repository", image), ("digest", digest)):
        if text:
            values = re.sub(_IN_IMAGE.format(field=field), rf"\g<1> {text}", values, count=1)
    return values


def definitions(folder: Path) -> Iterator[Path]:
    """Write the CustomResourceDefinitions of each product, and yield the files.

    Args:
        folder: where to.
    """
    for product, objects in products().items():
        path = folder / f"{product}-crds.yaml"
        path.write_text("---\n".join(dump(each) for each in objects))
        yield path


def products() -> dict[str, list[JsonObject]]:
    """Return the CustomResourceDefinitions of Pergola by product."""
    return {
        "resource-manager": [managed_resource_crd()],
        "operator": [garden_crd(), extension_crd()],
        "extensions": [cluster_crd(), network_crd(), infrastructure_crd(), bastion_crd()],
    }
