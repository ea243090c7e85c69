"""Pulling charts from registries, with a cache by digest.

A reference with a digest that was pulled before costs no request; one with a tag costs the request
for its manifest, since tags may move.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import orjson

from pergola.charts.archive import Chart, read_chart, too_large
from pergola.charts.blobs import Blobs, digest_of
from pergola.charts.errors import NotAChart, RegistryUnreachable, WrongDigest
from pergola.charts.limits import DEFAULT_LIMITS, Limits
from pergola.charts.reference import ChartReference, is_digest
from pergola.charts.registry import ANONYMOUS, Access, Repository, open_session

CHART_LAYER: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


class Puller:
    """Pulls charts, and caches them on disk.

    Args:
        blobs: The cached content.
    """

    def __init__(self, blobs: Blobs | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self._blobs = blobs or Blobs()
        self._limits = limits

    async def pull(self, reference: ChartReference, access: Access = ANONYMOUS) -> Chart:
        """Return a chart.

        Raises:
            NotInRegistry: The chart does not exist in the registry.
            RegistryRefused: The registry refused the client.
            RegistryUnreachable: The registry does not answer.
            WrongDigest: The registry answered with different content.
            NotAChart: It is not a Helm chart.
            TooLarge: It exceeds the limits.
        """
        source, limits = str(reference), self._limits
        try:
            async with (
                asyncio.timeout(limits.pull_seconds) as limit,
                open_session(reference, access) as session,
            ):
                content = await self._content(Repository(session, reference, access), reference)
        except TimeoutError:
            if not limit.expired():
                raise
            raise RegistryUnreachable(
                f"chart {source}: the registry did not deliver it within "
                f"{limits.pull_seconds:g} s: check the registry and the network"
            ) from None
        return await asyncio.to_thread(read_chart, content, source, limits)

    async def _content(self, repository: Repository, reference: ChartReference) -> bytes:
        async def manifest() -> bytes:
            return await repository.manifest(self._limits.manifest_bytes)

        found = await self._blob(reference.digest, manifest, reference)
        layer, size = _chart_layer(found, str(reference))
        limit = self._limits.archive_bytes
        if size > limit:
            raise too_large(str(reference), "the archive", limit)

        async def archive() -> bytes:
            return await repository.blob(layer, limit)

        return await self._blob(layer, archive, reference)

    async def _blob(
        self, digest: str, fetch: Callable[[], Awaitable[bytes]], reference: ChartReference
    ) -> bytes:
        """Return content by its digest from disk or, if it is not there, from the registry."""
        if digest:
            kept = await asyncio.to_thread(self._blobs.read, digest)
            if kept is not None:
                return kept
        content = await fetch()
        if digest and digest_of(content) != digest:
            raise WrongDigest(
                f"chart {reference}: the registry delivered {digest_of(content)} instead of "
                f"{digest}: correct the digest, or push the chart again"
            )
        if digest:
            await asyncio.to_thread(self._blobs.write, content)
        return content


def _chart_layer(manifest: bytes, source: str) -> tuple[str, int]:
    """Return the digest and size of the chart's layer."""
    try:
        value = orjson.loads(manifest)
    except ValueError:
        raise _not_a_chart(source, "its manifest is not valid JSON") from None
    layers = value.get("layers") if isinstance(value, dict) else None
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, dict) and layer.get("mediaType") == CHART_LAYER:
            digest, size = layer.get("digest"), layer.get("size")
            if isinstance(digest, str) and isinstance(size, int) and is_digest(digest):
                return digest, size
            raise _not_a_chart(source, "its layer has no sha256 digest or no size")
    raise _not_a_chart(source, f"its manifest has no layer of type {CHART_LAYER}")


def _not_a_chart(source: str, problem: str) -> NotAChart:
    return NotAChart(f"{source} is not a Helm chart: {problem}; push it with helm push")
