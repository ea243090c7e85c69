"""Charts that tests write: a folder with a few templates, or an archive with any files."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.yaml import dump

GREETING: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
data:
  values: {{ .Values | toJson | quote }}
  version: {{ .Capabilities.KubeVersion.Version | quote }}
"""
"""A template of a ConfigMap with all values of the release."""


def write_chart(
    folder: Path,
    name: str = "greeter",
    templates: Mapping[str, str] = {"greeting.yaml": GREETING},
    *,
    version: str = "1.0.0",
    values: JsonObject | None = None,
) -> Path:
    """Write a chart, and return its folder.

    Args:
        folder: Where the folder of the chart is created.
        templates: The text of each file.
    """
    chart = folder / name
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text(metadata(name, version))
    (chart / "values.yaml").write_text(dump(values or {}))
    for file, text in templates.items():
        (chart / "templates" / file).write_text(text)
    return chart


def metadata(name: str = "greeter", version: str = "1.0.0") -> str:
    """Return a `Chart.yaml`."""
    return dump({"apiVersion": "v2", "name": name, "version": version})


def archive(files: Mapping[str, str | bytes | tarfile.TarInfo]) -> bytes:
    """Return a gzipped tar file.

    Args:
        files: The content of each path, or a member without content, such as a link.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0)


def chart_archive(
    templates: Mapping[str, str] | None = None, name: str = "greeter", *, schema: str = ""
) -> bytes:
    """Return a chart as an archive.

    Args:
        schema: of its values; none if empty.
    """
    texts = {"greeting.yaml": GREETING} if templates is None else templates
    files = {f"{name}/templates/{file}": text for file, text in texts.items()}
    if schema:
        files[f"{name}/values.schema.json"] = schema
    return archive({f"{name}/Chart.yaml": metadata(name), **files})
