"""Helm, and the charts that it renders and installs.

```python
[deployment] = [obj for obj in render(chart, {"replicaCount": 2}) if obj["kind"] == ...]
```
"""

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.kube.yaml import parse_documents
from pergola.sandbox import binaries
from pergola.sandbox.module import kubernetes_version
from pergola.sandbox.on_demand import HELM

_SECONDS: Final = 400.0  # more than Helm itself waits for pods
_RELEASE: Final = "gardener-operator"
_NAMESPACE: Final = "garden"


class HelmError(Exception):
    """Helm failed; the text is its output."""


def render(
    chart: Path, values: JsonObject | None = None, *, namespace: str = _NAMESPACE
) -> list[JsonObject]:
    """Return the objects of a chart, in the order in which Helm installs them.

    Raises:
        HelmError: the values are refused, or a template is wrong.
        SandboxError: Helm cannot be built.
    """
    text = template(chart, values, namespace=namespace)
    return [value for part in parse_documents(text) if isinstance(value := part.value, dict)]


def template(chart: Path, values: JsonObject | None = None, *, namespace: str = _NAMESPACE) -> str:
    """Return the objects of a chart as Helm prints them.

    Raises:
        HelmError: the values are refused, or a template is wrong.
        SandboxError: Helm cannot be built.
    """
    where = ("--namespace", namespace, "--kube-version", kubernetes_version())
    return helm("template", _RELEASE, str(chart), *where, values=values)


def helm(*arguments: str, values: JsonObject | None = None) -> str:
    """Run Helm, and return its output.

    Args:
        values: for the chart, in place of its own.

    Raises:
        HelmError: it failed.
        SandboxError: Helm cannot be built.
    """
    return _run(arguments, values).stdout


def push(package: Path, repository: str, *options: str) -> str:
    """Push the package of a chart, and return the report of Helm; raises as `helm` does."""
    return _run(("push", str(package), repository, *options), None).stderr


def _run(arguments: Sequence[str], values: JsonObject | None) -> subprocess.CompletedProcess[str]:
    given = ["--values", "-"] if values is not None else []
    # Helm's cache about clusters must neither outlive them nor be in the user's home.
    with TemporaryDirectory(prefix="pergola-helm-") as folder:
        answer = subprocess.run(
            [_program(), *arguments, *given],
            input=orjson.dumps(values).decode() if values is not None else "",
            env={**os.environ, "KUBECACHEDIR": folder, "HELM_CACHE_HOME": folder},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    if answer.returncode:
        raise HelmError(f"{answer.stdout}{answer.stderr}".strip())
    return answer


@cache
def _program() -> Path:
    return binaries.find((HELM,))[HELM]
