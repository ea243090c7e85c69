"""Read the content of a Garden's main etcd from etcd itself."""

import base64
from typing import Final

import orjson

from pergola.kube.credentials import Certificate
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.transport import Transport
from tests.support.virtual_credentials import LivingGarden, current_secrets

_SERVER: Final = "https://virtual-garden-etcd-main-client.garden.svc:2379"
_EVERYTHING: Final = base64.b64encode(b"\0").decode()
_ENCRYPTED: Final = b"k8s:enc:"


async def encrypting_keys(garden: LivingGarden) -> set[str]:
    """Return the names of all keys that encrypt stored objects."""
    transport = Transport(garden.reach(await _access(garden)))
    body = orjson.dumps({"key": _EVERYTHING, "range_end": _EVERYTHING})
    try:
        answer = orjson.loads(await transport.request("POST", "/v3/kv/range", body=body))
    finally:
        await transport.close()
    values = [base64.b64decode(pair["value"]) for pair in answer["kvs"]]
    return {value.split(b":")[4].decode() for value in values if value.startswith(_ENCRYPTED)}


async def _access(garden: LivingGarden) -> ClusterConfig:
    secrets = await current_secrets(garden.client)
    pair = {name: base64.b64decode(each) for name, each in secrets["etcd-client"]["data"].items()}
    return ClusterConfig(
        server=_SERVER,
        ca=base64.b64decode(secrets["ca-etcd-bundle"]["data"]["bundle.crt"]),
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=Certificate(pair["tls.crt"], pair["tls.key"]),
        namespace="garden",
        context="etcd",
    )
