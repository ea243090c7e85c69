"""The contract suite, run against compliant and faulty providers: spec 50 §10."""

import asyncio
import os
import sys
import xml.etree.ElementTree as ET
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from pergola.admission.certificates import Certificates
from pergola.admission.configurations import by_url, configurations
from pergola.admission.protocol import Reviewer
from pergola.admission.server import serve
from pergola.api.cluster_api import (
    CLUSTER,
    INFRASTRUCTURE_GROUP,
    MANAGED_BY,
    contract_label,
    plural_of,
    provider_finalizer,
)
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
    map_at,
    owner_references_of,
    resource_version_of,
)
from pergola.externally_managed.contract import done
from pergola.externally_managed.kinds import Managed, managed_kind
from pergola.externally_managed.manager import Settings
from pergola.externally_managed.mapping import cluster_to_infra_cluster
from pergola.externally_managed.predicate import (
    is_externally_managed,
    resource_is_not_externally_managed,
)
from pergola.externally_managed.ready_by_hand import ready_by_hand
from pergola.externally_managed.webhook import AnnotationGuard, registration
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.patches import merge_patch
from pergola.kube.yaml import dump
from pergola.pki import Authority
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition
from pergola.testing.waiting import PATIENCE, running
from tests.support.cluster_api import NEW, OLD, infra_cluster_crd, install
from tools.soak import in_soak

PATH = "/webhooks/externally-managed"
RESYNC = 0.2
# Seconds to settle: without an active subject, and with one on a busy machine.
QUICK, PATIENT = 0.2, 5.0
# A kind of contract v1beta1 that core reads as v1beta2, as it does the kinds of some providers.
LABELLED = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta2", "LabelledCluster")
MACHINE = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta2", "LabelledMachine")


def labelled_crd() -> JsonObject:
    """Return a kind that is served in two versions, both in the form of the older contract."""
    crd = infra_cluster_crd(LABELLED)
    crd["metadata"]["labels"] = {contract_label("v1beta1"): "v1beta1_v1beta2"}
    (old,) = infra_cluster_crd(OLD)["spec"]["versions"]
    crd["spec"]["versions"] = [
        {**old, "name": "v1beta2"},
        {**old, "name": "v1beta1", "storage": False},
    ]
    return crd


class Provider:
    """A small provider: it adds a finalizer and a status to objects that it is responsible for.

    Args:
        faults: where it does not care for the annotation: `finalizer`, `status`, `delete`,
            `mapper`.
    """

    def __init__(
        self, client: Client, managed: Managed, namespace: str | None, *faults: str
    ) -> None:
        self._client = client
        self._managed = managed
        self._faults = faults
        metrics = Metrics()
        self._objects = Cache(client, managed.gvk, _whole, namespace=namespace)
        self._clusters = Cache(client, CLUSTER, _whole, namespace=namespace)
        self._controller = Workers("provider", self.reconcile, workers=2, metrics=metrics)
        self._mapper = Workers("mapper", self.map, workers=1, metrics=metrics)
        self._objects.subscribe(self._on_object)
        self._clusters.subscribe(lambda change: self._mapper.queue.add(change.key))

    def unit(self) -> Unit:
        return Unit(
            caches=[self._objects, self._clusters], controllers=[self._controller, self._mapper]
        )

    def _on_object(self, change: Change[JsonObject]) -> None:
        if resource_is_not_externally_managed(change) or self._faults:
            self._controller.queue.add(change.key)

    async def map(self, key: Key) -> Outcome:
        cluster = self._clusters.get(key)
        if cluster is not None:
            kind = self._managed.gvk.group_kind
            for found in await cluster_to_infra_cluster(cluster, kind, self._read):
                self._controller.queue.add(found)
            obj = self._objects.get(key)
            unpaused = map_at(cluster, "spec").get("paused") is False
            if "mapper" in self._faults and obj is not None and unpaused:
                await self._write_status(obj)
        return DONE

    async def _read(self, key: Key) -> JsonObject | None:
        return self._objects.get(key)

    async def reconcile(self, key: Key) -> Outcome:
        obj = self._objects.get(key)
        if obj is None:
            return DONE
        if is_externally_managed(obj):
            await self._misbehave(obj)
            return DONE
        finalizer = provider_finalizer(self._managed.gvk.group_kind)
        if deletion_timestamp_of(obj) is not None:
            await self._set_finalizers(obj, [f for f in finalizers_of(obj) if f != finalizer])
            return DONE
        if not owner_references_of(obj):
            return DONE
        obj = await self._set_finalizers(obj, [*{*finalizers_of(obj), finalizer}])
        await self._write_status(obj)
        return Again(RESYNC)

    async def _misbehave(self, obj: JsonObject) -> None:
        if "finalizer" in self._faults and deletion_timestamp_of(obj) is None:
            finalizer = provider_finalizer(self._managed.gvk.group_kind)
            await self._set_finalizers(obj, [*{*finalizers_of(obj), finalizer}])
        if "status" in self._faults:
            await self._write_status(obj)
        if "delete" in self._faults and deletion_timestamp_of(obj) is not None:
            await self._write_status(obj)

    async def _set_finalizers(self, obj: JsonObject, finalizers: list[str]) -> JsonObject:
        if set(finalizers) == set(finalizers_of(obj)):
            return obj
        metadata = {"resourceVersion": resource_version_of(obj), "finalizers": finalizers}
        written = await self._client.patch(self._managed.gvk, Key.of(obj), {"metadata": metadata})
        self._objects.observe(written)
        return written

    async def _write_status(self, obj: JsonObject) -> None:
        desired = {**map_at(obj, "status"), **done(self._managed.contract.version), "seen": True}
        patch = merge_patch(map_at(obj, "status"), desired)
        if patch:
            written = await self._client.patch(
                self._managed.gvk, Key.of(obj), {"status": patch}, subresource="status"
            )
            self._objects.observe(written)


