"""A rotation of all credentials of a Garden on a real node, where everything runs as pods.

The gateway terminates TLS by default, so external clients depend on its credentials.
"""

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape.etcd_objects import ETCD, problem
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox.images.catalogue import GARDEN_IMAGES
from pergola.sandbox.node.garden import garden_node
from pergola.testing.shared import require_images, require_node
from pergola.testing.waiting import until
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import RECONCILE, example
from tests.support.node_garden import GatewayGarden, NodeGarden
from tests.support.rotation_checks import (
    OldCredentials,
    both_are_accepted,
    is_completed,
    is_prepared,
    only_new_ones_are_accepted,
)
from tests.support.virtual_credentials import (
    access_config,
    client_certificate,
    is_refused,
    never_refused,
)

pytestmark = [pytest.mark.node, pytest.mark.soak("node-rotation"), pytest.mark.timeout(4800)]

LOCAL: Final = Key("", "local")
MAIN: Final = Key("garden", "virtual-garden-etcd-main")
PATIENCE: Final = 1200.0


async def test_all_credentials_of_a_garden_on_a_node_are_rotated(tmp_path: Path) -> None:
    require_node()
    require_images(*GARDEN_IMAGES)
    async with (
        garden_node(f"rotated-{secrets.token_hex(4)}", gates={}) as sandbox,
        Client.connect(load(sandbox.kubeconfig)) as client,
    ):
        await comes_up(client)
        garden = await NodeGarden.of(sandbox, client)
        old = await OldCredentials.of(garden)
        async with GatewayGarden.of(client, tmp_path / "tunnel") as outside:
            await gateway_reports_certificates(outside)
            async with never_refused(garden), never_refused(outside):
                async with (
                    never_refused(garden, old.certificate, old.token),
                    never_refused(outside, old.certificate, old.token),
                ):
                    await client.patch(GARDEN, LOCAL, operation("rotate-credentials-start"))
                    await until(client, GARDEN, LOCAL, is_prepared, patience=PATIENCE)
                    await both_are_accepted(garden, old)
                await client.patch(GARDEN, LOCAL, operation("rotate-credentials-complete"))
                await until(client, GARDEN, LOCAL, is_completed, patience=PATIENCE)
            await only_new_ones_are_accepted(garden, old)
            await gateway_reports_certificates(outside)
            assert await is_refused(outside, old.token)


async def comes_up(client: Client) -> None:
    """Wait until the Garden succeeds, and let the checks read its main etcd as JSON."""
    await client.create(example())
    await until(client, ETCD, MAIN, lambda _: True, patience=PATIENCE)
    with_json: JsonObject = {"spec": {"etcd": {"enableGRPCGateway": True}}}
    await client.patch(ETCD, MAIN, RECONCILE | with_json)
    await until(client, ETCD, MAIN, lambda it: problem(it) is None, patience=PATIENCE)
    await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)


async def gateway_reports_certificates(outside: GatewayGarden) -> None:
    """Check that the API server knows the subject of a certificate that only the gateway saw."""
    credentials = await client_certificate(outside.client)
    config = replace(await access_config(outside.client), credentials=credentials)
    async with Client.connect(outside.reach(config)) as virtual:
        review = await virtual.create(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        )
    user = review["status"]["userInfo"]
    assert (user["username"], "extra" in user) == ("someone", False)


def operation(name: str) -> JsonObject:
    """Return the patch that requests an operation on a Garden."""
    return {"metadata": {"annotations": {"gardener.cloud/operation": name}}}
