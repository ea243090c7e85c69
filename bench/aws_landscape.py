"""Many Infrastructures of one account in one process, while AWS throttles.

AWS's side has the token buckets of its documentation, minus the assumed use by others. The floor is
the time that the busiest bucket needs for the requests: no client can be faster. In the last row,
every tenth Infrastructure is in another account, which should not wait for the large one.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from aiohttp import web

from pergola.cloud.aws import AwsClient, Credentials, Quotas
from pergola.cloud.aws.quotas import User, slot_of
from pergola.cloud.aws.services import Services
from pergola.cloud.errors import Throttled
from pergola.extension_api.errors import RequeueAfter
from pergola.flow import State
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.flows.run import name_zones, run_steps
from pergola.providers.aws.observe import observe
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.turns import check_turn
from pergola.sandbox.aws.answers import call_of
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import service_of
from tests.support.aws.site import REGION

HEADINGS: Final = (
    "landscape",
    "requests",
    "each",
    "target",
    "refused",
    "share refused",
    "seconds",
    "floor",
    "ratio",
    "last user / median",
    "median of other account / all",
)
LEFT: Final = 0.1
_LARGE: Final = "test"
_OTHER: Final = "other"
"""The keys of two accounts; moto has only one, so both find all resources."""
_TENTH: Final = 10
_WORKERS: Final = 5
"""The number of Infrastructures reconciled concurrently, as in the product."""


class SharedQuota(CorrectedAws):
    """An AWS that throttles as documented.

    Attributes:
        left: the part of each quota that others do not use; None for an AWS that never throttles.
        refused: the number of refused requests.
    """

    left: float | None = None

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.refused = 0
        self._was_empty = False
        self.answered: Counter[tuple[str, str]] = Counter()
        self._tokens: dict[tuple[str, str], tuple[float, float]] = {}

    def begin(self, left: float | None, *, empty: bool = False) -> None:
        """Fill or empty all buckets, and reset the count."""
        self.left, self.refused, self._was_empty = left, 0, empty
        self.answered.clear()
        now = asyncio.get_running_loop().time()
        self._tokens = dict.fromkeys(self._tokens, (0.0, now)) if empty else {}

    def floor(self) -> float:
        """Return the seconds that the busiest bucket needs for the requests that it granted."""
        if self.left is None:
            return 0.0
        return max(self._seconds(name, number) for (_, name), number in self.answered.items())

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        call = call_of(service_of(request), request, body)
        account = request.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        if self.left is not None and not self._grant(account, f"{call.service} {call.operation}"):
            self.refused += 1
            text = "<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors>"
            return web.Response(status=503, text=f"{text}</Response>", content_type="text/xml")
        return await super()._pass(request)

    def _seconds(self, name: str, number: int) -> float:
        capacity, refill = self._limit(name)
        return (number - (0 if self._was_empty else capacity)) / refill

    def _limit(self, name: str) -> tuple[float, float]:
        service, _, operation = name.partition(" ")
        limit = slot_of(service, operation, {"Filters": True}).limit
        return limit.capacity * (self.left or 1), limit.refill * (self.left or 1)

    def _grant(self, account: str, name: str) -> bool:
        now, bucket = asyncio.get_running_loop().time(), (account, name)
        capacity, refill = self._limit(name)
        tokens, at = self._tokens.get(bucket, (capacity, now))
        tokens = min(capacity, tokens + (now - at) * refill)
        self._tokens[bucket] = (tokens - 1 if tokens >= 1 else tokens, now)
        if tokens >= 1:
            self.answered[bucket] += 1
        return tokens >= 1


class Member(NamedTuple):
    """An Infrastructure with its state."""

    name: str
    desired: Desired
    state: State


class Landscape:
    """Infrastructures, and the process that reconciles them.

    Attributes:
        is_split: whether every tenth one is in another account.
    """

    is_split = False

    def __init__(self, aws: SharedQuota, members: list[Member]) -> None:
        self._aws = aws
        self._members = members
        self._random = random.Random(1)  # noqa: S311 - spreads runs
        self._services = {
            key: Services(REGION, Credentials(key, "test"), aws.url) for key in (_LARGE, _OTHER)
        }
        self.restart()

    def restart(self) -> None:
        """Forget the learned rates, like a new process."""
        self._quotas = Quotas()

    async def close(self) -> None:
        """Close the connections."""
        for services in self._services.values():
            await services.close()

    async def create(self) -> None:
        """Create all Infrastructures, without throttling."""
        self._aws.begin(None)
        await self._each(self._create)

    async def observe(
        self, name: str, left: float, target: str, *, empty: bool = False
    ) -> tuple[str, ...]:
        """Reconcile all Infrastructures at once, as after a restart; return a row."""
        self._aws.begin(left, empty=empty)
        self._aws.taken()
        loop = asyncio.get_running_loop()
        began = loop.time()
        times = [time - began for time in await self._each(self._observe)]
        ended, other = sorted(times), sorted(times[::_TENTH]) if self.is_split else []
        answered, refused = len(self._aws.taken()), self._aws.refused
        requests, floor = answered + refused, self._aws.floor()
        return (
            name,
            str(requests),
            f"{answered / len(ended):.1f}",
            target,
            str(refused),
            f"{refused / requests:.1%}",
            f"{ended[-1]:.1f}",
            f"{max(0.0, floor):.1f}",
            f"{ended[-1] / floor:.2f}" if floor > 1 else "-",
            f"{ended[-1] / ended[len(ended) // 2]:.1f}",
            f"{other[len(other) // 2] / ended[len(ended) // 2]:.2f}" if other else "",
        )

    async def _each(self, act: Callable[[AwsClient, Member], Awaitable[None]]) -> list[float]:
        turn, loop = asyncio.Semaphore(_WORKERS), asyncio.get_running_loop()

        async def one(member: Member) -> float:
            while True:
                async with turn:
                    client = self._client(member)
                    try:
                        check_turn(client, self._random)
                        await act(client, member)
                        return loop.time()
                    except RequeueAfter as later:
                        pause = later.seconds
                    except Throttled:
                        pause = 5.0
                await asyncio.sleep(pause)

        return await asyncio.gather(*map(one, self._members))

    def _client(self, member: Member) -> AwsClient:
        is_other = self.is_split and int(member.name) % _TENTH == 0
        account = _OTHER if is_other else _LARGE
        return AwsClient(
            REGION,
            services=self._services[account],
            quotas=self._quotas,
            user=User(account, member.name),
        )

    async def _observe(self, client: AwsClient, member: Member) -> None:
        await observe(client, member.desired, member.state)

    async def _create(self, client: AwsClient, member: Member) -> None:
        name_zones(member.desired, member.state)
        snapshot = await observe(client, member.desired, member.state)
        work = Work(
            aws=client,
            desired=member.desired,
            state=member.state,
            snapshot=snapshot,
            poll_seconds=0.05,
        )

        async def nothing(_: object) -> None:
            """Neither save nor report."""

        steps = reconcile_steps(member.desired)
        await run_steps("create", steps, work, write=nothing, report=nothing)


async def rows(server: str, desired: list[Desired]) -> list[tuple[str, ...]]:
    """Return the measurements of a landscape."""
    async with SharedQuota(server) as aws:
        members = [Member(str(number), each, State({})) for number, each in enumerate(desired)]
        landscape, number = Landscape(aws, members), len(members)
        try:
            await landscape.create()
            landscape.restart()
            found = [await landscape.observe(f"{number} looked at", 1.0, "≤ 14 each")]
            name = f"{number}, others leave {LEFT:.0%}"
            found.append(await landscape.observe(name, LEFT, "≤ 14, few refused"))
            landscape.restart()
            name = f"{number}, restart, buckets empty"
            found.append(await landscape.observe(name, LEFT, "≤ 14, few refused", empty=True))
            landscape.restart()
            landscape.is_split = True
            name = f"{number}, a tenth in another account"
            found.append(await landscape.observe(name, LEFT, "≤ 14, few refused"))
        finally:
            await landscape.close()
    return found
