"""The Infrastructure actuator for Shoots in AWS (spec 30 §2).

    pergola extension run aws

Spec, Cluster and Secret → `Wanted` and a client; one observation of AWS → preflight checks → the
flow, which saves its state as it goes. An interrupted run is repeated from its start.
"""

import os
import random
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pergola.admission.webhook import Webhook
from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient, AwsClients, Place, Retry, reader
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.extensions.garden import Garden
from pergola.extensions.health_checks.checks import CheckContext, HealthCheck
from pergola.flow import Report, Reporter, State, Write
from pergola.flow.metrics import FlowMetrics
from pergola.providers.aws.admission.webhooks import admission_webhooks
from pergola.providers.aws.codes import explained
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.flows.run import DELETION, RECONCILIATION, name_zones, run_steps
from pergola.providers.aws.health.checks import health_checks
from pergola.providers.aws.observe import observe
from pergola.providers.aws.preflight import demand
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.state import is_empty, read_state, state_object
from pergola.providers.aws.status import full_status
from pergola.providers.aws.turns import check_turn
from pergola.providers.aws.warnings import warn
from pergola.runtime.metrics import Metrics

TAG_WORKER_SUBNETS: Final = "PERGOLA_AWS_TAG_BYO_WORKER_SUBNETS"
"""Environment variable; `false` switches off the cluster's tag on worker subnets (§4.3)."""
REMOVE_POD_ROUTES: Final = "PERGOLA_AWS_REMOVE_DEAD_POD_ROUTES"
"""Environment variable; `true` lets deletions remove dead pod routes (§7.2)."""
PERMISSIONS_BOUNDARY: Final = "PERGOLA_AWS_NODES_PERMISSIONS_BOUNDARY"
"""Environment variable; the ARN of the policy that bounds the roles of nodes; none by default."""
BACKUP_GRACE: Final = "PERGOLA_AWS_BACKUP_ENTRY_GRACE"
"""Environment variable; how long backups outlive their BackupEntry, such as `24h`; 0 by default."""
_POLICY: Final = re.compile(r"arn:[a-z-]+:iam::(\d{12}|aws):policy/[\w+=,.@/-]+", re.ASCII)
_SWITCH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    """Settings of the AWS extension.

    Attributes:
        endpoint_url: for all services, instead of AWS's own; like the variable AWS_ENDPOINT_URL.
        tag_worker_subnets: whether user-provided worker subnets get the cluster's tag.
        remove_pod_routes: whether a deletion removes dead pod routes from user-provided route
            tables.
        permissions_boundary: the ARN of the policy that bounds the roles of nodes; empty for none.
        backup_grace: how long backups outlive their BackupEntry.
        retry: how often and when requests are repeated; the client's default if None.
        poll_seconds: the time between two polls while AWS is creating or deleting something.
    """

    endpoint_url: str = ""
    tag_worker_subnets: bool = True
    remove_pod_routes: bool = False
    permissions_boundary: str = ""
    backup_grace: timedelta = timedelta()
    retry: Retry | None = None
    poll_seconds: float = 5.0


