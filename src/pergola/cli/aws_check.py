"""`pergola aws check`: is an account as a cluster needs it, and what repairs it if not."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from cyclopts import Parameter

from pergola.cli.aws_file import AwsFileError, named, of_kind, read_objects

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.cloud.aws import Credentials
    from pergola.extensions.aws.live import Finding
    from pergola.kube.client import Client

ENVIRONMENT: Final = "environment"
_EXTENSIONS: Final = "extensions.gardener.cloud"
_INFRASTRUCTURE: Final = "Infrastructure"

Output = Annotated[Literal["text", "json"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]


class AwsCheckError(Exception):
    """The command cannot do what it was asked for; the text says why and what to do."""


class Asked(NamedTuple):
    """What is to be checked, and as whom.

    Attributes:
        cluster: the Cluster with its Shoot; None if there is none.
        credentials: None for AWS's usual chain.
    """

    infrastructure: "JsonObject"
    cluster: "JsonObject | None"
    credentials: "Credentials | None"


def check(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Namespace = "default",
    aws_credentials: str = "",
    endpoint_url: str = "",
    output: Output = "text",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Check the AWS account that an Infrastructure is for, and show what repairs it.

    Only reads. What forbids to go on is an error, the rest a hint; below each is the line of the
    AWS CLI that repairs it. Exits with 1 if there is an error.

    Parameters
    ----------
    file
        A manifest with an Infrastructure; - reads it from the standard input. A Cluster beside it
        tells ranges and IP families, a Secret beside it the credentials.
    name
        An Infrastructure in a cluster, in place of a file.
    namespace
        Its namespace.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or `environment` for AWS's
        usual chain. Without it the Secret that the Infrastructure names; with a file that does not
        hold it, AWS's usual chain.
    endpoint_url
        Where all services of AWS are, if not at AWS.
    output
        `text` for people, `json` for programs.
    kubeconfig
        The seed, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    if bool(file) == bool(name):
        raise AwsCheckError("give either --file or --name")

    async def main() -> "list[Finding]":
        asked = (
            from_file(file, aws_credentials)
            if file
            else await from_cluster(name, namespace, aws_credentials, kubeconfig, context)
        )
        return await _look(asked, endpoint_url)

    found = asyncio.run(main())
    if output == "json":
        _print_json(found)
    else:
        _print_text(found)
    if any(finding.blocks for finding in found):
        sys.exit(1)


async def _look(asked: Asked, endpoint_url: str) -> "list[Finding]":
    from pergola.api.objects import map_at
    from pergola.cloud.aws import AwsClient
    from pergola.extensions.aws.live import check_rules, findings
    from pergola.extensions.aws.observe import observe
    from pergola.extensions.aws.request import wanted_of
    from pergola.extensions.aws.state import read_state
    from pergola.extensions.cluster import Cluster
    from pergola.flow.errors import sentence_of

    cluster = Cluster.from_object(asked.cluster) if asked.cluster else None
    if cluster is None:
        print("no Cluster beside it: checked as IPv4, and against no ranges", file=sys.stderr)
    wanted = wanted_of(asked.infrastructure, cluster)
    state = read_state(map_at(asked.infrastructure, "status", "state"))
    async with AwsClient(
        wanted.region, credentials=asked.credentials, endpoint_url=endpoint_url
    ) as aws:
        try:
            snapshot = await observe(aws, wanted, state)
        except ExceptionGroup as several:
            raise AwsCheckError(sentence_of(several)) from None
    return [*findings(wanted, snapshot), *check_rules(wanted, snapshot)]


def from_file(file: str, aws_credentials: str) -> Asked:
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


async def from_cluster(
    name: str,
    namespace: str,
    aws_credentials: str,
    kubeconfig: Path | None,
    context: str | None,
) -> Asked:
    """What an Infrastructure in a cluster asks.

    Raises:
        AwsCheckError: its Secret is not named.
        KubeError: it cannot be read.
    """
    from pergola.api.objects import GroupVersionKind, Key
    from pergola.extensions.cluster import CLUSTER
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    infrastructure = GroupVersionKind(_EXTENSIONS, "v1alpha1", _INFRASTRUCTURE)
    async with Client.connect(load(kubeconfig, context)) as client:
        obj = await client.get(infrastructure, Key(namespace, name))
        cluster = await _get(client, CLUSTER, Key("", namespace))
        key = _secret_key(aws_credentials, obj)
        secret = await client.get(GroupVersionKind("", "v1", "Secret"), key) if key else None
    return Asked(obj, cluster, _credentials(secret) if secret else None)


async def _get(client: "Client", gvk: "GroupVersionKind", key: "Key") -> "JsonObject | None":
    from pergola.kube.errors import NotFound

    try:
        return await client.get(gvk, key)
    except NotFound:
        return None


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
            f'"{text or named}" is no NAMESPACE/NAME of a Secret; give --aws-credentials'
        )
    return Key(namespace, name)


def _credentials(secret: "JsonObject") -> "Credentials":
    from base64 import b64decode

    from pergola.api.objects import Key, map_at
    from pergola.cloud.aws import credentials_of

    data = {key: b64decode(value) for key, value in map_at(secret, "data").items()}
    data |= {key: value.encode() for key, value in map_at(secret, "stringData").items()}
    return credentials_of(data, f"Secret {Key.of(secret)}")


def _print_text(found: "list[Finding]") -> None:
    for finding in found:
        print(f"{'error' if finding.blocks else 'hint'}: {finding}")
        print(f"  {finding.fix}")
    if not any(finding.blocks for finding in found):
        print("AWS is as the cluster needs it" if not found else "nothing forbids to go on")


def _print_json(found: "list[Finding]") -> None:
    import orjson

    rows = [
        {**finding.cause._asdict(), "fix": finding.fix, "blocks": finding.blocks}
        for finding in found
    ]
    print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
