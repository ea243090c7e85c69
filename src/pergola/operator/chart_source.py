"""The charts of Extensions and Gardenlets: pulled with their Secrets, rendered for a cluster."""

import base64
from typing import Final

import orjson

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.charts import (
    Access,
    Chart,
    ChartReference,
    Helm,
    Puller,
    Release,
    credentials_in,
)
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client

PULL_SECRET: Final = "pullSecretRef"  # noqa: S105 - the name of a field
CA_BUNDLE: Final = "caBundleSecretRef"
_BUNDLE_KEY: Final = "bundle.crt"


class ChartSecretUnusable(OperatorError):
    """A Secret that an `ociRepository` names is missing, or lacks its key."""


class Charts:
    """Pulls and renders charts.

    Args:
        client: For the cluster with the Secrets.
    """

    def __init__(self, client: Client, puller: Puller, helm: Helm) -> None:
        self._client = client
        self._puller = puller
        self._helm = helm

    async def pull(self, source: JsonObject) -> Chart:
        """Return the chart of an `ociRepository`.

        Raises:
            ChartSecretUnusable: A Secret that it names is missing, or lacks its key.
            ChartError: The chart cannot be pulled.
            KubeError: The API server refused, or did not answer.
        """
        reference = ChartReference.of(source)
        pull_secret = await self._secret(source, PULL_SECRET)
        credentials = None if pull_secret is None else credentials_in(pull_secret, reference)
        bundle = await self._secret(source, CA_BUNDLE)
        ca_bundle = "" if bundle is None else _ca_bundle(bundle)
        return await self._puller.pull(
            reference, Access(credentials=credentials, ca_bundle=ca_bundle)
        )

    async def render(self, chart: Chart, release: Release) -> list[JsonObject]:
        """Return the objects of a chart.

        Raises:
            ChartError: Helm refused the chart or its values.
        """
        return await self._helm.render(chart, release)

    async def _secret(self, source: JsonObject, field: str) -> JsonObject | None:
        name = secret_named(source, field)
        if not name:
            return None
        found = await self._client.find(SECRET, Key(NAMESPACE, name))
        if found is None:
            raise ChartSecretUnusable(
                f"Secret {NAMESPACE}/{name}, which ociRepository.{field} names, does not exist: "
                "create it"
            )
        return found


async def served_version(client: Client) -> str:
    """Return the current version of Kubernetes of a cluster, such as `v1.33.2`.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    return str(orjson.loads(await client.get_raw("/version"))["gitVersion"])


def secret_named(source: JsonObject, field: str) -> str:
    """Return the Secret that an `ociRepository` names in a field; empty if it names none."""
    return str(map_at(source, field).get("name") or "")


def _ca_bundle(secret: JsonObject) -> str:
    encoded = map_at(secret, "data").get(_BUNDLE_KEY)
    try:
        if encoded:
            return base64.b64decode(str(encoded)).decode()
    except ValueError:
        pass
    raise ChartSecretUnusable(
        f"Secret {Key.of(secret)}, which ociRepository.{CA_BUNDLE} names, has no key "
        f'"{_BUNDLE_KEY}" with certificates: add it'
    )
