"""`pergola why` without an object lists what needs attention, for people, scripts and cron."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.output import ShowFormat
from pergola.cli.why.command import WhyError, why
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.testing.crds import install_crds
from pergola.why.attention import attention
from tests.support.dashboard_objects import bad, create_managed_resource, good, managed_resource

PROBLEM = "Deployment web has no replicas"


class Listing:
    """A user who lists what needs attention in a namespace."""

    def __init__(
        self, kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.options = ScopeOptions(kubeconfig=kubeconfig, namespace=namespace)
        self.namespace = namespace
        self._capsys = capsys

    async def run(self, output: ShowFormat = "text") -> tuple[object, str, str]:
        """Return the exit code, the output and the errors."""
        self._capsys.readouterr()
        code: object = 0
        try:
            await asyncio.to_thread(why, output=output, cluster=self.options)
        except SystemExit as exit_:
            code = exit_.code
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
async def listing(
    kubeconfig: Path,
    cluster_client: Client,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> Listing:
    await install_crds(cluster_client)
    return Listing(kubeconfig, namespace, capsys)


async def test_a_healthy_namespace_needs_no_attention_and_the_command_says_what_it_checked(
    listing: Listing, cluster_client: Client
) -> None:
    await create_managed_resource(cluster_client, Key(listing.namespace, "web"), good())
    code, out, _ = await listing.run()
    assert code == 0
    assert out.startswith("nothing needs attention; checked 1 object of ")
    assert out.endswith(f" in namespace {listing.namespace}\n")


async def test_a_failing_object_is_listed_in_every_format_and_the_command_fails(
    listing: Listing, cluster_client: Client
) -> None:
    key = Key(listing.namespace, "web")
    await create_managed_resource(cluster_client, key, bad(PROBLEM))
    code, out, _ = await listing.run()
    assert code == 1
    head, row, summary = out.splitlines()
    assert head.split() == ["NAMESPACE", "OBJECT", "STATE", "SINCE", "PROBLEM"]
    assert row.split()[:3] == [listing.namespace, "ManagedResource/web", "trouble"]
    assert row.endswith(PROBLEM)
    assert summary.startswith("1 needs attention; checked 1 object of ")

    code, out, err = await listing.run("json")
    assert code == 1
    (found,) = orjson.loads(out)
    assert (found["kind"], found["name"], found["problem"]) == ("ManagedResource", "web", PROBLEM)
    assert err == f"{summary}\n"
    _, out, _ = await listing.run("name")
    assert out == "managedresource.resources.gardener.cloud/web\n"


async def test_a_state_of_unknown_age_counts_from_the_last_write(
    listing: Listing, cluster_client: Client
) -> None:
    key = Key(listing.namespace, "late")
    await create_managed_resource(cluster_client, key, good())
    await cluster_client.patch(MANAGED_RESOURCE, key, {"spec": {"keepObjects": True}})
    _, out, _ = await listing.run()
    assert out.startswith("nothing needs attention")
    now = datetime.now(UTC)
    later = now.replace(year=now.year + 1)
    (card,) = (await attention(cluster_client, listing.namespace, later)).cards
    assert "generation 2 was not reconciled yet" in card.verdict.problem


async def test_a_user_without_rights_is_refused(
    listing: Listing, cluster_client: Client, kubeconfig: Path
) -> None:
    await cluster_client.create(managed_resource(Key(listing.namespace, "web")))
    stranger = ScopeOptions(
        kubeconfig=kubeconfig, namespace=listing.namespace, as_user="a-stranger"
    )
    with pytest.raises(Forbidden, match='User "a-stranger" cannot list resource'):
        await asyncio.to_thread(why, cluster=stranger)


def test_an_object_is_not_looked_for_in_all_namespaces(kubeconfig: Path) -> None:
    with pytest.raises(WhyError, match="-A lists what needs attention"):
        why("cm/web", cluster=ScopeOptions(kubeconfig=kubeconfig, all_namespaces=True))
