"""Sources of network descriptions (spec 50 §5, step 3)."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, Protocol

from pergola.api.cluster_api import SOURCE
from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
    namespace_of,
)
from pergola.externally_managed.description import Network, read_network
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, NotFound
from pergola.kube.yaml import YamlError, parse

DATA_KEY: Final = "network.yaml"
NOT_FOUND: Final = "SourceNotFound"
INVALID: Final = "SourceInvalid"
FORBIDDEN: Final = "SourceForbidden"
_KINDS: Final = {"configmap": CONFIG_MAP, "secret": SECRET}


class SourceProblem(Exception):
    """The source is missing or unusable.

    Attributes:
        reason: the reason of the Ready condition.
        problems: one sentence each.
    """

    def __init__(self, reason: str, *problems: str) -> None:
        self.reason = reason
        self.problems = problems
        super().__init__("; ".join(problems))


class Source(Protocol):
    """A reader of networks."""

    async def describe(self, obj: JsonObject) -> Network:
        """Return the network of an InfraCluster.

        Raises:
            SourceProblem: the source is missing or unusable.
            KubeError: the source cannot be read now; retry.
        """
        ...


def source_object(obj: Mapping[str, Any]) -> tuple[GroupVersionKind, Key] | None:
    """Return the ConfigMap or Secret that the annotation names; None if it names none.

    The name becomes part of a URL and a selector, so only valid object names are accepted.
    """
    kind, _, name = annotations_of(obj).get(SOURCE, "").partition("/")
    gvk = _KINDS.get(kind.lower())
    return (gvk, Key(namespace_of(obj), name)) if gvk and is_dns_subdomain(name) else None


class PlainSource:
    """A reader of descriptions in ConfigMaps and Secrets in the InfraCluster's namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def describe(self, obj: JsonObject) -> Network:
        """Return the network of an InfraCluster.

        Raises:
            SourceProblem: the annotation does not name a readable source.
        """
        reference = source_object(obj)
        if reference is None:
            raise SourceProblem(INVALID, _no_source(annotations_of(obj).get(SOURCE)))
        gvk, key = reference
        of = f"{gvk.kind} {key}"
        try:
            found = await self._client.get(gvk, key)
        except NotFound:
            raise SourceProblem(
                NOT_FOUND, f"{of}, which annotation {SOURCE} names, does not exist"
            ) from None
        except Forbidden:
            raise SourceProblem(
                FORBIDDEN,
                f"{of}, which annotation {SOURCE} names, cannot be read: grant the manager get, "
                f"list and watch on it with a Role in namespace {key.namespace}",
            ) from None
        network = read_network(_content(found, gvk, of), of)
        if isinstance(network, list):
            raise SourceProblem(INVALID, *network)
        return network


def _no_source(value: str | None) -> str:
    if not value:
        return f"annotation {SOURCE} is missing; set it to configmap/<name> or secret/<name>"
    return f'annotation {SOURCE} is "{value}"; it must be configmap/<name> or secret/<name>'


def _content(found: JsonObject, gvk: GroupVersionKind, of: str) -> Any:
    text = map_at(found, "data").get(DATA_KEY)
    if not isinstance(text, str):
        raise SourceProblem(INVALID, f"{of} has no key {DATA_KEY}")
    try:
        return parse(base64.b64decode(text) if gvk == SECRET else text.encode())
    except (YamlError, binascii.Error, ValueError) as error:
        raise SourceProblem(INVALID, f"{of}, key {DATA_KEY}: {error}") from None
