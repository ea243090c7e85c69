"""The subject of `pergola aws` commands: an Infrastructure, and its state in AWS."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter

from pergola.api.kinds import SECRET
from pergola.cli.cluster_options import NamespaceOptions
from pergola.cli.manifest_files import ManifestFileError, named, of_kind, read_objects

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.cloud.aws import AwsClient, Credentials
    from pergola.kube.client import Client
    from pergola.providers.aws.resources.step import Work

ENVIRONMENT: Final = "environment"
_EXTENSIONS: Final = "extensions.gardener.cloud"
_INFRASTRUCTURE: Final = "Infrastructure"
_KINDS: Final = ("infrastructure", "infrastructures", "infra")


class AwsCheckError(Exception):
    """The command cannot run; the text says why and what to do."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Source(NamespaceOptions):
    """The place of an Infrastructure: a file or a cluster.

    Attributes:
        file: A manifest with an Infrastructure, or - for the standard input. Its Cluster and the
            Secret with credentials are read from the same file.
        name: The same as the positional argument.
    """

    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = ""
    name: str = ""

    def chosen(self, argument: str) -> str:
        """Return the name of the Infrastructure in the cluster; empty if it is in the file.

        Args:
            argument: a name, or kind and name as kubectl writes them, such as `infrastructure/web`.

        Raises:
            AwsCheckError: the arguments name no Infrastructure, or several.
        """
        names = [each for each in (_name_in(argument), self.name) if each]
        if bool(self.file) == bool(names) or len(names) > 1:
            raise AwsCheckError(
                "give either --file or the name of an Infrastructure, for example: "
                "infrastructure/web -n shoot--dev--web"
            )
        return "".join(names)


DEFAULT_SOURCE: Final = Source()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Account:
    """The AWS account of an Infrastructure.

    Attributes:
        aws_credentials: NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or
            `environment` for AWS's default credential chain. The default is the Secret that the
            Infrastructure names, and the credential chain if a file does not contain that Secret.
        endpoint_url: URL of all services, instead of AWS's own.
    """

    aws_credentials: str = ""
    endpoint_url: str = ""


DEFAULT_ACCOUNT: Final = Account()


class Subject(NamedTuple):
    """An Infrastructure with its Cluster and the credentials for its account.

    Attributes:
        cluster: the Cluster with its Shoot; None if there is none.
        credentials: None for AWS's default credential chain.
    """

    infrastructure: "JsonObject"
    cluster: "JsonObject | None"
    credentials: "Credentials | None"


def _name_in(resource: str) -> str:
    kind, separator, name = resource.rpartition("/")
    if separator and kind.lower().partition(".")[0] not in _KINDS:
        raise AwsCheckError(f'"{resource}" is not an Infrastructure; write infrastructure/NAME')
    return name


async def read_subject(
    argument: str,
    source: Source,
    aws_credentials: str,
    objects: "list[JsonObject] | None" = None,
) -> Subject:
    """Read the Infrastructure, its Cluster and its Secret.

    Args:
        argument: the positional argument of the command.
        objects: of the file, if they were already read.

    Raises:
        ManifestFileError, AwsCheckError: an object is missing, or there are too many.
        KubeError: it cannot be read.
    """
    from pergola.api.objects import Key

    name = source.chosen(argument)
    if not name:
        found = read_objects(source.file) if objects is None else objects
        return _from_file(source.file, found, aws_credentials)
    async with source.connect() as client:
        return await subject_in(client, Key(source.chosen_namespace(), name), aws_credentials)


@asynccontextmanager
async def observed(subject: Subject, endpoint_url: str) -> "AsyncIterator[Work]":
    """Yield the inputs of steps: desired state, recorded state, and AWS's current state.

    Raises:
        AwsCheckError, CloudError: AWS refused, or did not answer.
        ExtensionError: the Infrastructure cannot be read.
    """
    from pergola.api.objects import map_at
    from pergola.cloud.aws import AwsClient

    region = str(map_at(subject.infrastructure, "spec").get("region", ""))
    async with AwsClient(region, credentials=subject.credentials, endpoint_url=endpoint_url) as aws:
        yield await observe_subject(aws, subject)


async def observe_subject(aws: "AwsClient", subject: Subject) -> "Work":
    """Return the same, with a client of the region.

    Raises:
        AwsCheckError, CloudError: AWS refused, or did not answer.
        ExtensionError: the Infrastructure cannot be read.
    """
    from pergola.api.objects import map_at
    from pergola.extension_api.cluster import Cluster
    from pergola.providers.aws.observe import observe
    from pergola.providers.aws.request import desired_of
    from pergola.providers.aws.resources.step import Work
    from pergola.providers.aws.state import read_state
    from pergola.runtime.failures import sentence_of

    cluster = Cluster.from_object(subject.cluster) if subject.cluster else None
    desired = desired_of(subject.infrastructure, cluster)
    state = read_state(map_at(subject.infrastructure, "status", "state"))
    try:
        snapshot = await observe(aws, desired, state)
    except ExceptionGroup as several:
        raise AwsCheckError(sentence_of(several)) from None
    return Work(aws=aws, desired=desired, state=state, snapshot=snapshot)


def infrastructures_in(objects: "list[JsonObject]") -> "list[JsonObject]":
    """Return the Infrastructures of a file."""
    return of_kind(objects, _EXTENSIONS, _INFRASTRUCTURE)


def workers_in(objects: "list[JsonObject]") -> "list[JsonObject]":
    """Return the Workers of a file."""
    return of_kind(objects, _EXTENSIONS, "Worker")


def _from_file(file: str, objects: "list[JsonObject]", aws_credentials: str) -> Subject:
    """Find the Infrastructure and what belongs to it in a file.

    Raises:
        ManifestFileError, AwsCheckError: an object is missing, or there are too many.
    """
    from pergola.api.objects import Key, name_of, namespace_of

    found = infrastructures_in(objects)
    if len(found) != 1:
        said = ", ".join(map(named, objects)) or "nothing"
        raise ManifestFileError(f"{file} must contain one Infrastructure, but contains {said}")
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
        raise AwsCheckError(f"{file} does not contain Secret {key}")
    return Subject(
        infrastructure, clusters[0] if clusters else None, _credentials(secret) if secret else None
    )


async def subject_in(client: "Client", key: "Key", aws_credentials: str = "") -> Subject:
    """Return the Infrastructure of a cluster, with the credentials that it names.

    Raises:
        AwsCheckError: no Secret is named.
        KubeError: it cannot be read.
    """
    from pergola.api.objects import GroupVersionKind, Key
    from pergola.cloud.aws import reader
    from pergola.extension_api.cluster import CLUSTER

    infrastructure = GroupVersionKind(_EXTENSIONS, "v1alpha1", _INFRASTRUCTURE)
    obj = await client.get(infrastructure, key)
    cluster = await reader(client)(CLUSTER, Key("", key.namespace))
    secret_key = _secret_key(aws_credentials, obj)
    secret = await client.get(SECRET, secret_key) if secret_key else None
    return Subject(obj, cluster, _credentials(secret) if secret else None)


def _secret_key(text: str, infrastructure: "JsonObject") -> "Key | None":
    """Return the key of the Secret with the credentials; None for the default chain."""
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
