"""Rates of requests to AWS and turns of users, under virtual time."""

import asyncio
from collections import Counter

import pytest

from pergola.cloud.aws.quotas import SHARE, Bucket, Limit, Quotas, User, slot_of
from pergola.cloud.errors import NotFound, Throttled

pytestmark = pytest.mark.looptime(start=0)

FOREVER = 1e9
REGION = "eu-west-1"
SLOW_DOWN = Throttled("slow down")


class Account:
    """AWS's side: a token bucket per operation, as documented, which others also use."""

    def __init__(self, taken_by_others: float = 0.0) -> None:
        self._taken = taken_by_others
        self._tokens: dict[str, tuple[float, float]] = {}
        self.throttled = 0
        self.times: list[float] = []

    def ask(self, service: str, operation: str) -> Throttled | None:
        now = asyncio.get_running_loop().time()
        limit = slot_of(service, operation, {}).limit
        tokens, at = self._tokens.get(operation, (limit.capacity, now))
        refill = limit.refill - self._taken
        tokens = min(limit.capacity, tokens + (now - at) * refill)
        self._tokens[operation] = (max(0.0, tokens - 1), now)
        self.times.append(now)
        if tokens >= 1:
            return None
        self.throttled += 1
        return SLOW_DOWN


async def send(
    quotas: Quotas, user: User, account: Account, operation: str, until: float = FOREVER
) -> float:
    """Send until AWS accepts the request, and return the time."""
    while True:
        line = await quotas.turn(user, REGION, "ec2", operation, {}, until)
        refused = account.ask("ec2", operation)
        line.learn(refused)
        if refused is None:
            return asyncio.get_running_loop().time()


async def landscape(
    quotas: Quotas, users: int, reads: int, account: Account, identity: str = "AKIA1"
) -> dict[str, float]:
    """Let users read concurrently, and return the time when each finished."""
    operations = [f"Describe{number}" for number in range(reads)]

    async def one(name: str) -> float:
        user = User(identity, name)
        return max(
            await asyncio.gather(*(send(quotas, user, account, each) for each in operations))
        )

    names = [f"shoot-{number}" for number in range(users)]
    done = await asyncio.gather(*map(one, names))
    return dict(zip(names, done, strict=True))


async def test_two_hundred_users_are_never_throttled_and_finish_at_the_rate_of_the_quota() -> None:
    account = Account()

    done = await landscape(Quotas(), 200, 14, account)

    limit = slot_of("ec2", "DescribeSubnets", {}).limit
    assert account.throttled == 0
    assert len(account.times) == 200 * 14
    assert max(done.values()) <= 200 / (limit.refill * SHARE)


async def test_a_restart_with_an_exhausted_quota_does_not_send_a_burst() -> None:
    account = Account()
    await landscape(Quotas(), 200, 1, account)
    await asyncio.sleep(3)

    await landscape(Quotas(), 200, 1, account)

    assert account.throttled == 0


async def test_with_other_users_of_the_quota_few_requests_are_throttled_and_all_succeed() -> None:
    account = Account(taken_by_others=14)

    done = await landscape(Quotas(), 200, 3, account)

    assert len(done) == 200
    assert account.throttled < 0.05 * len(account.times)


async def test_a_user_with_few_requests_does_not_wait_for_one_with_many() -> None:
    quotas, account = Quotas(), Account()
    many, few = User("AKIA1", "many"), User("AKIA1", "few")
    crowd = [
        asyncio.create_task(send(quotas, many, account, "DescribeSubnets")) for _ in range(2000)
    ]
    await asyncio.sleep(10)

    began = asyncio.get_running_loop().time()
    done = await send(quotas, few, account, "DescribeSubnets")

    assert done - began < 0.2
    assert max(await asyncio.gather(*crowd)) > 100


async def test_users_take_turns() -> None:
    quotas, order = Quotas(), []

    async def one(name: str) -> None:
        await quotas.turn(User("AKIA1", name), REGION, "ec2", "CreateVpcEndpoint", {}, FOREVER)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        for name in ["drain"] * 4 + ["a"] * 3 + ["b"] * 2 + ["c"]:
            group.create_task(one(name))

    assert order[-6:] == ["a", "b", "c", "a", "b", "a"]


async def test_another_account_is_not_delayed() -> None:
    quotas, throttled, free = Quotas(), Account(taken_by_others=19), Account()
    slow = asyncio.create_task(landscape(quotas, 1000, 1, throttled, "AKIA1"))
    await asyncio.sleep(5)
    began = asyncio.get_running_loop().time()

    done = await landscape(quotas, 20, 3, free, "AKIA2")

    assert max(done.values()) == began
    assert quotas.backlog(User("AKIA1", "new"), REGION) > 10
    assert quotas.backlog(User("AKIA2", "new"), REGION) == 0
    assert quotas.backlog(User("AKIA1", "new"), "us-east-1") == 0
    slow.cancel()
    await asyncio.wait([slow])


