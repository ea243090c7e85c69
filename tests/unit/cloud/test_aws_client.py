"""AWS's client, against a server that simulates EC2's protocol."""

import asyncio
import logging
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from aiohttp import test_utils, web

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient, Credentials, Retry
from pergola.cloud.aws.services import Services
from pergola.cloud.errors import CloudError, InvalidRequest, Throttled, Unreachable
from pergola.runtime.retrying import collect_failures

THROTTLED = (503, "RequestLimitExceeded")
BROKEN = (500, "InternalError")


class Call(NamedTuple):
    """A notification of the observer, without the seconds."""

    service: str
    operation: str
    outcome: str


class Ec2:
    """A server that returns VPCs, two per page, after a number of failures."""

    def __init__(self) -> None:
        self.failures: deque[tuple[int, str]] = deque()
        self.requests: list[dict[str, str]] = []
        self.vpcs = 1
        self.nonsense: tuple[int, str] | None = None
        self.host = ""

    async def answer(self, request: web.Request) -> web.Response:
        sent = {key: str(value) for key, value in (await request.post()).items()}
        self.requests.append(sent)
        if self.nonsense is not None:
            return web.Response(status=self.nonsense[0], text=self.nonsense[1])
        if self.failures:
            status, code = self.failures.popleft()
            text = f"<Response><Errors><Error><Code>{code}</Code></Error></Errors></Response>"
            return web.Response(status=status, text=text, content_type="text/xml")
        if sent["Action"] == "GetCallerIdentity":
            body = "<Account>123456789012</Account>"
            return self._xml(f"<R><GetCallerIdentityResult>{body}</GetCallerIdentityResult></R>")
        first = int(sent.get("NextToken", "0"))
        items = "".join(
            f"<item><vpcId>vpc-{number}</vpcId></item>"
            for number in range(first, min(first + 2, self.vpcs))
        )
        more = f"<nextToken>{first + 2}</nextToken>" if first + 2 < self.vpcs else ""
        return self._xml(f"<R><vpcSet>{items}</vpcSet>{more}</R>")

    def _xml(self, text: str) -> web.Response:
        return web.Response(text=text, content_type="text/xml")


@pytest.fixture
async def ec2() -> AsyncIterator[Ec2]:
    ec2 = Ec2()
    app = web.Application()
    app.router.add_post("/", ec2.answer)
    async with test_utils.TestServer(app) as server:
        ec2.host = str(server.make_url("/"))
        yield ec2


