"""AWS's APIs in one region, with one identity.

    async with AwsClient("eu-west-1") as aws:
        vpcs = await aws.pages("ec2", "DescribeVpcs", "Vpcs")

Operations and parameters have the names in AWS's documentation; answers are plain JSON, with times
as datetimes. The underlying library is loaded with the first call, which takes most of a second.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

from pergola import tracing
from pergola.api.objects import JsonObject
from pergola.cloud.aws.credentials import Credentials
from pergola.cloud.aws.extra import require_library
from pergola.cloud.aws.failures import failure
from pergola.cloud.aws.parameters import checked
from pergola.cloud.aws.quotas import UNSHARED, Line, Quotas, User
from pergola.cloud.aws.retry import Retry
from pergola.cloud.aws.services import Services
from pergola.cloud.errors import CloudError
from pergola.runtime.retrying import retrying

Observer = Callable[[str, str, float, str], None]
"""Called for every attempt with service, operation, seconds, and `success` or AWS's error code."""
Sleep = Callable[[float], Awaitable[None]]

SUCCESS: Final = "success"
# The names of the pagination token in requests and responses.
_PAGES: Final = {
    "elb": ("Marker", "NextMarker"),
    "elbv2": ("Marker", "NextMarker"),
    "iam": ("Marker", "Marker"),
    "efs": ("Marker", "NextMarker"),
    "route53": ("Marker", "NextMarker"),
}
_PAGES_OTHERS: Final = ("NextToken", "NextToken")


def unobserved(service: str, operation: str, seconds: float, outcome: str) -> None:
    """Ignore a request: the default observer."""


class AwsClient:
    """A client of all AWS services in one region, with one identity.

    All methods raise the errors of `pergola.cloud.errors`, transient ones only after retries.

    Args:
        credentials: for the identity; AWS's default credential chain if None.
        endpoint_url: for all services, instead of AWS's own; for tests and private endpoints.
        observe: called for every attempt.
        services: shared with other clients; None opens separate connections.
        quotas: the rates of the process; None for separate rates.
        user: the user whose turns the requests take.

    Attributes:
        services: the connections.
    """

    def __init__(
        self,
        region: str,
        *,
        credentials: Credentials | None = None,
        endpoint_url: str = "",
        observe: Observer = unobserved,
        retry: Retry | None = None,
        sleep: Sleep = asyncio.sleep,
        random_source: random.Random | None = None,
        services: Services | None = None,
        quotas: Quotas | None = None,
        user: User = UNSHARED,
    ) -> None:
        require_library()
        self.region = region
        self.services = services or Services(region, credentials, endpoint_url)
        self._quotas = quotas or Quotas()
        self._user = user
        self._observe = observe
        self._retry = retry or Retry()
        self._sleep = sleep
        self._random = random_source or random.Random()  # noqa: S311 - spreads retries
        self._account: str | None = None

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
        """Close all connections."""
        await self.services.close()

    @property
    def backlog(self) -> float:
        """The maximum wait of an EC2 read in seconds, depending on throttling of the account."""
        return self._quotas.backlog(self._user, self.region)

    async def call(self, service: str, operation: str, **parameters: Any) -> JsonObject:
        """Send one request and return AWS's answer.

        Args:
            service: such as `ec2`, `elbv2`, `sts`.
            operation: such as `DescribeVpcs`.

        Raises:
            CloudError: AWS refused, or did not answer several attempts.
        """
        parameters = checked(f"{service} {operation} in {self.region}", operation, parameters)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._retry.total_seconds
        attempt = 1
        with retrying() as failed:
            while True:
                line = await self._quotas.turn(
                    self._user, self.region, service, operation, parameters, end
                )
                try:
                    return await self._attempt(line, service, operation, parameters)
                except CloudError as error:
                    wait = self._retry.wait(error, operation, attempt, self._random)
                    if wait is None or loop.time() + wait > end:
                        raise
                    failed(error)
                await self._sleep(wait)
                attempt += 1

    async def pages(
        self, service: str, operation: str, items: str, **parameters: Any
    ) -> list[JsonObject]:
        """Return the items of all pages of an answer.

        Args:
            items: the name of the items in the answer, such as `Vpcs`.

        Raises:
            CloudError: AWS refused, or did not answer several attempts.
        """
        asked, answered = _PAGES.get(service, _PAGES_OTHERS)
        found: list[JsonObject] = []
        while True:
            answer = await self.call(service, operation, **parameters)
            found += answer.get(items) or []
            mark = answer.get(answered)
            if not mark:
                return found
            parameters[asked] = mark

    async def account(self) -> str:
        """Return the account number of the credentials, which is requested once.

        Raises:
            CloudError: AWS refused.
        """
        if self._account is None:
            answer = await self.call("sts", "GetCallerIdentity")
            self._account = str(answer.get("Account", ""))
        return self._account

    async def _attempt(
        self, line: Line, service: str, operation: str, parameters: JsonObject
    ) -> JsonObject:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            with tracing.cloud_request(service, operation, self.region):
                answer = await self.services.ask(service, operation, parameters)
        except Exception as error:
            refused = failure(error, service, operation, self.region)
            if refused is None:
                raise
            self._observe(service, operation, loop.time() - began, refused.code)
            line.learn(refused)
            raise refused from None
        self._observe(service, operation, loop.time() - began, SUCCESS)
        line.learn(None)
        if service == "iam":
            self._quotas.learn_account(self._user, answer)
        return answer