def machine_controller(client: Client, namespace: str) -> Unit:
    """Return a machine controller that only needs a Cluster with an endpoint."""
    machines = Cache(client, MACHINE, _whole, namespace=namespace)

    async def reconcile(key: Key) -> Outcome:
        if machines.get(key) is not None:
            await client.patch(MACHINE, key, {"spec": {"providerID": "little://1"}})
        return DONE

    controller = Workers("machines", reconcile, workers=1, metrics=Metrics())
    machines.subscribe(lambda change: controller.queue.add(change.key))
    return Unit(caches=[machines], controllers=[controller])


@asynccontextmanager
async def guarded(
    client: Client, managed: Managed, versions: list[str], namespace: str | None, directory: Path
) -> AsyncGenerator[None]:
    """Serve the webhook for one namespace or for all."""
    now, day = datetime.now(UTC), timedelta(days=1)
    authority = Authority.create("provider", now, day)
    pair = authority.issue_server("provider", ["127.0.0.1"], now, day)
    (directory / "tls.crt").write_bytes(pair.public)
    (directory / "tls.key").write_bytes(pair.private)
    metrics = Metrics()
    reviewer = Reviewer(PATH, AnnotationGuard(), metrics.webhook(PATH))
    certificates = Certificates(directory, metrics.certificates())
    kind = managed.gvk.group_kind
    entry = registration(kind, plural_of(kind.kind), versions, PATH)
    if namespace:
        own = {"kubernetes.io/metadata.name": namespace}
        entry = replace(entry, namespace_selector={"matchLabels": own})
    async with serve("127.0.0.1", 0, {PATH: reviewer}, certificates) as port:
        endpoint = by_url(f"https://127.0.0.1:{port}")
        name = namespace or "provider"
        (configuration,) = configurations(name, {}, [entry], endpoint, authority.pair.public)
        await client.create(configuration)
        yield
        await client.delete(GroupVersionKind.of(configuration), Key("", name))


class Result(NamedTuple):
    """The result of a run of the suite."""

    code: int
    output: str
    failed: dict[str, str]
    skipped: set[str]