class AwsInfrastructure(Actuator):
    """Creates, maintains and deletes the network and identities of a Shoot's nodes in AWS.

    Args:
        settings: read from the environment if None.
    """

    kind = "Infrastructure"
    type = "aws"
    name = "provider-aws"
    registered_as = "pergola-aws"

    def __init__(self, settings: AwsSettings | None = None) -> None:
        self._settings = settings or settings_from(os.environ)
        self._clients = AwsClients(
            endpoint_url=self._settings.endpoint_url, retry=self._settings.retry
        )
        self._flows: FlowMetrics | None = None
        self._random = random.Random()  # noqa: S311 - spreads runs

    def measure(self, metrics: Metrics) -> None:
        """Count requests to AWS, and measure how long steps of flows wait and take."""
        self._clients.measure(metrics)
        self._flows = metrics.register(FlowMetrics)

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Check the account, then create missing resources and change those that differ."""
        with explained():
            desired, state = self._desired(context, obj), _state(obj)
            async with self._work(context, obj, desired, state) as work:
                hints = demand(desired, work.snapshot)
                await _begin(context, desired, state)
                await run_steps(
                    RECONCILIATION,
                    reconcile_steps(desired),
                    work,
                    write=_writer(context),
                    report=_reporter(context),
                    metrics=self._flows,
                )
        warnings = [*(f"{hint} (to repair: {hint.fix})" for hint in hints), *work.warnings]
        await warn(context.client, obj, warnings, context.clock)
        return full_status(desired, state)

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete what was created, and remove our tags from user-provided resources.

        If nothing was ever created, this requires neither a valid config nor credentials.
        """
        with explained():
            state = _state(obj)
            if is_empty(state):
                return None
            desired = self._desired(context, obj, strict=False)
            async with self._work(context, obj, desired, state, for_deletion=True) as work:
                await run_steps(
                    DELETION,
                    delete_steps(
                        desired, state, remove_pod_routes=self._settings.remove_pod_routes
                    ),
                    work,
                    write=_writer(context),
                    report=_reporter(context),
                    metrics=self._flows,
                )
        await warn(context.client, obj, work.warnings, context.clock)
        return None

    async def force_delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave everything in AWS unchanged."""
        return None

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave everything in AWS unchanged; the state is already in the status."""
        return None

    def health_checks(self) -> Sequence[HealthCheck]:
        """Check user-provided resources: the nodes' security group, subnets for load balancers."""
        return health_checks(self._access)

    def admission_webhooks(self, garden: Garden) -> Sequence[Webhook]:
        """Default and validate Shoots in AWS, and what they depend on in the garden."""
        return admission_webhooks(garden)

    async def close(self) -> None:
        """Close idle connections to AWS."""
        await self._clients.close()

    def _desired(self, context: Context, obj: JsonObject, *, strict: bool = True) -> Desired:
        return desired_of(
            obj,
            context.cluster,
            tag_worker_subnets=self._settings.tag_worker_subnets,
            permissions_boundary=self._settings.permissions_boundary,
            strict=strict,
        )

    @asynccontextmanager
    async def _work(
        self,
        context: Context,
        obj: JsonObject,
        desired: Desired,
        state: State,
        *,
        for_deletion: bool = False,
    ) -> AsyncGenerator[Work]:
        """Yield the shared inputs of the steps, after observing everything once."""
        place = Place(secret_of(obj), desired.region)
        now = context.clock.now()
        async with self._clients.use(reader(context.client), place, now) as aws:
            check_turn(aws, self._random)
            yield Work(
                aws=aws,
                desired=desired,
                state=state,
                snapshot=await observe(aws, desired, state, for_deletion=for_deletion),
                poll_seconds=self._settings.poll_seconds,
            )

    @asynccontextmanager
    async def _access(self, context: CheckContext, obj: JsonObject) -> AsyncGenerator[AwsClient]:
        """Yield a client for health checks, which read only what they check."""
        place = Place(secret_of(obj), str(map_at(obj, "spec").get("region", "")))
        async with self._clients.use(context.read, place, context.now) as aws:
            yield aws


def settings_from(environment: Mapping[str, str]) -> AwsSettings:
    """Return the settings in environment variables.

    Raises:
        ExtensionError: variables have invalid values; the text lists them.
    """
    said = {
        name: value
        for name in (TAG_WORKER_SUBNETS, REMOVE_POD_ROUTES)
        if (value := environment.get(name, "").strip())
    }
    wrong = [f'{name} is "{value}"' for name, value in said.items() if value.lower() not in _SWITCH]
    if wrong:
        raise ExtensionError(f"{' and '.join(wrong)}; write true or false")
    switched = {name: _SWITCH[value.lower()] for name, value in said.items()}
    return AwsSettings(
        tag_worker_subnets=switched.get(TAG_WORKER_SUBNETS, True),
        remove_pod_routes=switched.get(REMOVE_POD_ROUTES, False),
        permissions_boundary=_policy(environment.get(PERMISSIONS_BOUNDARY, "").strip()),
        backup_grace=_grace(environment.get(BACKUP_GRACE, "").strip()),
    )


def _policy(said: str) -> str:
    if said and not _POLICY.fullmatch(said):
        such = "arn:aws:iam::123456789012:policy/name"
        raise ExtensionError(f'{PERMISSIONS_BOUNDARY} is "{said}"; write an ARN such as {such}')
    return said


def _grace(said: str) -> timedelta:
    try:
        grace = parse_duration(said or "0s")
    except DurationError:
        grace = timedelta(-1)
    if grace < timedelta():
        raise ExtensionError(f'{BACKUP_GRACE} is "{said}"; write a duration such as 24h')
    return grace


def secret_of(obj: JsonObject) -> Key:
    """Return the key of the Secret with the credentials.

    Raises:
        ExtensionError: the spec names none.
    """
    reference = map_at(obj, "spec", "secretRef")
    key = Key(str(reference.get("namespace") or ""), str(reference.get("name") or ""))
    if not (key.namespace and key.name):
        raise ExtensionError(
            f"{obj.get('kind')} {Key.of(obj)}: spec.secretRef needs a name and a namespace; name "
            "the Secret with the AWS credentials",
            Code.CONFIGURATION_PROBLEM,
        )
    return key


async def _begin(context: Context, desired: Desired, state: State) -> None:
    """Make sure that the saved state is not empty, so that a deletion finds created resources."""
    if is_empty(state):
        name_zones(desired, state)
        await _writer(context)(state.snapshot())


def _state(obj: JsonObject) -> State:
    return read_state(map_at(obj, "status", "state"))


def _writer(context: Context) -> Write:
    async def write(data: dict[str, str]) -> None:
        await context.save({"state": state_object(data)})

    return write


def _reporter(context: Context) -> Reporter:
    async def report(now: Report) -> None:
        await context.progress(now.percent, now.description)

    return report
