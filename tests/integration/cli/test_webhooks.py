"""`pergola webhooks`: printed, applied and checked, with a cluster and a server."""

import asyncio
import importlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from pergola.admission.configurations import MUTATING, VALIDATING, configuration_keys
from pergola.api.kinds import NAMESPACE
from pergola.api.objects import JsonObject, Key
from pergola.api.resource_manager_config import configuration_from
from pergola.cli import main
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.webhooks.app import app, apply, check, render
from pergola.cli.webhooks.registration import WebhooksError
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import parse_documents
from pergola.kube.yaml_writer import dump
from pergola.pki import Authority
from pergola.resource_manager.assembly import Clusters
from pergola.resource_manager.serving import WebhookServing
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE

DAY = timedelta(days=1)
ON = {"enabled": True}
# No other test creates such objects in the shared cluster, so nothing waits for this webhook.
HINTS: JsonObject = {"endpointSliceHints": ON}
BOTH: JsonObject = HINTS | {"vpaInPlaceUpdates": ON}
HINTS_NAME = "endpoint-slice-hints.resources.gardener.cloud"
AUTOSCALERS_NAME = "vpa-in-place-updates.resources.gardener.cloud"
FINE = "all webhooks are registered correctly, and none blocks what it must not"


@dataclass
class Site:
    """A namespace, certificates, and a prefix that only this test uses."""

    client: Client
    cluster: ClusterOptions
    namespace: str
    folder: Path
    authority: Authority = field(
        default_factory=lambda: Authority.create("ca", datetime.now(UTC) - 10 * DAY, 30 * DAY)
    )
    prefix: str = field(default_factory=lambda: f"t{secrets.token_hex(3)}-")
    port: int = 1

    @property
    def key(self) -> Key:
        return Key("", f"{self.prefix}gardener-resource-manager")

    def config(self, webhooks: JsonObject) -> Path:
        path = self.folder / "config.json"
        path.write_bytes(orjson.dumps(self.settings(webhooks)))
        return path

    def settings(self, webhooks: JsonObject) -> JsonObject:
        own = {"namespace": self.namespace, "prefix": self.prefix, "enabled": False}
        tls = {"serverCertDir": str(self.folder)}
        return {
            "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
            "kind": "ResourceManagerConfiguration",
            "leaderElection": {"leaderElect": False},
            "server": {
                "webhooks": {
                    "bindAddress": "127.0.0.1",
                    "port": 0,
                    "tls": tls,
                    "selfSigned": own,
                }
            },
            "webhooks": webhooks,
        }

    def ca(self) -> Path:
        path = self.folder / "ca.crt"
        path.write_bytes(self.authority.pair.public)
        return path

    @asynccontextmanager
    async def served(
        self,
        webhooks: JsonObject,
        *,
        signed_by: Authority | None = None,
        since: timedelta = timedelta(),
        host: str = "127.0.0.1",
    ) -> AsyncGenerator[None]:
        """Serve some webhooks with a certificate that is valid for a day."""
        signer = signed_by or self.authority
        pair = signer.issue_server("server", (host,), datetime.now(UTC) - since, DAY)
        (self.folder / "tls.key").write_bytes(pair.private)
        (self.folder / "tls.crt").write_bytes(pair.public)
        config, _ = configuration_from(self.settings(webhooks))
        serving = WebhookServing(config, Clusters(self.client, self.client), Metrics())
        async with serving.served():
            self.port = serving.port
            yield

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def apply(self, webhooks: JsonObject, **arguments: Any) -> None:
        given: dict[str, Any] = {"url": self.url, "ca": self.ca(), **arguments}
        config = self.config(webhooks)
        await asyncio.to_thread(apply, config=config, cluster=self.cluster, **given)

    async def check(self, webhooks: JsonObject, **arguments: Any) -> int:
        """Return the exit code."""
        given = {"url": self.url} | arguments
        config = self.config(webhooks)

        def checked() -> int:
            try:
                check(config=config, cluster=self.cluster, **given)
            except SystemExit as end:
                return int(end.code or 0)
            return 0

        return await asyncio.to_thread(checked)


@pytest.fixture
async def site(
    cluster_client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
) -> AsyncIterator[Site]:
    labels = {"metadata": {"labels": {"gardener.cloud/role": "garden"}}}
    await cluster_client.patch(NAMESPACE, Key("", namespace), labels)
    found = Site(cluster_client, ClusterOptions(kubeconfig=kubeconfig), namespace, tmp_path)
    yield found
    for suffix in ("", "-shoot"):
        for gvk, key in configuration_keys(found.key.name + suffix):
            try:
                await cluster_client.delete(gvk, key)
            except NotFound:
                continue


