"""The chapters of `pergola up` about tokens, NetworkPolicies and webhooks."""

import base64
from typing import TYPE_CHECKING, Final

from pergola.api.kinds import NETWORK_POLICY, SECRET
from pergola.cli.up.story import within

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.api.resource_manager_config import ResourceManagerConfiguration
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client

_SECONDS: Final = 120.0
_NAMESPACE: Final = "shop"
_ACCESS: Final = "access-web"
_ROLE: Final = {"gardener.cloud/role": "shoot"}


def configuration(*, webhooks: bool) -> "ResourceManagerConfiguration":
    """Return a configuration that shows much and affects nothing else in the cluster.

    Args:
        webhooks: Whether the cluster's API server can reach this process.
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
                "onlyForMatchingPods": False,  # no pod calls the Service
                "namespaceSelectors": [
                    {"matchLabels": {"kubernetes.io/metadata.name": _NAMESPACE}}
                ],
            },
        },
        "server": {"webhooks": {"bindAddress": "127.0.0.1", "port": 0, "selfSigned": own}},
        "webhooks": dict.fromkeys(switched, on) if webhooks else {},
    }
    return configuration_from(value, source="the demonstration").config


async def show_token(client: "Client", story: "Story") -> None:
    """Request a token as an operator would, and print its user."""
    from pergola.api.objects import Key, map_at

    gvk, key = SECRET, Key("default", _ACCESS)
    name = "serviceaccount.resources.gardener.cloud"
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
    user = map_at(review, "status", "user").get("username", "an unknown user")
    renewal = map_at(secret, "metadata", "annotations")[f"{name}/token-renew-timestamp"]
    story.say(f"Token for [bold]{user}[/], renewed at {renewal:.16}")


async def show_network_policies(client: "Client", story: "Story") -> None:
    """Print the NetworkPolicies of a Service."""
    from pergola.api.objects import Key

    labels = "networking.resources.gardener.cloud/service-name=web"
    async with within(_SECONDS, f"NetworkPolicies of Service {_NAMESPACE}/web"):
        while not (found := await client.list(NETWORK_POLICY, _NAMESPACE, labels=labels)):
            await client.get_raw("/version")
    names = sorted(Key.of(policy).name for policy in found)
    story.say(f"NetworkPolicies of Service {_NAMESPACE}/web: {', '.join(names)}")


async def show_webhooks(client: "Client", story: "Story") -> None:
    """Create a pod as a dry run, and print the change."""
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
    async with within(_SECONDS, "a webhook to change a Pod"):
        while True:  # the API server may not know the registration yet
            created = await client.create(pod, dry_run=True)
            if profile := map_at(created, "spec", "securityContext", "seccompProfile"):
                break
    kind = profile.get("type")
    story.say(f"A Pod without a seccomp profile got [bold]{kind}[/] from a webhook (a dry run)")


async def _until(client: "Client", gvk: "GroupVersionKind", key: "Key", data: str) -> "JsonObject":
    """Wait until a Secret has a data key."""
    from pergola.api.objects import map_at

    async with within(_SECONDS, f"Secret {key} to have a {data}"):
        while data not in map_at(secret := await client.get(gvk, key), "data"):
            await client.get_raw("/version")
        return secret
