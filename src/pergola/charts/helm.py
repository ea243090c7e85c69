"""Rendering of charts by the real Helm, within limits and without access to any cluster."""

import asyncio
import hashlib
import os
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.charts.archive import Chart
from pergola.charts.errors import HelmFailed, TooLarge
from pergola.charts.limits import DEFAULT_LIMITS, MIB, Limits
from pergola.kube.child_process import end
from pergola.kube.yaml import parse_documents

PROGRAM: Final = "PERGOLA_HELM"
"""The environment variable with the path of Helm, which is searched for in `PATH` by default."""

_AT_ONCE: Final = 2
_KEPT_BYTES: Final = 32 * MIB
_ERROR_BYTES: Final = 2000
_CHUNK: Final = 64 * 1024
_HIDDEN: Final = "<hidden>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release to render a chart for.

    Attributes:
        name: The name of the release.
        namespace: The namespace of the release; objects may set others.
        values: Take precedence over the chart's values.
        kube_version: The version of the cluster, such as `v1.33.2`.
        api_versions: The API versions of the cluster, in addition to those of Kubernetes itself.
        hidden: Texts in the values that must not appear in errors.
    """

    name: str
    namespace: str
    values: JsonObject = field(repr=False)
    kube_version: str
    api_versions: tuple[str, ...] = ()
    hidden: frozenset[str] = field(default=frozenset(), repr=False)


class Helm:
    """Runs `helm template`; a chart and release are rendered only once.

    Hooks are omitted, as are definitions in a chart's folder `crds`: objects that Helm would not
    update must be in its templates.

    Args:
        program: The path of Helm, or its name in `PATH`.
    """

    def __init__(self, program: str = "helm", limits: Limits = DEFAULT_LIMITS) -> None:
        self._program = program
        self._limits = limits
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._rendered: OrderedDict[str, bytes] = OrderedDict()

    @classmethod
    def of(cls, environment: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> "Helm":
        """Return the Helm that an environment names."""
        return cls(environment.get(PROGRAM) or "helm", limits)

    async def render(self, chart: Chart, release: Release) -> list[JsonObject]:
        """Return the objects of a chart.

        Raises:
            HelmFailed: Helm is missing, took too long, or refused the chart or its values.
            TooLarge: The objects exceed the limit.
        """
        key = _identity(chart, release)
        text = self._rendered.get(key)
        if text is None:
            async with self._slots:
                text = await self._run(chart, release)
            self._keep(key, text)
        self._rendered.move_to_end(key)
        return await asyncio.to_thread(_objects, text, chart)

    def _keep(self, key: str, text: bytes) -> None:
        self._rendered[key] = text
        while len(self._rendered) > 1 and sum(map(len, self._rendered.values())) > _KEPT_BYTES:
            self._rendered.popitem(last=False)

    async def _run(self, chart: Chart, release: Release) -> bytes:
        with tempfile.TemporaryDirectory(prefix="pergola-helm-") as name:
            folder = Path(name)
            await asyncio.to_thread(_write, folder, chart, release)
            process = await self._start(folder, release)
            try:
                async with asyncio.timeout(self._limits.render_seconds) as limit:
                    text = await self._read(process, chart)
                    code = await process.wait()
            except TimeoutError:
                if not limit.expired():
                    raise
                raise HelmFailed(
                    f"Helm did not render chart {chart.source} within "
                    f"{self._limits.render_seconds:g} s: simplify its templates"
                ) from None
            finally:
                await end(process)
            if code:
                reason = await asyncio.to_thread(_reason, folder / "errors", release)
                raise HelmFailed(f"Helm cannot render chart {chart.source}: {reason}")
        return text

    async def _start(self, folder: Path, release: Release) -> Process:
        arguments = ["template", "--no-hooks", "--namespace", release.namespace]
        arguments += ["--kube-version", release.kube_version, "--values", str(folder / "values")]
        for version in release.api_versions:
            arguments += ["--api-versions", version]
        arguments += ["--", release.name, str(folder / "chart.tgz")]
        errors = (folder / "errors").open("wb")
        try:
            return await asyncio.create_subprocess_exec(
                self._program,
                *arguments,
                stdin=DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=_environment(folder),
            )
        except OSError as error:
            raise HelmFailed(
                f"cannot start Helm ({self._program}): {error.strerror}; install it, or name its "
                f"path in {PROGRAM}"
            ) from None
        finally:
            errors.close()

    async def _read(self, process: Process, chart: Chart) -> bytes:
        if process.stdout is None:
            raise AssertionError("stdout is a pipe")
        text = bytearray()
        while chunk := await process.stdout.read(_CHUNK):
            text += chunk
            if len(text) > self._limits.rendered_bytes:
                raise TooLarge(
                    f"chart {chart.source} is too large: its objects have more than "
                    f"{self._limits.rendered_bytes // MIB} MiB"
                )
        return bytes(text)


def _identity(chart: Chart, release: Release) -> str:
    parts = (release.name, release.namespace, release.kube_version, *release.api_versions)
    values = orjson.dumps(release.values, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(orjson.dumps([chart.digest, *parts]) + values).hexdigest()


def _write(folder: Path, chart: Chart, release: Release) -> None:
    (folder / "chart.tgz").write_bytes(chart.content)
    (folder / "values").write_bytes(orjson.dumps(release.values))


def _environment(folder: Path) -> dict[str, str]:
    """Return variables that keep Helm away from clusters, plugins and the user's files."""
    homes = ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
    return {**dict.fromkeys(homes, str(folder)), "PATH": os.environ.get("PATH", "")}


def _reason(errors: Path, release: Release) -> str:
    text = errors.read_bytes().decode(errors="replace")
    text = text[text.find("Error: ") + len("Error: ") :] if "Error: " in text else text
    for hidden in sorted(release.hidden, key=len, reverse=True):
        text = text.replace(hidden, _HIDDEN) if hidden else text
    return " ".join(text.split())[:_ERROR_BYTES] or "it gave no reason"


def _objects(text: bytes, chart: Chart) -> list[JsonObject]:
    objects: list[JsonObject] = []
    for document in parse_documents(text):
        if document.error is not None:
            raise HelmFailed(
                f"a template of chart {chart.source} is not valid YAML: {document.error}"
            )
        value = document.value
        if value is None:
            continue
        if not isinstance(value, dict):
            raise HelmFailed(f"a template of chart {chart.source} is not an object: write a map")
        objects.append(value)
    return objects