class Waiting:
    """A sleep that records its delays and returns at once."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def sleep() -> Waiting:
    return Waiting()


@pytest.fixture
def calls() -> list[Call]:
    return []


@pytest.fixture
async def client(ec2: Ec2, sleep: Waiting, calls: list[Call]) -> AsyncIterator[AwsClient]:
    def observe(service: str, operation: str, seconds: float, outcome: str) -> None:
        assert seconds >= 0
        calls.append(Call(service, operation, outcome))

    async with AwsClient(
        "eu-west-1",
        credentials=Credentials("AKIA1", "s3cret"),
        endpoint_url=ec2.host,
        observe=observe,
        retry=Retry(attempts=4),
        sleep=sleep,
    ) as client:
        yield client


async def test_a_response_is_plain_data_without_metadata(client: AwsClient) -> None:
    assert await client.call("ec2", "DescribeVpcs") == {"Vpcs": [{"VpcId": "vpc-0"}]}


async def test_all_pages_are_read(client: AwsClient, ec2: Ec2) -> None:
    ec2.vpcs = 5
    found = await client.pages("ec2", "DescribeVpcs", "Vpcs", MaxResults=5)
    assert [vpc["VpcId"] for vpc in found] == [f"vpc-{number}" for number in range(5)]
    assert [request.get("NextToken") for request in ec2.requests] == [None, "2", "4"]
    assert {request["MaxResults"] for request in ec2.requests} == {"5"}


async def test_the_account_is_requested_once(client: AwsClient, ec2: Ec2) -> None:
    assert await client.account() == await client.account() == "123456789012"
    assert len(ec2.requests) == 1


@pytest.mark.parametrize("failure", [THROTTLED, BROKEN], ids=["throttled", "broken"])
async def test_reads_are_retried(
    client: AwsClient, ec2: Ec2, sleep: Waiting, calls: list[Call], failure: tuple[int, str]
) -> None:
    ec2.failures.extend([failure] * 2)
    assert await client.pages("ec2", "DescribeVpcs", "Vpcs")
    assert [call.outcome for call in calls] == [failure[1], failure[1], "success"]
    assert len(sleep.waits) >= 2


async def test_after_the_last_attempt_the_error_is_raised(client: AwsClient, ec2: Ec2) -> None:
    ec2.failures.extend([THROTTLED] * 10)
    with pytest.raises(Throttled):
        await client.call("ec2", "DescribeVpcs")
    assert len(ec2.requests) == 4


async def test_a_write_that_may_have_succeeded_is_not_retried(client: AwsClient, ec2: Ec2) -> None:
    ec2.failures.append(BROKEN)
    with pytest.raises(Unreachable) as raised:
        await client.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")
    assert raised.value.may_have_happened
    assert len(ec2.requests) == 1


@pytest.mark.parametrize(
    ("status", "text"), [(500, ""), (500, "oops"), (502, "<html>bad gateway</html>"), (200, "oops")]
)
async def test_malformed_responses_of_aws_are_not_reported_as_network_errors(
    client: AwsClient, ec2: Ec2, status: int, text: str
) -> None:
    ec2.nonsense = (status, text)

    with pytest.raises(Unreachable) as raised:
        await client.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")

    assert "AWS" in str(raised.value)
    assert "check the network" not in str(raised.value)


async def test_the_library_logs_only_warnings(
    client: AwsClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await client.call("ec2", "DescribeVpcs")
        logging.getLogger("botocore.credentials").info("Found credentials")

    assert [record.name for record in caplog.records if "boto" in record.name] == []


async def test_an_unknown_operation_or_parameter_is_an_error_of_the_caller(
    client: AwsClient, ec2: Ec2
) -> None:
    with pytest.raises(InvalidRequest, match="has no operation Nothing"):
        await client.call("ec2", "Nothing")
    with pytest.raises(InvalidRequest, match="VpcIdss"):
        await client.call("ec2", "DescribeVpcs", VpcIdss=["vpc-1"])
    assert ec2.requests == []


async def test_an_unreachable_endpoint_is_reported(sleep: Waiting) -> None:
    async with AwsClient(
        "eu-west-1",
        credentials=Credentials("AKIA1", "s3cret"),
        endpoint_url="http://127.0.0.1:1",
        retry=Retry(attempts=3),
        sleep=sleep,
    ) as client:
        with pytest.raises(Unreachable, match="check the network"):
            await client.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")
    assert len(sleep.waits) == 2  # the request was never sent, so retries are safe


async def test_the_error_about_missing_credentials_says_where_to_put_them(
    ec2: Ec2, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    async with AwsClient("eu-west-1", endpoint_url=ec2.host) as client:
        with pytest.raises(CloudError, match="there are no AWS credentials: name a Secret"):
            await client.call("ec2", "DescribeVpcs")
    assert ec2.requests == []


def test_the_library_is_loaded_on_first_use() -> None:
    code = "import sys, pergola.cloud.aws; sys.exit('botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class ThrottledAws(Services):
    """An AWS that refuses every request at once."""

    def __init__(self) -> None:
        super().__init__("eu-west-1", None, "")

    async def ask(self, service: str, operation: str, parameters: JsonObject) -> JsonObject:
        raise Throttled("slow down", code="RequestLimitExceeded")


@pytest.mark.looptime(start=0)
async def test_parallel_reads_of_a_throttled_account_fail_before_their_callers_deadline() -> None:
    client = AwsClient("eu-west-1", services=ThrottledAws())
    began = asyncio.get_running_loop().time()

    outcomes = await asyncio.gather(
        *(client.call("ec2", "DescribeVpcs") for _ in range(14)), return_exceptions=True
    )

    assert {type(outcome) for outcome in outcomes} == {Throttled}
    assert asyncio.get_running_loop().time() - began <= 60


@pytest.mark.looptime(start=0)
async def test_a_deadline_that_interrupts_a_retry_reports_the_last_error() -> None:
    with collect_failures() as failures, pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await AwsClient("eu-west-1", services=ThrottledAws()).call("ec2", "DescribeVpcs")

    assert isinstance(failures.last, Throttled)


class ThrottledOnce(ThrottledAws):
    """An AWS that refuses the first request."""

    refused = False

    async def ask(self, service: str, operation: str, parameters: JsonObject) -> JsonObject:
        if self.refused:
            return {}
        self.refused = True
        return await super().ask(service, operation, parameters)


@pytest.mark.looptime(start=0)
async def test_a_throttled_operation_is_sent_less_often_afterwards() -> None:
    client = AwsClient("eu-west-1", services=ThrottledOnce())
    await client.call("ec2", "DescribeVpcs")
    began = asyncio.get_running_loop().time()

    for _ in range(20):
        await client.call("ec2", "DescribeVpcs")

    # Without the refusal, all of them are sent at once.
    assert asyncio.get_running_loop().time() - began > 1
