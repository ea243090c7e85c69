"""The operator as a process of `pergola up`, in a cluster of its own: it registers webhooks."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pergola.admission.configurations import VALIDATING
from pergola.api.objects import Key
from pergola.cli.up.operator_process import operator_process
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.failures import Failures, sentence_of
from pergola.sandbox import API_ONLY, Sandbox
from pergola.sandbox.simulated import Site
from pergola.testing.crds import install_garden_extension_crds, install_operator_crds
from pergola.testing.shared import private
from pergola.testing.waiting import until

REGISTERED = Key("", "gardener-operator")


async def prepare(client: Client) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
    await client.create(namespace)
    await install_operator_crds(client)
    await install_garden_extension_crds(client)


@pytest.fixture(scope="module")
def own() -> Iterator[Sandbox]:
    with private(API_ONLY, prepare=prepare) as own:
        yield own


@pytest.fixture
async def admin(own: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(own.kubeconfig)) as client:
        yield client


def running_operator(
    sandbox: Sandbox, client: Client, directory: Path, **environment: str
) -> AbstractAsyncContextManager[None]:
    """Run an operator on a site without nodes, with these variables."""
    node = cast("Any", SimpleNamespace(proxy="http://127.0.0.1:1"))
    site = Site(sandbox, client, directory, node)
    given = {**site.operator_environment, "IMAGEVECTOR_OVERWRITE": "", **environment}
    return operator_process(site, given)


async def test_the_permissions_of_the_chart_suffice_until_the_end_of_the_block(
    own: Sandbox, admin: Client, tmp_path: Path
) -> None:
    async with running_operator(own, admin, tmp_path):
        await until(admin, VALIDATING, REGISTERED, lambda _: True)
    log = (tmp_path / "operator.log").read_text()
    assert "forbidden" not in log
    assert "Traceback" not in log


async def test_an_operator_that_ends_fails_the_block_with_its_last_words(
    own: Sandbox, admin: Client, tmp_path: Path
) -> None:
    with pytest.raises(Failures) as caught:
        async with running_operator(own, admin, tmp_path, WEBHOOK_MODE="nonsense"):
            await until(admin, VALIDATING, Key("", "never"), lambda _: True)
    text = sentence_of(caught.value)
    assert "pergola operator ended with code 1" in text
    assert "nonsense" in text