async def run_suite(
    kubeconfig: Path,
    managed: Managed,
    namespace: str | None,
    directory: Path,
    *options: str,
    settle: float = QUICK,
    patience: float = PATIENCE,
) -> Result:
    """Run the suite as a provider's repository does, with half of the options in its ini file."""
    infra: JsonObject = {
        "apiVersion": managed.gvk.api_version,
        "kind": managed.gvk.kind,
        "metadata": {"name": "demo"},
        "spec": {"region": "somewhere"},
    }
    identity: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "identity"}}
    (directory / "managed.yaml").write_text(f"{dump(identity)}---\n{dump(infra)}")
    infra["metadata"]["annotations"] = {MANAGED_BY: "terraform"}
    (directory / "external.yaml").write_text(dump(infra))
    ini = {
        "asyncio_default_fixture_loop_scope": "function",
        "capi_managed_manifest": "managed.yaml",
        "capi_namespace": namespace or "",
        "capi_settle_seconds": settle,
        "capi_resync_seconds": RESYNC,
        "capi_patience_seconds": patience,
    }
    lines = [f"{name} = {value}" for name, value in ini.items()]
    (directory / "pytest.ini").write_text("\n".join(["[pytest]", *lines]))
    suite = "pergola.testing.capi_contract"
    line = ["-m", "pytest", "-p", f"{suite}.plugin", "--pyargs", suite, "-p", "no:cacheprovider"]
    given = [f"--capi-kubeconfig={kubeconfig}", "--capi-external-manifest=external.yaml"]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(*line, *given, "--junitxml=junit.xml", *options),
        cwd=directory,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    failed, skipped = {}, set()
    for case in ET.parse(directory / "junit.xml").iter("testcase"):  # noqa: S314 - ours
        name = case.get("name", "").removeprefix("test_")
        for problem in [*case.iter("failure"), *case.iter("error")]:
            failed[name] = problem.get("message", "")
        if case.find("skipped") is not None:
            skipped.add(name)
    return Result(process.returncode or 0, output.decode(), failed, skipped)


@pytest.fixture
async def contract_client(infra_client: Client) -> Client:
    machine_crd = definition(MACHINE)
    await install(infra_client, labelled_crd(), machine_crd)
    return infra_client


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


# Compliant providers


@pytest.mark.parametrize("gvk", in_soak("commands", [LABELLED, NEW, OLD]), ids=str)
async def test_a_compliant_provider_passes(
    gvk: GroupVersionKind,
    contract_client: Client,
    namespace: str,
    kubeconfig: Path,
    tmp_path: Path,
    stack: AsyncExitStack,
) -> None:
    client = contract_client
    managed = await managed_kind(client, gvk.group_kind)
    versions = ["v1beta1", "v1beta2"] if gvk == LABELLED else [gvk.version]
    await stack.enter_async_context(guarded(client, managed, versions, namespace, tmp_path))
    await stack.enter_async_context(running(Provider(client, managed, namespace).unit()))
    workers = ["-n2"] if gvk == LABELLED else []
    result = await run_suite(kubeconfig, managed, namespace, tmp_path, *workers)
    assert result.failed == {}, result.output
    assert result.code == 0
    assert result.skipped == {
        "it_becomes_ready_by_hand",
        "machines_are_reconciled_all_the_same",
    }
    assert "passed   Nothing is written in three periods of resync\n" in result.output
    assert f"contract of externally managed infrastructure: {gvk.kind}." in result.output


async def test_the_optional_cases_run_on_request(
    contract_client: Client,
    namespace: str,
    kubeconfig: Path,
    tmp_path: Path,
    stack: AsyncExitStack,
) -> None:
    client = contract_client
    managed = await managed_kind(client, LABELLED.group_kind)
    settings = Settings(namespace=namespace)
    marking = ready_by_hand(client, managed, settings, metrics=Metrics())
    units = (
        Provider(client, managed, namespace).unit(),
        machine_controller(client, namespace),
        marking,
    )
    await stack.enter_async_context(running(*units))
    machine: JsonObject = {
        "apiVersion": MACHINE.api_version,
        "kind": MACHINE.kind,
        "metadata": {"name": "${CLUSTER_NAME}-0", "labels": {"cluster": "${CLUSTER_NAME}"}},
    }
    (tmp_path / "machine.yaml").write_text(dump(machine))
    result = await run_suite(
        kubeconfig,
        managed,
        namespace,
        tmp_path,
        *("--capi-ready-by-hand", "--capi-machine-manifest=machine.yaml", "-k", "optional"),
    )
    assert (result.failed, result.skipped, result.code) == ({}, set(), 0), result.output
    assert "2 passed" in result.output


