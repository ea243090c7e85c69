"""Credentials of the virtual cluster of a Garden, and whether it accepts them."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, labels_of
from pergola.kube.client import Client
from pergola.kube.credentials import Certificate, Credentials
from pergola.kube.errors import Unauthorized
from pergola.kube.kubeconfig import ClusterConfig, parse_cluster
from pergola.operator.components.gardener_access import INTERNAL
from pergola.pki import Authority, Pair, Template
from pergola.sandbox.simulated import Site
from pergola.testing.garden_world import MANAGED

_DAY: Final = timedelta(days=1)


async def current_secrets(client: Client) -> dict[str, JsonObject]:
    """Return the newest Secret of each credential, by config name."""
    secrets = await client.list(SECRET, "garden", labels=MANAGED)
    newest: dict[str, JsonObject] = {}
    for secret in sorted(secrets, key=lambda it: int(labels_of(it).get("issued-at-time") or 0)):
        newest[labels_of(secret)["name"]] = secret
    return newest


async def client_certificate(client: Client) -> Credentials:
    """Return an administrator's certificate of the newest client authority."""
    authority = (await current_secrets(client))["ca-client"]
    data = {name: base64.b64decode(value) for name, value in authority["data"].items()}
    template = Template(
        common_name="someone", organizations=("system:masters",), lifetime=_DAY, for_client=True
    )
    pair = Authority(Pair(data["ca.crt"], data["ca.key"])).issue(template, datetime.now(UTC))
    return Certificate(pair.public, pair.private)


async def access_config(client: Client) -> ClusterConfig:
    """Return the access that Secret `garden/gardener-internal` gives, with its current token."""
    secret = await client.get(SECRET, Key("garden", INTERNAL))
    return parse_cluster(base64.b64decode(secret["data"]["kubeconfig"]), INTERNAL)


async def is_refused(site: Site, credentials: Credentials) -> bool:
    """Return whether the virtual cluster refuses these credentials on a new connection."""
    config = replace(await access_config(site.client), credentials=credentials)
    async with Client.connect(site.reach(config)) as virtual:
        try:
            await virtual.list(NAMESPACE)
        except Unauthorized:
            return True
    return False
