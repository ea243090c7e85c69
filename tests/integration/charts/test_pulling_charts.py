"""Charts that the real Helm pushed to a real OCI registry are pulled."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from pergola.charts import (
    Access,
    Blobs,
    ChartReference,
    Credentials,
    Limits,
    NotAChart,
    NotInRegistry,
    Puller,
    RegistryRefused,
    RegistryUnreachable,
    TooLarge,
)
from pergola.charts.blobs import digest_of
from pergola.sandbox.registry import PASSWORD, USER, Registry, registry
from tests.support.chart_files import write_chart
from tests.support.documented.symptoms import symptom

MANIFESTS = "GET /v2/charts/greeter/manifests/"
ALLOWED = Access(credentials=Credentials(USER, PASSWORD))


@pytest.fixture
async def open_registry(tmp_path: Path) -> AsyncIterator[Registry]:
    async with registry(tmp_path) as found:
        yield found


def puller(tmp_path: Path, limits: Limits | None = None) -> Puller:
    return Puller(Blobs(tmp_path / "cache"), limits or Limits())


async def test_a_chart_is_pulled_by_tag_and_by_digest(
    open_registry: Registry, tmp_path: Path
) -> None:
    reference = await open_registry.push(write_chart(tmp_path))
    by_tag = ChartReference(reference.registry, reference.repository, reference.tag)
    by_digest = ChartReference(reference.registry, reference.repository, digest=reference.digest)

    for each in (by_tag, by_digest, reference):
        chart = await puller(tmp_path / each.version.replace(":", "-")).pull(each)
        assert (chart.name, chart.version) == ("greeter", "1.0.0")
        assert chart.source == str(each)


async def test_a_digest_is_requested_once_and_a_tag_each_time_but_without_content(
    open_registry: Registry, tmp_path: Path
) -> None:
    reference = await open_registry.push(write_chart(tmp_path))
    by_tag = ChartReference(reference.registry, reference.repository, reference.tag)
    await puller(tmp_path).pull(reference)
    await open_registry.logged("GET /v2/charts/greeter/blobs/", 1)
    manifests, blobs = open_registry.requests(MANIFESTS), _blobs(open_registry)

    await puller(tmp_path).pull(reference)
    await puller(tmp_path).pull(by_tag)

    await open_registry.logged(MANIFESTS, manifests + 1)
    assert open_registry.requests(MANIFESTS) == manifests + 1
    assert _blobs(open_registry) == blobs


async def test_a_moved_tag_yields_the_new_chart(open_registry: Registry, tmp_path: Path) -> None:
    old = await open_registry.push(write_chart(tmp_path))
    by_tag = ChartReference(old.registry, old.repository, old.tag)
    first = await puller(tmp_path).pull(by_tag)

    new = await open_registry.push(write_chart(tmp_path, values={"changed": True}))

    assert new.digest != old.digest
    assert (await puller(tmp_path).pull(by_tag)).digest != first.digest
    assert (await puller(tmp_path).pull(old)).digest == first.digest


async def test_missing_charts_are_named(open_registry: Registry, tmp_path: Path) -> None:
    reference = await open_registry.push(write_chart(tmp_path))
    for absent in (
        ChartReference(reference.registry, reference.repository, "9.9.9"),
        ChartReference(reference.registry, "charts/other", "1.0.0"),
        ChartReference(reference.registry, reference.repository, digest="sha256:" + "0" * 64),
    ):
        with pytest.raises(NotInRegistry, match=r"does not have the manifest \(404\)") as caught:
            await puller(tmp_path).pull(absent)
        assert str(absent) in str(caught.value)


async def test_credentials_are_required_and_checked(tmp_path: Path) -> None:
    async with registry(tmp_path, requires_password=True) as found:
        reference = await found.push(write_chart(tmp_path))

        with pytest.raises(RegistryRefused, match="name a Secret with them in pullSecretRef"):
            await puller(tmp_path).pull(reference)
        wrong = Access(credentials=Credentials(USER, "wrong"))
        with pytest.raises(RegistryRefused, match="refuses the credentials") as caught:
            await puller(tmp_path).pull(reference, wrong)
        assert "wrong" not in str(caught.value)
        assert (await puller(tmp_path).pull(reference, ALLOWED)).name == "greeter"


async def test_a_ca_bundle_makes_the_client_trust_a_registry(tmp_path: Path) -> None:
    async with registry(tmp_path, tls=True) as found:
        reference = await found.push(write_chart(tmp_path))
        access = Access(ca_bundle=found.ca_bundle)

        assert (await puller(tmp_path).pull(reference, access)).name == "greeter"

        (tmp_path / "other").mkdir()
        async with registry(tmp_path / "other", tls=True) as other:
            stranger = Access(ca_bundle=other.ca_bundle)
            with pytest.raises(RegistryUnreachable, match=symptom("A registry is not trusted")):
                await puller(tmp_path / "b").pull(reference, stranger)
        with pytest.raises(RegistryRefused, match="has no valid PEM certificates"):
            await puller(tmp_path / "b").pull(reference, Access(ca_bundle="not PEM"))


async def test_an_unreachable_registry_is_named(tmp_path: Path) -> None:
    async with registry(tmp_path) as found:
        reference = await found.push(write_chart(tmp_path))

    with pytest.raises(RegistryUnreachable, match=f"registry {reference.registry} does not answer"):
        await puller(tmp_path).pull(reference)


async def test_an_oversized_chart_is_not_downloaded(
    open_registry: Registry, tmp_path: Path
) -> None:
    reference = await open_registry.push(write_chart(tmp_path))

    with pytest.raises(TooLarge, match="the archive has more than"):
        await puller(tmp_path, Limits(archive_bytes=10)).pull(reference)
    assert _blobs(open_registry) == 0
    with pytest.raises(TooLarge, match="the manifest has more than"):
        await puller(tmp_path / "other", Limits(manifest_bytes=10)).pull(reference)


async def test_an_artifact_other_than_a_chart_is_refused(
    open_registry: Registry, tmp_path: Path
) -> None:
    manifest = {"schemaVersion": 2, "layers": [{"mediaType": "text/plain", "size": 1}]}
    reference = await open_registry.push(write_chart(tmp_path))
    blobs = Blobs(tmp_path / "cache")
    blobs.write(orjson.dumps(manifest))
    digest = digest_of(orjson.dumps(manifest))
    other = ChartReference(reference.registry, reference.repository, digest=digest)

    with pytest.raises(NotAChart, match="its manifest has no layer of type"):
        await Puller(blobs).pull(other)


def _blobs(found: Registry) -> int:
    return found.requests("GET /v2/charts/greeter/blobs/")
