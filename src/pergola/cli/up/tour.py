"""What `pergola up` shows besides ManagedResources: further controllers, and webhooks."""

import asyncio
import base64
from typing import TYPE_CHECKING, Final

from pergola.api.kinds import NETWORK_POLICY, SECRET

if TYPE_CHECKING:
    from rich.console import Console

    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.api.resource_manager_config import ResourceManagerConfiguration
    from pergola.kube.client import Client

_SECONDS: Final = 20.0
_NAMESPACE: Final = "shop"
_ACCESS: Final = "access-web"
_ROLE: Final = {"gardener.cloud/role": "shoot"}


class TourError(Exception):
    """Something that should be shown did not happen in time; the text says what."""


def configuration(*, webhooks: bool) -> "ResourceManagerConfiguration":
    """Everything that can be shown on one cluster, as far as it disturbs nothing else there.

    Args:
        webhooks: whether the cluster's API server reaches this process.
    """
    from pergola.api.resource_manager_config import API_VERSION, KIND, configuration_from

    on: JsonObject = {"enabled": True}
    own = {"enabled": webhooks, "namespace": "pergola-system", "url": "https://127.0.0.1"}
    switched = ("seccompProfile", "projectedTokenMount", "podTopologySpreadConstraints")
    value: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "leaderElection": {"leaderElect": False},
        "controllers": {
            "garbageCollector": on,
            "tokenRequestor": on,
            "networkPolicy": {
                "enabled": True,
                "namespaceSelectors": [
                    {"matchLabels": {"kubernetes.io/metadata.name": _NAMESPACE}}
                ],
            },
        },
        "server": {"webhooks": {"bindAddress": "127.0.0.1", "port": 0, "selfSigned": own}},
        "webhooks": dict.fromkeys(switched, on) if webhooks else {},
    }
    return configuration_from(value, source="the demonstration").config


async def show_token(client: "Client", console: "Console") -> None:
    """Asks for a token as an operator would, and says who it is for."""
    from pergola.api.objects import Key, map_at

    gvk, key = SECRET, Key("default", _ACCESS)
    name = "serviceaccount.resources.gardener.cloud"
    console.print(f"\nAsking for a token: Secret {key} for ServiceAccount {_NAMESPACE}/web …")
    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {
                    "resources.gardener.cloud/purpose": "token-requestor",
                    "resources.gardener.cloud/class": "shoot",
                },
                "annotations": {f"{name}/name": "web", f"{name}/namespace": _NAMESPACE},
            },
        },
        manager="pergola-up",
        force=True,
    )
    secret = await _until(client, gvk, key, "token")
    token = base64.b64decode(map_at(secret, "data")["token"]).decode()
    review = await client.create(
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": ["gardener"]},
        }
    )
    user = map_at(review, "status", "user").get("username", "somebody else")
    renewal = map_at(secret, "metadata", "annotations")[f"{name}/token-renew-timestamp"]
    console.print(f"A token of [bold]{user}[/]; it is renewed at {renewal}.")


async def show_network_policies(client: "Client", console: "Console") -> None:
    """Says what a Service's NetworkPolicies allow."""
    from rich.markup import escape

    from pergola.api.objects import Key, map_at

    gvk = NETWORK_POLICY
    console.print(f"\nNetworkPolicies for Service {_NAMESPACE}/web:")
    labels = "networking.resources.gardener.cloud/service-name=web"
    async with asyncio.timeout(_SECONDS):
        while not (found := await client.list(gvk, _NAMESPACE, labels=labels)):
            await client.get_raw("/version")
    for policy in sorted(found, key=lambda policy: Key.of(policy).name):
        text = map_at(policy, "metadata", "annotations").get("gardener.cloud/description", "")
        name = Key.of(policy).name
        console.print(f"  [bold]{name}[/]\n    {escape(text)}", soft_wrap=True)


async def show_webhooks(client: "Client", console: "Console") -> None:
    """Creates a pod as anybody would, without keeping it, and says what became of it."""
    from pergola.api.objects import map_at

    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "control-plane", "labels": _ROLE},
        },
        manager="pergola-up",
        force=True,
    )
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "namespace": "control-plane"},
        "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
    }
    console.print("\nCreating a Pod without a seccomp profile (as a dry run) …")
    async with asyncio.timeout(_SECONDS):
        while True:  # until the API server has heard of the registration, a moment ago
            created = await client.create(pod, dry_run=True)
            if profile := map_at(created, "spec", "securityContext", "seccompProfile"):
                break
    console.print(f"The webhook gave it one: [bold]{profile.get('type')}[/]")


async def _until(client: "Client", gvk: "GroupVersionKind", key: "Key", data: str) -> "JsonObject":
    """Waits until a Secret has a key."""
    from pergola.api.objects import map_at

    try:
        async with asyncio.timeout(_SECONDS):
            while data not in map_at(secret := await client.get(gvk, key), "data"):
                await client.get_raw("/version")
            return secret
    except TimeoutError:
        raise TourError(f"Secret {key} had no {data} after {_SECONDS:.0f} s") from None
