"""What the commands of `pergola aws` ask about, and the one look at AWS that each begins with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.api.kinds import SECRET
from pergola.cli.aws.file import AwsFileError, named, of_kind, read_objects

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.cloud.aws import AwsClient, Credentials
    from pergola.providers.aws.resources.step import Work

ENVIRONMENT: Final = "environment"
_EXTENSIONS: Final = "extensions.gardener.cloud"
_INFRASTRUCTURE: Final = "Infrastructure"


class AwsCheckError(Exception):
    """The command cannot do what it was asked for; the text says why and what to do."""


class Place(NamedTuple):
    """Where the Infrastructure is: in a file, or in a cluster; as the options of a command say."""

    file: str
    name: str
    namespace: str
    aws_credentials: str
    kubeconfig: Path | None
    context: str | None


class Asked(NamedTuple):
    """What is to be looked at, and as whom.

    Attributes:
        cluster: the Cluster with its Shoot; None if there is none.
        credentials: None for AWS's usual chain.
    """

    infrastructure: "JsonObject"
    cluster: "JsonObject | None"
    credentials: "Credentials | None"


def place_of(
    file: str,
    name: str,
    namespace: str,
    aws_credentials: str,
    kubeconfig: Path | None,
    context: str | None,
) -> Place:
    """The place that options name.

    Raises:
        AwsCheckError: they name none, or two.
    """
    if bool(file) == bool(name):
        raise AwsCheckError("give either --file or --name")
    return Place(file, name, namespace, aws_credentials, kubeconfig, context)


async def asked_at(place: Place) -> Asked:
    """What is asked about at a place.

    Raises:
        AwsFileError, AwsCheckError: something is missing, or too much.
        KubeError: it cannot be read.
    """
    if place.file:
        return _from_file(place.file, place.aws_credentials)
    return await _from_cluster(place)


@asynccontextmanager
async def looked(asked: Asked, endpoint_url: str) -> "AsyncIterator[Work]":
    """What steps judge by: what is wanted, the state in the status, and AWS as it is now.

    Raises:
        AwsCheckError, CloudError: AWS refused, or did not answer.
        ExtensionError: the Infrastructure cannot be read.
    """
    from pergola.api.objects import map_at
    from pergola.cloud.aws import AwsClient

    region = str(map_at(asked.infrastructure, "spec").get("region", ""))
    async with AwsClient(region, credentials=asked.credentials, endpoint_url=endpoint_url) as aws:
        yield await look(aws, asked)


async def look(aws: "AwsClient", asked: Asked) -> "Work":
    """The same, with a client of the region.

    Raises:
        AwsCheckError, CloudError: AWS refused, or did not answer.
        ExtensionError: the Infrastructure cannot be read.
    """
    from pergola.api.objects import map_at
    from pergola.extension_api.cluster import Cluster
    from pergola.flow.errors import sentence_of
    from pergola.providers.aws.observe import observe
    from pergola.providers.aws.request import wanted_of
    from pergola.providers.aws.resources.step import Work
    from pergola.providers.aws.state import read_state

    cluster = Cluster.from_object(asked.cluster) if asked.cluster else None
    wanted = wanted_of(asked.infrastructure, cluster)
    state = read_state(map_at(asked.infrastructure, "status", "state"))
    try:
        snapshot = await observe(aws, wanted, state)
    except ExceptionGroup as several:
        raise AwsCheckError(sentence_of(several)) from None
    return Work(aws=aws, wanted=wanted, state=state, snapshot=snapshot)


def _from_file(file: str, aws_credentials: str) -> Asked:
    """What a file with one Infrastructure asks.

    Raises:
        AwsFileError, AwsCheckError: something is missing, or too much.
    """
    from pergola.api.objects import Key, name_of, namespace_of

    objects = read_objects(file)
    found = of_kind(objects, _EXTENSIONS, _INFRASTRUCTURE)
    if len(found) != 1:
        said = ", ".join(map(named, objects)) or "nothing"
        raise AwsFileError(f"{file} has to hold one Infrastructure, and holds {said}")
    infrastructure = found[0]
    clusters = [
        obj
        for obj in of_kind(objects, _EXTENSIONS, "Cluster")
        if name_of(obj) == namespace_of(infrastructure)
    ]
    secrets = {Key.of(obj): obj for obj in of_kind(objects, "", "Secret")}
    key = _secret_key(aws_credentials, infrastructure)
    secret = secrets.get(key) if key else None
    if secret is None and aws_credentials not in ("", ENVIRONMENT):
        raise AwsCheckError(f"{file} does not hold Secret {key}")
    return Asked(
        infrastructure, clusters[0] if clusters else None, _credentials(secret) if secret else None
    )


async def _from_cluster(place: Place) -> Asked:
    """What an Infrastructure in a cluster asks.

    Raises:
        AwsCheckError: its Secret is not named.
        KubeError: it cannot be read.
    """
    from pergola.api.objects import GroupVersionKind, Key
    from pergola.cloud.aws import reader
    from pergola.extension_api.cluster import CLUSTER
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    infrastructure = GroupVersionKind(_EXTENSIONS, "v1alpha1", _INFRASTRUCTURE)
    async with Client.connect(load(place.kubeconfig, place.context)) as client:
        obj = await client.get(infrastructure, Key(place.namespace, place.name))
        cluster = await reader(client)(CLUSTER, Key("", place.namespace))
        key = _secret_key(place.aws_credentials, obj)
        secret = await client.get(SECRET, key) if key else None
    return Asked(obj, cluster, _credentials(secret) if secret else None)


def _secret_key(text: str, infrastructure: "JsonObject") -> "Key | None":
    """The Secret with the credentials; None for AWS's usual chain."""
    from pergola.api.objects import Key, map_at

    if text == ENVIRONMENT:
        return None
    reference = map_at(infrastructure, "spec", "secretRef")
    named = f"{reference.get('namespace', '')}/{reference['name']}" if "name" in reference else ""
    namespace, separator, name = (text or named).partition("/")
    if not text and not named:
        return None
    if not (namespace and separator and name):
        raise AwsCheckError(
            f'"{text or named}" is not the NAMESPACE/NAME of a Secret; give --aws-credentials'
        )
    return Key(namespace, name)


def _credentials(secret: "JsonObject") -> "Credentials":
    from base64 import b64decode

    from pergola.api.objects import Key, map_at
    from pergola.cloud.aws import credentials_of

    data = {key: b64decode(value) for key, value in map_at(secret, "data").items()}
    data |= {key: value.encode() for key, value in map_at(secret, "stringData").items()}
    return credentials_of(data, f"Secret {Key.of(secret)}")
