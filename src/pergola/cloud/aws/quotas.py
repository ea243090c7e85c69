"""Request quotas of AWS accounts: rates below the limits, and fair turns.

AWS gives each account and region a token bucket per API. Buckets count tokens and adapt to
throttling; users wait in lines, which give them turns.
"""

import asyncio
import re
from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter

from pergola.api.objects import JsonObject
from pergola.cloud.errors import CloudError, Throttled

READS: Final = ("Describe", "Get", "List", "Search", "Lookup")
"""The prefixes of read-only operations."""


class Limit(NamedTuple):
    """A token bucket.

    Attributes:
        capacity: the number of requests that may be sent at once.
        refill: the number of requests per second after that.
    """

    capacity: float
    refill: float


class Slot(NamedTuple):
    """The bucket of a request.

    Attributes:
        name: its name within the service.
        is_global: whether all regions share it.
    """

    name: str
    limit: Limit
    is_global: bool = False


_EC2_READ: Final = Limit(100, 20)
_EC2_READ_OF_ALL: Final = Limit(50, 10)
_EC2_WRITE: Final = Limit(50, 5)
_ELB_READ: Final = Limit(40, 10)
_ELB_WRITE: Final = Limit(20, 3)
_ROUTE_53: Final = Limit(5, 5)
_S3: Final = Limit(3500, 3500)
_EC2_OWN: Final = {
    Limit(100, 10): "CreateTags DeleteTags",
    Limit(100, 5): "CreateNetworkInterface DeleteNetworkInterface TerminateInstances",
    Limit(10, 1): """
        AssociateNatGatewayAddress CreateNatGateway DeleteNatGateway DisassociateNatGatewayAddress
    """,
    Limit(5, 1): "CreateSubnetCidrReservation DeleteSubnetCidrReservation",
    Limit(5, 2): "RunInstances StartInstances",
    Limit(4, 0.3): "CreateVpcEndpoint DeleteVpcEndpoints ModifyVpcEndpoint",
}
_EC2: Final = {name: limit for limit, names in _EC2_OWN.items() for name in names.split()}
_EC2_SMALLER_IF_UNFILTERED: Final = frozenset(
    (
        "DescribeInstanceStatus",
        "DescribeInstances",
        "DescribeNetworkInterfaces",
        "DescribeSecurityGroups",
        "DescribeSnapshots",
        "DescribeVolumes",
    )
)
_FILTERS: Final = ("Filters", "MaxResults", "NextToken")
_GLOBAL: Final = ("iam", "route53")


def slot_of(service: str, operation: str, parameters: dict[str, object]) -> Slot:
    """Return the bucket that a request takes a token from."""
    is_read = operation.startswith(READS)
    if service in ("elb", "elbv2"):
        return Slot("reads", _ELB_READ) if is_read else Slot("writes", _ELB_WRITE)
    if service == "route53":
        return Slot("all", _ROUTE_53, is_global=True)
    if service == "s3":
        return Slot("all", _S3)
    if service == "ec2" and operation in _EC2_SMALLER_IF_UNFILTERED:
        is_filtered = any(parameters.get(name) for name in _FILTERS)
        name = operation if is_filtered else f"{operation} without filter"
        return Slot(name, _EC2_READ if is_filtered else _EC2_READ_OF_ALL)
    limit = _EC2.get(operation, _EC2_READ if is_read else _EC2_WRITE)
    return Slot(operation, limit, is_global=service in _GLOBAL)


SHARE: Final = 0.8
"""The maximum share of a quota that a process uses."""
_FIRST: Final = 0.5
"""The initial fill level of a bucket: an earlier process may have emptied it."""
_LEAST_BURST: Final = 4.0
_SLOWER: Final = 0.5
_SLOWEST: Final = 1 / 32
_ONE_BURST_SECONDS: Final = 1.0
_RECOVERY: Final = 0.02
"""The share of the full rate that is regained in each second with successful requests."""


class Bucket:
    """The tokens of one API; times are seconds on a monotonic clock.

    Attributes:
        throttled: AWS's last refusal; None at full rate.
    """

    def __init__(self, limit: Limit, now: float) -> None:
        self.throttled: Throttled | None = None
        self._capacity = max(1.0, limit.capacity * SHARE)
        self._refill = limit.refill * SHARE
        self._factor = 1.0
        self._tokens = min(self._capacity, max(_LEAST_BURST, self._capacity * _FIRST))
        self._at = now
        self._throttled_at = -_ONE_BURST_SECONDS
        self._risen_at = now

    @property
    def rate(self) -> float:
        """The tokens that are refilled per second."""
        return self._refill * self._factor

    def wait(self, now: float) -> float:
        """Return the seconds until a token is available."""
        return max(0.0, 1.0 - self._filled(now)) / self.rate

    def take(self, now: float) -> None:
        """Take a token."""
        self._tokens = self._filled(now) - 1.0
        self._at = now

    def give_back(self) -> None:
        """Return the token of a request that was not sent."""
        self._tokens = min(self._capacity, self._tokens + 1.0)

    def learn(self, outcome: CloudError | None, now: float) -> None:
        """Halve the rate after throttling, and raise it slowly after success.

        Refusals of requests that were sent concurrently count once.
        """
        if isinstance(outcome, Throttled):
            self._slow_down(outcome, now)
        elif outcome is None and self.throttled is not None:
            self._rise(now)

    def _slow_down(self, refusal: Throttled, now: float) -> None:
        self.throttled = refusal
        if now - self._throttled_at < _ONE_BURST_SECONDS:
            return
        self._tokens, self._at = min(0.0, self._filled(now)), now
        self._factor = max(_SLOWEST, self._factor * _SLOWER)
        self._throttled_at = self._risen_at = now

    def _rise(self, now: float) -> None:
        self._tokens, self._at = self._filled(now), now
        self._factor = min(1.0, self._factor + _RECOVERY * (now - self._risen_at))
        self._risen_at = now
        if self._factor == 1.0:
            self.throttled = None

    def _filled(self, now: float) -> float:
        return min(self._capacity, self._tokens + (now - self._at) * self.rate)