Said = Callable[[], list[str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """Return a function that yields the lines printed since its last call, without logs."""
    with structlog.testing.capture_logs():
        yield lambda: capsys.readouterr().out.splitlines()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command wait for the server, which runs in the test's loop, on a busy machine."""
    checking = importlib.import_module("pergola.cli.webhooks.checking")
    monkeypatch.setattr(checking, "_SECONDS", PATIENCE)


# render


def rendered(said: Said) -> list[JsonObject]:
    found = []
    for document in parse_documents("\n".join(said())):
        assert isinstance(document.value, dict)
        found.append(document.value)
    return found


@pytest.mark.parametrize("url", [None, "https://manager.garden:443"])
def test_a_runtime_installation_is_rendered_for_kubectl(
    tmp_path: Path, said: Said, url: str | None
) -> None:
    site = Site(None, Path(), "home", tmp_path, prefix="virtual-garden-")  # type: ignore[arg-type] # no cluster is asked
    webhooks = BOTH | {"crdDeletionProtection": ON}
    render(config=site.config(webhooks), url=url, ca=site.ca())
    mutating, validating = rendered(said)
    name = "virtual-garden-gardener-resource-manager"
    assert (mutating["kind"], validating["kind"]) == (MUTATING.kind, VALIDATING.kind)
    assert mutating["metadata"]["name"] == validating["metadata"]["name"] == name
    client = mutating["webhooks"][0]["clientConfig"]
    path = "/webhooks/endpoint-slice-hints"
    where: JsonObject = {"name": name, "namespace": "home", "path": path, "port": 443}
    assert client.pop("caBundle")
    assert client == ({"url": f"{url}{path}"} if url else {"service": where})


def test_a_target_installation_has_no_validating_webhooks(tmp_path: Path, said: Said) -> None:
    site = Site(None, Path(), "home", tmp_path, prefix="")  # type: ignore[arg-type] # no cluster is asked
    config = site.config(BOTH | {"crdDeletionProtection": ON})
    render(config=config, installation="target", namespace="shoot--a", url="https://m.shoot--a")
    (mutating,) = rendered(said)
    assert mutating["metadata"]["name"] == "gardener-resource-manager-shoot"
    urls = [entry["clientConfig"]["url"] for entry in mutating["webhooks"]]
    assert urls == [
        "https://m.shoot--a/webhooks/endpoint-slice-hints",
        "https://m.shoot--a/webhooks/vpa-in-place-updates",
    ]


@pytest.mark.parametrize("options", [[], ["--hvpa"]])
def test_hvpas_are_rendered_only_on_request(tmp_path: Path, said: Said, options: list[str]) -> None:
    site = Site(None, Path(), "home", tmp_path)  # type: ignore[arg-type] # no cluster is asked
    config = site.config({"highAvailabilityConfig": ON})
    app(["render", "--config", str(config), *options], result_action="return_value")
    (mutating,) = rendered(said)
    (entry,) = mutating["webhooks"]
    rules = [rule["resources"] for rule in entry["rules"]]
    desired = [["deployments", "statefulsets"], ["horizontalpodautoscalers"]]
    assert rules == [*desired, *([["hvpas"]] if options else [])]


@pytest.mark.parametrize("webhooks", [{}, {"crdDeletionProtection": ON}])
def test_a_configuration_that_registers_nothing_is_an_error(
    tmp_path: Path, said: Said, webhooks: JsonObject
) -> None:
    site = Site(None, Path(), "home", tmp_path)  # type: ignore[arg-type] # no cluster is asked
    with pytest.raises(WebhooksError, match="enables no webhook that a target registers"):
        render(config=site.config(webhooks), installation="target", url="https://m")
    assert said() == []


def test_a_target_cannot_use_a_service_of_another_cluster(tmp_path: Path, said: Said) -> None:
    site = Site(None, Path(), "home", tmp_path, prefix="")  # type: ignore[arg-type] # no cluster is asked
    config = site.config(BOTH)
    with pytest.raises(WebhooksError) as error:
        render(config=config, installation="target")
    assert "--url https://gardener-resource-manager.home:443" in str(error.value)
    settings = site.settings(BOTH) | {"targetClientConnection": {"kubeconfig": "/shoot"}}
    config.write_bytes(orjson.dumps(settings))
    with pytest.raises(WebhooksError, match="cannot reach a Service of another cluster"):
        render(config=config)
    render(config=config, installation="runtime")
    assert len(rendered(said)) == 1


def test_the_runtime_cluster_of_a_garden_has_a_second_entry_for_its_own_api_server(
    tmp_path: Path, said: Said
) -> None:
    site = Site(None, Path(), "garden", tmp_path, prefix="")  # type: ignore[arg-type] # no cluster is asked
    config = site.config({"podKubeAPIServerLoadBalancing": ON})
    names = [f"pod-{prefix}kube-apiserver-load-balancing" for prefix in ("", "virtual-garden-")]
    for garden, expected in ((False, names[:1]), (True, names)):
        render(config=config, garden=garden)
        (mutating,) = rendered(said)
        assert [entry["name"].partition(".")[0] for entry in mutating["webhooks"]] == expected
    settings = site.settings({"podKubeAPIServerLoadBalancing": ON})
    settings["server"]["webhooks"]["selfSigned"]["garden"] = True
    config.write_bytes(orjson.dumps(settings))
    render(config=config)
    (mutating,) = rendered(said)
    assert len(mutating["webhooks"]) == 2


# apply


async def test_registering_twice_changes_nothing(site: Site, said: Said) -> None:
    name = f"{MUTATING.kind} {site.key.name}"
    await site.apply(HINTS)
    assert said() == [f"{name} is registered"]
    first = await site.client.get(MUTATING, site.key)
    await site.apply(HINTS)
    assert said() == [f"{name} was already registered"]
    assert await site.client.get(MUTATING, site.key) == first
    await site.apply(BOTH)
    assert said() == [f"{name} is updated"]
    live = await site.client.get(MUTATING, site.key)
    assert [e["name"] for e in live["webhooks"]] == [HINTS_NAME, AUTOSCALERS_NAME]


# check


async def test_a_correct_installation_has_no_findings(site: Site, said: Said) -> None:
    async with site.served(BOTH):
        await site.apply(BOTH)
        said()
        assert await site.check(BOTH) == 0
    assert said() == [FINE]


async def test_findings_can_be_printed_as_json(site: Site, said: Said) -> None:
    assert await site.check(HINTS, output="json") == 1
    findings = orjson.loads("\n".join(said()))
    text = "is served but not registered"
    assert {"severity": "error", "webhook": HINTS_NAME, "text": text} in findings


async def test_a_webhook_that_blocks_its_own_start_is_found(site: Site, said: Said) -> None:
    async with site.served(HINTS):
        await site.apply(HINTS)
        live = await site.client.get(MUTATING, site.key)
        (entry,) = live["webhooks"]
        entry["objectSelector"] = {}
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        entry["rules"].append(pods | {"operations": ["CREATE"], "scope": "*"})
        only = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
        entry["namespaceSelector"] = only
        await site.client.update(live)
        said()
        assert await site.check(HINTS) == 1
    lines = said()
    what = f"it is asked about the creation of its own pods in namespace {site.namespace}"
    assert f"error: {HINTS_NAME} blocks its own start: {what}, fails closed" in lines
    other = (
        f"warning: {HINTS_NAME} is registered with other namespaceSelector, objectSelector, rules"
    )
    assert other in lines


async def test_a_webhook_that_is_not_registered_is_found(site: Site, said: Said) -> None:
    async with site.served(BOTH):
        await site.apply(HINTS)
        said()
        assert await site.check(BOTH) == 1
    assert said() == [f"error: {AUTOSCALERS_NAME} is served but not registered"]


async def test_a_webhook_that_is_not_served_is_found(site: Site, said: Said) -> None:
    async with site.served(HINTS):
        await site.apply(BOTH)
        said()
        assert await site.check(BOTH) == 1
        path = "/webhooks/vpa-in-place-updates"
        assert said() == [f"error: {AUTOSCALERS_NAME} is registered, but {path} is not served"]
        assert await site.check(HINTS) == 1
        unknown = f"error: {AUTOSCALERS_NAME} is registered but not served by this configuration"
        assert unknown in said()


async def test_an_expired_certificate_is_found(site: Site, said: Said) -> None:
    async with site.served(HINTS, since=3 * DAY):
        await site.apply(HINTS)
        said()
        assert await site.check(HINTS) == 1
    (line,) = said()
    assert line.startswith(f"error: {HINTS_NAME} is served with a certificate that expired 2")


async def test_a_foreign_certificate_is_found(site: Site, said: Said) -> None:
    foreign = Authority.create("other", datetime.now(UTC), DAY)
    async with site.served(HINTS, signed_by=foreign):
        await site.apply(HINTS)
        said()
        assert await site.check(HINTS) == 1
    what = "is served with a certificate that its CA bundle does not trust"
    assert said() == [f"error: {HINTS_NAME} {what}"]


async def test_a_certificate_for_another_host_is_found(site: Site, said: Said) -> None:
    async with site.served(HINTS, host="manager.garden"):
        await site.apply(HINTS)
        said()
        assert await site.check(HINTS) == 1
    assert said() == [f"error: {HINTS_NAME} is served with a certificate that is not for 127.0.0.1"]


async def test_expired_authorities_are_found(site: Site, said: Said) -> None:
    site.authority = Authority.create("old", datetime.now(UTC) - 9 * DAY, DAY)
    await site.apply(HINTS)
    said()
    assert await site.check(HINTS) == 1
    assert any(
        "trusts only expired authorities, the last of which expired 2" in line for line in said()
    )


async def test_a_different_address_is_one_finding_with_both_values(
    site: Site, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    await site.apply(BOTH, url="https://manager.example.org:9443")
    said()
    assert await site.check(BOTH, url=None) == 0
    captured = capsys.readouterr()
    service = f"{site.namespace}/{site.prefix}gardener-resource-manager:443"
    (line,) = captured.out.splitlines()
    assert line == (
        "warning: 2 webhooks are registered at https://manager.example.org:9443, expected Service "
        f"{service}; pass --url if that is correct"
    )
    assert captured.err.splitlines()[-1] == "0 errors, 1 warning"
    await site.apply(HINTS, url="https://manager.example.org:9443")
    said()
    assert await site.check(HINTS, url="https://127.0.0.1:1", address=None) == 1
    assert said()[0] == (
        f"warning: {HINTS_NAME} is registered at https://manager.example.org:9443, expected "
        "https://127.0.0.1:1"
    )


async def test_an_unreachable_server_is_found(site: Site, said: Said) -> None:
    async with site.served(HINTS):
        await site.apply(HINTS)
    said()
    assert await site.check(HINTS) == 1
    (line,) = said()
    assert line.startswith(f"error: the server at 127.0.0.1:{site.port} cannot be reached: ")


# Mistakes are reported in one sentence


@pytest.mark.parametrize(
    "content", ["garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_broken_ca_file_is_named_without_error_texts_of_libraries(
    tmp_path: Path, content: str
) -> None:
    site = Site(None, Path(), "home", tmp_path)  # type: ignore[arg-type] # no cluster is asked
    ca = tmp_path / "broken.crt"
    ca.write_text(content)
    with pytest.raises(WebhooksError) as error:
        render(config=site.config(HINTS), ca=ca)
    assert str(error.value) == f"{ca} is not a PEM file with valid certificates"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["render", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["render", "--config", "config.yaml", "--ca", "nowhere.crt"], "nowhere.crt"),
        (["render", "--config", "config.yaml", "--installation", "seed"], "seed"),
        (["render", "--config", "config.yaml", "--ca", "broken.crt"], "broken.crt"),
        (["apply", "--config", "config.yaml", "--ca", "empty.crt"], "empty.crt"),
        (["apply", "--config", "config.yaml", "--ca", "broken.crt"], "broken.crt"),
        (["check", "--config", "config.yaml", "--kubeconfig", "nowhere"], "nowhere"),
        (["check", "--config", "wrong.yaml"], "webhooks.projectedTokenMount.expirationSeconds"),
    ],
)
@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
def test_a_mistake_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    named: str,
) -> None:
    header: JsonObject = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    wrong: JsonObject = {"projectedTokenMount": {"enabled": True, "expirationSeconds": 5}}
    (tmp_path / "config.yaml").write_text(dump(header | {"webhooks": HINTS}))
    (tmp_path / "wrong.yaml").write_text(dump(header | {"webhooks": wrong}))
    (tmp_path / "empty.crt").write_text("")
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (tmp_path / "broken.crt").write_text(broken)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("sys.argv", ["pergola", "webhooks", *command])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (1, 2)
    assert named in "".join(capsys.readouterr())