# Faulty providers: the cases about a fault detect it

ALIVE = {
    "nothing_is_written_after_creation[empty]",
    "nothing_is_written_after_creation[x]",
    "nothing_is_written_after_creation[false]",
    "nothing_is_written_after_updates",
    "nothing_is_written_after_the_value_changes",
    "nothing_is_written_after_events_of_the_cluster",
    "paused_objects_get_no_condition",
    "nothing_is_written_by_resyncs",
    "a_deleted_object_goes_without_the_provider",
}
DELETED = "a_deleted_object_with_another_finalizer_stays_untouched"
UNGUARDED = {
    *(
        f"it_cannot_be_removed[{how}]"
        for how in ("merge patch", "JSON patch", "all annotations", "replace", "apply")
    ),
    "it_cannot_be_removed_in_any_version",
    "the_refusal_has_the_form_that_clients_know",
    "deletion_is_not_an_exception",
}


@pytest.mark.parametrize(
    ("fault", "caught"),
    [
        ("finalizer", ALIVE),
        ("status", ALIVE),
        ("delete", {DELETED}),
        ("mapper", {"nothing_is_written_after_events_of_the_cluster"}),
    ],
    ids=["finalizer", "status", "delete", "mapper"],
)
async def test_a_provider_that_ignores_the_annotation_somewhere_is_detected(
    fault: str,
    caught: set[str],
    contract_client: Client,
    namespace: str,
    kubeconfig: Path,
    tmp_path: Path,
    stack: AsyncExitStack,
) -> None:
    client = contract_client
    managed = await managed_kind(client, NEW.group_kind)
    await stack.enter_async_context(guarded(client, managed, ["v1beta2"], namespace, tmp_path))
    await stack.enter_async_context(running(Provider(client, managed, namespace, fault).unit()))
    # Passing cases would each wait for `PATIENT` seconds; the test above covers them.
    options = ("-k", " or ".join(caught))
    result = await run_suite(kubeconfig, managed, namespace, tmp_path, *options, settle=PATIENT)
    assert set(result.failed) == caught, result.output
    assert result.code == 1


@pytest.mark.soak("commands")
async def test_a_provider_without_a_webhook_is_detected(
    contract_client: Client,
    namespace: str,
    kubeconfig: Path,
    tmp_path: Path,
    stack: AsyncExitStack,
) -> None:
    client = contract_client
    managed = await managed_kind(client, NEW.group_kind)
    await stack.enter_async_context(running(Provider(client, managed, namespace).unit()))
    result = await run_suite(kubeconfig, managed, namespace, tmp_path)
    assert set(result.failed) == UNGUARDED, result.output
    assert "FAILED   It cannot be removed, whichever way (merge patch)" in result.output


@pytest.mark.soak("commands")
async def test_a_provider_that_does_not_run_is_detected(
    contract_client: Client, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    managed = await managed_kind(contract_client, NEW.group_kind)
    case = "an_object_without_the_annotation_is_reconciled"
    options = ("-k", case)
    result = await run_suite(kubeconfig, managed, namespace, tmp_path, *options, patience=1.0)
    assert set(result.failed) == {case}
    assert "does it run" in result.failed[case]


# Beside the real core manager


@pytest.mark.soak("commands")
@pytest.mark.usefixtures("core")
async def test_a_provider_is_not_blamed_for_writes_of_core(
    core_sandbox: Sandbox, tmp_path: Path, stack: AsyncExitStack
) -> None:
    # In all namespaces, because the suite creates its own
    kubeconfig, namespace = core_sandbox.kubeconfig, None
    client = await stack.enter_async_context(Client.connect(load(kubeconfig)))
    managed = await managed_kind(client, NEW.group_kind)
    await stack.enter_async_context(guarded(client, managed, ["v1beta2"], namespace, tmp_path))
    await stack.enter_async_context(running(Provider(client, managed, namespace).unit()))
    result = await run_suite(kubeconfig, managed, namespace, tmp_path)
    assert result.failed == {}, result.output


def _whole(obj: JsonObject) -> JsonObject:
    return obj
