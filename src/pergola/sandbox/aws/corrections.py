"""An AWS for flows: moto with its gaps corrected, and with the failures of the real AWS.

    with moto() as server:
        async with CorrectedAws(server) as aws:
            aws.throttle("CreateSubnet", times=2)
            async with aws.client("eu-west-1", retry=QUICK) as client:
                ...
            assert aws.writes() == ["ec2 CreateVpc", ...]

`gaps` has one class for each correction; `world` builds user-provided networks.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from aiohttp import web

from pergola.cloud.aws import Retry
from pergola.sandbox.aws.answers import Answer, Call, Refusal, call_of, identity_of
from pergola.sandbox.aws.bucket_policies import BucketPolicies
from pergola.sandbox.aws.dependencies import dependencies
from pergola.sandbox.aws.file_systems import FileSystems
from pergola.sandbox.aws.forgotten import forgotten
from pergola.sandbox.aws.gaps import (
    AttachedTables,
    Correction,
    EgressOnlyGateways,
    EndpointRoutes,
    InstanceGroups,
    IpamPools,
    NatGateways,
    Readiness,
    SubnetBlocks,
)
from pergola.sandbox.aws.load_balancers import SERVICE as BALANCING
from pergola.sandbox.aws.load_balancers import LoadBalancers
from pergola.sandbox.aws.moto import AwsDouble, service_of
from pergola.sandbox.aws.newcomers import Newcomers
from pergola.sandbox.aws.record_sets import RecordSets
from pergola.sandbox.aws.topology import topology

QUICK: Final = Retry(attempts=6, first_seconds=0.001, longest_seconds=0.01)
"""As many attempts as in the product, without its waits."""
_QUOTAS: Final = {
    "AllocateAddress": "AddressLimitExceeded",
    "AuthorizeSecurityGroupIngress": "RulesPerSecurityGroupLimitExceeded",
    "CreateEgressOnlyInternetGateway": "InternetGatewayLimitExceeded",
    "CreateFileSystem": "FileSystemLimitExceeded",
    "CreateInternetGateway": "InternetGatewayLimitExceeded",
    "CreateNatGateway": "NatGatewayLimitExceeded",
    "CreateRoute": "RouteLimitExceeded",
    "CreateRouteTable": "RouteTableLimitExceeded",
    "CreateSecurityGroup": "SecurityGroupLimitExceeded",
    "CreateSubnet": "SubnetLimitExceeded",
    "CreateVpc": "VpcLimitExceeded",
    "CreateVpcEndpoint": "VpcEndpointLimitExceeded",
}
_OTHER_QUOTA: Final = "LimitExceeded"

Hook = Callable[[Call], Awaitable[None]]


class Standard:
    """All corrections, together.

    Args:
        reads: how many reads describe new things as not ready yet.
        more: extra corrections, such as those of `dependencies`.
    """

    def __init__(self, reads: int, more: Iterable[Correction] = ()) -> None:
        self.nats = NatGateways(reads)
        self.readiness = Readiness(reads)
        self.pools = IpamPools()
        self.newcomers = Newcomers()
        self._others = (
            AttachedTables(),
            EgressOnlyGateways(),
            EndpointRoutes(),
            InstanceGroups(),
            SubnetBlocks(),
            *more,
        )

    def __iter__(self) -> Iterator[Correction]:
        return iter((self.nats, self.readiness, self.pools, *self._others, self.newcomers))


class CorrectedAws(AwsDouble):
    """moto behind a proxy that corrects its gaps, records requests and injects failures.

    Args:
        server: the URL of moto's server, which is reset.
        reads: how many reads describe something new as `pending`, or something that is being
            deleted as `deleting`: NAT gateways, subnets, IPv6 blocks, file systems.

    Attributes:
        requests: all requests with their parameters, including failed ones.
        identities: the access key ids of all requests.
        gaps: the corrections.
    """

    def __init__(self, server: str, *, reads: int = 1) -> None:
        super().__init__(server)
        self.requests: list[Call] = []
        self.identities: set[str] = set()
        self.gaps = Standard(reads, (*dependencies(), *forgotten()))
        self._file_systems = FileSystems(reads)
        self._record_sets = RecordSets()
        self._balancers = LoadBalancers()
        self._policies = BucketPolicies()
        self._hooks: list[tuple[str, bool, Hook]] = []
        self._lost: list[str] = []
        self._expired = False

    # Recorded requests

    def taken(self) -> list[str]:
        """Return and forget the recorded calls, such as `ec2 DescribeVpcs`, even failed ones."""
        self.requests.clear()
        return super().taken()

    def writes(self) -> list[str]:
        """Return the recorded calls that may have changed something, and forget all calls."""
        written = [str(call) for call in self.requests if call.is_write]
        self.taken()
        return written

    # Injected failures

    def throttle(self, operation: str, times: int = 1) -> None:
        """Throttle the next calls of an operation."""
        status = 503 if operation[:1].isupper() else 400
        self.fail(operation, "RequestLimitExceeded", status=status, times=times)

    def exhaust(self, operation: str, times: int = 1) -> None:
        """Let the next calls of an operation fail because its quota is exhausted."""
        self.fail(operation, _QUOTAS.get(operation, _OTHER_QUOTA), times=times)

    def hide(self, reads: int) -> None:
        """Hide new resources from a number of reads (`newcomers`)."""
        self.gaps.newcomers.reads = reads

    def lose_answer(self, operation: str, times: int = 1) -> None:
        """Carry out the next calls of an operation, but break the connection before the answer."""
        self._lost += [operation] * times

    def expire(self, *, expired: bool = True) -> None:
        """Reject all credentials from now on, or accept them again."""
        self._expired = expired

    def fail_nats(self, times: int = 1) -> None:
        """Let the next NAT gateways become `failed`."""
        self.gaps.nats.failing += times

    def before(self, operation: str, hook: Hook) -> None:
        """Run a hook once, before the next call of an operation reaches moto.

        The hook may call this AWS itself, like another client that changes or deletes things.
        """
        self._hooks.append((operation, True, hook))

    def after(self, operation: str, hook: Hook) -> None:
        """Run a hook once, between the next call of an operation and its answer."""
        self._hooks.append((operation, False, hook))

    def heal(self) -> None:
        """End all injected failures."""
        super().heal()
        self._hooks.clear()
        self._lost.clear()
        self._expired = False
        self.gaps.newcomers.reads = self.gaps.nats.failing = 0

    # Proxy

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        call = call_of(service_of(request), request, body)
        self._calls.append(str(call))
        self.requests.append(call)
        self.identities.add(identity_of(request.headers.get("Authorization", "")))
        await self._run_hooks(call, before=True)
        refusal = self._refusal(call) or self._record_sets.refusal(call, request.path, body)
        if refusal is not None:
            return refusal.answer(call.service)
        answer = await self._corrected(request, call, body)
        await self._run_hooks(call, before=False)
        if call.operation in self._lost and request.transport is not None:
            self._lost.remove(call.operation)
            request.transport.abort()
        return answer

    def _refusal(self, call: Call) -> Refusal | None:
        if self._expired:
            return Refusal("RequestExpired", "Request has expired.")
        for fault in self._faults:
            if fault.operation == call.operation:
                self._faults.remove(fault)
                return Refusal(fault.code, fault.message, fault.status)
        if call.service != "ec2" and call.service != "iam":
            return None
        refusals = (gap.refusal(call) for gap in self.gaps)
        return next((refusal for refusal in refusals if refusal is not None), None)

    async def _corrected(self, request: web.Request, call: Call, body: bytes) -> web.Response:
        if call.service == "elasticfilesystem":
            return self._file_systems.corrected(call, await self._forward(request, body))
        own = topology(call) or self._policies.answer(call, request.path, body)
        if own is not None:
            return own
        if call.service == "route53":
            forwarded = await self._forward(request, body)
            return self._record_sets.corrected(call, request.path, body, forwarded)
        if call.service == BALANCING:
            return await self._balanced(request, call, body)
        if call.service not in ("ec2", "iam"):
            return await self._forward(request, body)
        asked = call
        for gap in self.gaps:
            for more in gap.beforehand(call):
                await self._send(request, more.body())
            asked = gap.request(asked)
        answer = await self._send(request, body if asked is call else asked.body())
        if answer.status != web.HTTPOk.status_code:
            return answer
        return await self._put_right(request, call, answer)

    async def _balanced(self, request: web.Request, call: Call, body: bytes) -> web.Response:
        asked = self._balancers.request(call)
        answer = await self._send(request, body if asked is call else asked.body())
        if answer.status == web.HTTPOk.status_code:
            for more in self._balancers.afterwards(call):
                await self._send(request, more.body())
        return answer

    async def _put_right(
        self, request: web.Request, call: Call, answer: web.Response
    ) -> web.Response:
        if not isinstance(answer.body, bytes):
            raise TypeError("moto's answer has no body of bytes")
        document = Answer(answer.body)
        for gap in self.gaps:
            gap.answered(call, document)
        for gap in self.gaps:
            for more in gap.afterwards(call):
                await self._send(request, more.body())
        return web.Response(body=document.body(), content_type="text/xml")

    async def _send(self, request: web.Request, body: bytes) -> web.Response:
        headers = {k: v for k, v in request.headers.items() if k.lower() != "content-length"}
        async with self._http.request(
            request.method, f"{self._moto}{request.path_qs}", data=body, headers=headers
        ) as answer:
            kind = {"Content-Type": answer.headers.get("Content-Type", "text/xml")}
            return web.Response(status=answer.status, headers=kind, body=await answer.read())

    async def _run_hooks(self, call: Call, *, before: bool) -> None:
        due = [hook for hook in self._hooks if hook[:2] == (call.operation, before)]
        for hook in due:
            self._hooks.remove(hook)
            await hook[2](call)