_Turn = asyncio.Future[None]
_SOON: Final = 1e-6
"""Seconds; otherwise a timer may fire just before the token is complete."""


class Line:
    """A bucket and the requests that wait for it.

    Users take turns with one request each: a user with many requests does not delay others.

    Args:
        of: the call for errors, such as `ec2 DescribeVpcs in eu-west-1`.
    """

    def __init__(self, bucket: Bucket, of: str) -> None:
        self._bucket = bucket
        self._of = of
        self._used_at = asyncio.get_running_loop().time()
        self._waiting: dict[str, deque[_Turn]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def backlog(self) -> float:
        """The seconds that a new user's request would wait if all other users had a turn first."""
        now = asyncio.get_running_loop().time()
        return self._bucket.wait(now) + len(self._waiting) / self._bucket.rate

    def is_idle(self, since: float) -> bool:
        """Return whether the queue is empty, and has had no request since a time."""
        return not self._waiting and self._used_at < since

    async def turn(self, user: str, until: float) -> None:
        """Wait for a token.

        Args:
            until: a time on the event loop's clock; a request that cannot have its turn by then
                fails at once.

        Raises:
            Throttled: no token is available in time; the error is AWS's last refusal, or our own.
        """
        loop = asyncio.get_running_loop()
        now = self._used_at = loop.time()
        if not self._waiting and not self._bucket.wait(now):
            self._bucket.take(now)
            return
        if now + self._expected(user, now) > until:
            raise self._refusal()
        mine = loop.create_future()
        self._waiting.setdefault(user, deque()).append(mine)
        self._arm()
        try:
            async with asyncio.timeout_at(until):
                await mine
        except BaseException as error:
            self._leave(user, mine)
            if isinstance(error, TimeoutError):
                raise self._refusal() from None
            raise

    def learn(self, outcome: CloudError | None) -> None:
        """Adapt the rate to the outcome of a request."""
        self._used_at = asyncio.get_running_loop().time()
        self._bucket.learn(outcome, self._used_at)

    def _expected(self, user: str, now: float) -> float:
        """Return the seconds until a new request of a user has its turn."""
        rounds = len(self._waiting.get(user, ())) + 1
        before = sum(
            min(len(turns), rounds) for name, turns in self._waiting.items() if name != user
        )
        return self._bucket.wait(now) + (before + rounds - 1) / self._bucket.rate

    def _refusal(self) -> Throttled:
        return self._bucket.throttled or Throttled(
            f"{self._of}: too many requests of this account wait for the rate that AWS allows; it "
            "is tried again later",
            code="RequestLimitExceeded",
            call=self._of,
        )

    def _leave(self, user: str, mine: _Turn) -> None:
        """Remove a request that no longer waits; return its token if it was not used."""
        if mine.done() and not mine.cancelled():
            self._bucket.give_back()
            return
        turns = self._waiting.get(user)
        if turns is not None and mine in turns:
            turns.remove(mine)
            if not turns:
                del self._waiting[user]

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            loop = asyncio.get_running_loop()
            wait = self._bucket.wait(loop.time()) + _SOON
            self._timer = loop.call_later(wait, self._serve)

    def _serve(self) -> None:
        """Give tokens to users in turn, while there are any."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._waiting and not self._bucket.wait(now):
            user = next(iter(self._waiting))
            turns = self._waiting.pop(user)
            mine = turns.popleft()
            if turns:
                self._waiting[user] = turns  # at the end
            if not mine.done():
                self._bucket.take(now)
                mine.set_result(None)
        self._arm()


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
_FORGOTTEN_SECONDS: Final = 2.0 * 24 * 3600
"""The time after which unused queues and identities are forgotten; Shoots are reconciled daily."""


@dataclass(slots=True)
class _Known:
    """The account of an identity, and when it was last asked for."""

    account: str
    used_at: float


class Quotas:
    """The queues for the APIs of all accounts; a process needs one.

    Args:
        registry: for metrics; None for none.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._lines: dict[_Owner, Line] = {}
        self._accounts: dict[str, _Known] = {}
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
                self._forget()
                now = asyncio.get_running_loop().time()
                self._accounts[user.identity] = _Known(found[1], now)

    def _line(
        self, user: User, region: str, service: str, operation: str, parameters: JsonObject
    ) -> Line:
        slot = slot_of(service, operation, parameters)
        where = "" if slot.is_global else region
        owner = _Owner(self._account(user), where, service, slot.name)
        line = self._lines.get(owner)
        if line is None:
            self._forget()
            bucket = Bucket(slot.limit, asyncio.get_running_loop().time())
            line = self._lines[owner] = Line(bucket, f"{service} {operation} in {region}")
        return line

    def _account(self, user: User) -> str:
        if arn := _ACCOUNT.match(user.identity):
            return arn[1]
        known = self._accounts.get(user.identity)
        if known is None:
            return user.identity
        known.used_at = asyncio.get_running_loop().time()
        return known.account

    def _forget(self) -> None:
        """Forget deleted accounts and rotated keys: what was not used for a long time."""
        since = asyncio.get_running_loop().time() - _FORGOTTEN_SECONDS
        lines, accounts = self._lines.items(), self._accounts.items()
        self._lines = {owner: line for owner, line in lines if not line.is_idle(since)}
        self._accounts = {name: known for name, known in accounts if known.used_at > since}
