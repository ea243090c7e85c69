"""AWS as the source of networks: `infrastructure.pergola.dev/source: aws` (spec 50 §5, step 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from pergola.api.cluster_api import CLUSTER_NAME, INFRASTRUCTURE_GROUP, SOURCE
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    namespace_of,
)
from pergola.cloud.aws import AwsClients, Observer, Place, Retry, reader, unobserved
from pergola.cloud.errors import CloudError, CredentialsInvalid, Unauthorized
from pergola.externally_managed.aws.checks import open_rules, templates_without_groups, unused_ipv6
from pergola.externally_managed.aws.decide import decide_network
from pergola.externally_managed.aws.desired import Desired, desired_of
from pergola.externally_managed.aws.observe import Observed, observe
from pergola.externally_managed.description import Network
from pergola.externally_managed.mapping import owner_cluster
from pergola.externally_managed.sources import INVALID, SourceProblem
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import ReconcileError

AWS: Final = "aws"
"""The value of the annotation."""
AWS_CLUSTER: Final = GroupKind(INFRASTRUCTURE_GROUP, "AWSCluster")
"""The kind that is filled from AWS."""
CREDENTIALS: Final = "CredentialsInvalid"
FORBIDDEN: Final = "CredentialsInsufficient"
"""Reasons of the Ready condition, besides those of all sources."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Settings of requests to AWS.

    Attributes:
        credentials: the Secret with an identity's keys, or its role and token; None for AWS's
            default chain: the environment, a role with a token file (IRSA), the instance's role.
        namespaces: the namespaces whose AWSClusters may use the credentials; all if empty.
        endpoint_url: the endpoint of all services, instead of AWS's own.
        retry: the retries of requests; the client's default if None.
    """

    credentials: Key | None = None
    namespaces: tuple[str, ...] = ()
    endpoint_url: str = ""
    retry: Retry | None = None


def asks_aws(obj: JsonObject) -> bool:
    """Return whether AWS is the source of an InfraCluster."""
    source = annotations_of(obj).get(SOURCE, "").partition("/")[0]
    return source.lower() == AWS and GroupVersionKind.of(obj).group_kind == AWS_CLUSTER


class AwsSource:
    """Reads the networks of AWSClusters from AWS; close it after use.

    Args:
        observe: called for every request to AWS.
    """

    def __init__(
        self,
        client: Client,
        settings: AwsSettings | None = None,
        *,
        observe: Observer = unobserved,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._settings = settings or AwsSettings()
        self._clock = clock or SystemClock()
        self._clients = AwsClients(
            endpoint_url=self._settings.endpoint_url, retry=self._settings.retry, observe=observe
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections to AWS."""
        await self._clients.close()

    async def describe(self, obj: JsonObject) -> Network:
        """Return the network of an AWSCluster.

        Raises:
            SourceProblem: the AWSCluster, the credentials or AWS's answers are not usable.
            ReconcileError: AWS has a temporary problem, or throttles; retry.
        """
        self._check_namespace(obj)
        desired = desired_of(obj)
        return decide_network(obj, await self._observe(desired), desired)

    async def warnings(self, obj: JsonObject) -> list[str]:
        """Return hints that apply even if the network is complete.

        They are rules that allow traffic from everywhere, IPv6 that machines do not use, and
        machine templates without security groups.

        Raises:
            SourceProblem: the AWSCluster, the credentials or AWS's answers are not usable.
            ReconcileError: AWS has a temporary problem, or throttles; retry.
        """
        self._check_namespace(obj)
        desired = desired_of(obj)
        observed = await self._observe(desired)
        templates = await machine_templates(self._client, obj)
        return [
            *open_rules(observed, desired),
            *unused_ipv6(observed, desired),
            *templates_without_groups(templates),
        ]

    def _check_namespace(self, obj: JsonObject) -> None:
        allowed, namespace = self._settings.namespaces, namespace_of(obj)
        if allowed and namespace not in allowed:
            raise SourceProblem(
                FORBIDDEN,
                f"AWSClusters in namespace {namespace} may not use the manager's credentials for "
                "AWS: add it to --aws-namespaces, or describe the network in a ConfigMap",
            )

    async def _observe(self, desired: Desired) -> Observed:
        try:
            place = Place(self._settings.credentials, desired.region)
            async with self._clients.use(reader(self._client), place, self._clock.now()) as aws:
                return await observe(aws, desired)
        except CredentialsInvalid as error:
            raise SourceProblem(CREDENTIALS, str(error)) from None
        except Unauthorized as error:
            raise SourceProblem(FORBIDDEN, str(error)) from None
        except CloudError as error:
            if error.is_transient:
                raise ReconcileError(str(error)) from None
            raise SourceProblem(INVALID, str(error)) from None


async def machine_templates(client: Client, obj: Mapping[str, Any]) -> list[JsonObject]:
    """Return the AWSMachineTemplates of an AWSCluster's Cluster; none if the kind is not served."""
    owner = owner_cluster(obj)
    if owner is None:
        return []
    gvk = GroupVersionKind.of(obj)._replace(kind="AWSMachineTemplate")
    try:
        return await client.list(gvk, owner.namespace, labels=f"{CLUSTER_NAME}={owner.name}")
    except UnknownKind:
        return []