async def test_a_request_that_cannot_be_sent_in_time_fails_at_once() -> None:
    quotas, user = Quotas(), User("AKIA1", "web")
    waiting = [
        asyncio.create_task(quotas.turn(user, REGION, "ec2", "CreateVpcEndpoint", {}, FOREVER))
        for _ in range(20)
    ]
    await asyncio.sleep(0)

    with pytest.raises(Throttled, match="ec2 CreateVpcEndpoint in eu-west-1: too many requests"):
        await quotas.turn(user, REGION, "ec2", "CreateVpcEndpoint", {}, until=30)

    assert asyncio.get_running_loop().time() == 0
    await asyncio.gather(*waiting)


async def test_a_cancelled_request_passes_its_turn_to_the_next() -> None:
    quotas = Quotas()

    async def turn(name: str) -> None:
        await quotas.turn(User("AKIA1", name), REGION, "ec2", "CreateVpcEndpoint", {}, FOREVER)

    for _ in range(4):
        await turn("first")
    gone, next_ = asyncio.create_task(turn("gone")), asyncio.create_task(turn("next"))
    await asyncio.sleep(1)
    gone.cancel()
    await next_

    assert asyncio.get_running_loop().time() < 2 / (0.3 * SHARE)
    assert gone.cancelled()


async def test_keys_of_one_account_share_its_quota_once_the_account_is_known() -> None:
    quotas = Quotas()
    one, other = User("AKIA1", "a"), User("AKIA2", "b")
    arn = {"Role": {"Arn": "arn:aws:iam::123456789012:role/nodes"}}
    for user in (one, other):
        quotas.learn_account(user, arn)
    role = User("arn:aws-cn:iam::123456789012:role/infra", "c")

    lines = [
        await quotas.turn(user, REGION, "ec2", "DescribeVpcs", {}, FOREVER)
        for user in (one, other, role)
    ]

    assert lines[0] is lines[1] is lines[2]


async def test_what_is_known_of_deleted_accounts_and_rotated_keys_is_forgotten() -> None:
    quotas, days = Quotas(), 30
    lasting = User("AKIA-lasting", "web")
    quotas.learn_account(lasting, {"Role": {"Arn": "arn:aws:iam::111111111111:role/nodes"}})
    sizes: list[int] = []

    for day in range(days):
        user = User(f"AKIA{day}", "web")
        quotas.learn_account(user, {"Role": {"Arn": f"arn:aws:iam::{day:012}:role/nodes"}})
        for each in (user, lasting):
            line = await quotas.turn(each, REGION, "ec2", "DescribeVpcs", {}, FOREVER)
            line.learn(None)
        sizes.append(len(quotas._lines) + len(quotas._accounts))
        await asyncio.sleep(24 * 3600)

    assert max(sizes) == sizes[-1] == sizes[5]
    again = await quotas.turn(lasting, REGION, "ec2", "DescribeVpcs", {}, FOREVER)
    assert again is line


def test_simultaneous_refusals_halve_the_rate_once_and_it_recovers_slowly() -> None:
    bucket = Bucket(Limit(100, 20), 0.0)
    full = bucket.rate
    for _ in range(30):
        bucket.learn(SLOW_DOWN, 0.5)
    assert bucket.rate == full / 2
    bucket.learn(NotFound("none"), 1.0)
    assert bucket.throttled is SLOW_DOWN
    rates = []
    for second in range(1, 30):
        bucket.learn(None, 0.5 + second)
        rates.append(bucket.rate)

    assert rates == sorted(rates)
    assert rates[0] < 0.6 * full
    assert bucket.rate == full
    assert bucket.throttled is None


@pytest.mark.parametrize(
    ("of", "limit", "is_global"),
    [
        (("ec2", "DescribeSubnets"), Limit(100, 20), False),
        (("ec2", "DescribeSecurityGroups"), Limit(50, 10), False),
        (("ec2", "CreateSubnet"), Limit(50, 5), False),
        (("ec2", "CreateVpcEndpoint"), Limit(4, 0.3), False),
        (("elbv2", "DescribeLoadBalancers"), Limit(40, 10), False),
        (("route53", "ChangeResourceRecordSets"), Limit(5, 5), True),
        (("iam", "GetRole"), Limit(100, 20), True),
    ],
)
def test_limits_match_the_documentation(of: tuple[str, str], limit: Limit, is_global: bool) -> None:
    slot = slot_of(*of, {})
    assert (slot.limit, slot.is_global) == (limit, is_global)


def test_operations_that_share_a_bucket_at_aws_share_one_here() -> None:
    def place(service: str, operation: str) -> str:
        return slot_of(service, operation, {}).name

    names = Counter(place("ec2", name) for name in ("CreateVpc", "CreateSubnet", "DescribeVpcs"))
    assert set(names.values()) == {1}
    assert place("elb", "DescribeTags") == place("elb", "DescribeLoadBalancers")
    filtered = slot_of("ec2", "DescribeSecurityGroups", {"Filters": [{"Name": "vpc-id"}]})
    assert filtered.name != place("ec2", "DescribeSecurityGroups")
