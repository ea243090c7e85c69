"""The quotas of all accounts used by a process."""

import asyncio
import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter

from pergola.api.objects import JsonObject
from pergola.cloud.aws.quotas.bucket import Bucket
from pergola.cloud.aws.quotas.limits import READS, slot_of
from pergola.cloud.aws.quotas.line import Line

_ACCOUNT: Final = re.compile(r"arn:[a-z-]+:iam::(\d+):")


class _Owner(NamedTuple):
    """The owner of a bucket."""

    account: str
    region: str
    service: str
    name: str


@dataclass(frozen=True, slots=True)
class User:
    """A user who shares a quota.

    Attributes:
        identity: the owner of the credentials: the id of a key, or the ARN of a role.
        name: the name for turns; each name has its own.
    """

    identity: str = ""
    name: str = ""


UNSHARED: Final = User()
"""The user of a client with a quota of its own."""


class Quotas:
    """The queues for the APIs of all accounts; a process needs one.

    Args:
        registry: for metrics; None for none.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._lines: dict[_Owner, Line] = {}
        self._accounts: dict[str, str] = {}
        self._waited = Counter(
            "pergola_aws_quota_wait_seconds",
            "How long requests waited for a rate that AWS allows",
            ["service"],
            registry=registry,
        )

    async def turn(
        self,
        user: User,
        region: str,
        service: str,
        operation: str,
        parameters: JsonObject,
        until: float,
    ) -> Line:
        """Wait until a request may be sent; return its line, to be notified of the outcome.

        Args:
            until: a time on the event loop's clock.

        Raises:
            Throttled: it may not be sent in time.
        """
        line = self._line(user, region, service, operation, parameters)
        began = asyncio.get_running_loop().time()
        try:
            await line.turn(user.name, until)
        finally:
            waited = asyncio.get_running_loop().time() - began
            if waited:
                self._waited.labels(service).inc(waited)
        return line

    def backlog(self, user: User, region: str) -> float:
        """Return the wait in seconds of a user for EC2's busiest read in a region."""
        account = self._account(user)
        waits = [
            line.backlog
            for owner, line in self._lines.items()
            if owner[:3] == (account, region, "ec2") and owner.name.startswith(READS)
        ]
        return max(waits, default=0.0)

    def learn_account(self, user: User, answer: JsonObject) -> None:
        """Learn the account of a user from an answer of IAM.

        Keys of one account share its quota, but their ids do not reveal the account.
        """
        if user.identity in self._accounts:
            return
        for thing in answer.values():
            arn = thing.get("Arn") if isinstance(thing, dict) else None
            if isinstance(arn, str) and (found := _ACCOUNT.match(arn)):
                self._accounts[user.identity] = found[1]

    def _line(
        self, user: User, region: str, service: str, operation: str, parameters: JsonObject
    ) -> Line:
        slot = slot_of(service, operation, parameters)
        where = "" if slot.is_global else region
        owner = _Owner(self._account(user), where, service, slot.name)
        line = self._lines.get(owner)
        if line is None:
            bucket = Bucket(slot.limit, asyncio.get_running_loop().time())
            line = self._lines[owner] = Line(bucket, f"{service} {operation} in {region}")
        return line

    def _account(self, user: User) -> str:
        arn = _ACCOUNT.match(user.identity)
        return arn[1] if arn else self._accounts.get(user.identity, user.identity)
