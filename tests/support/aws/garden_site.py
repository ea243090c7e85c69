"""Extension resources of a garden that are for AWS: DNSRecords, BackupBuckets, BackupEntries.

```python
site = await garden_site(client, namespace, aws, AwsDnsRecord)
async with running(site.controller()):
    await site.ask({"name": "api.example.org", ...})
    await site.until_operation("Create")
```
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Final

from aiohttp import web

from pergola.api.kinds import EVENT, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient, Retry
from pergola.extensions.lifecycle import Settings
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.actuator import AwsSettings
from pergola.runtime.controlling.unit import Unit
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.testing.crds import install_garden_extension_crds, served
from pergola.testing.extension_site import ExtensionSite, operation
from pergola.testing.waiting import PATIENCE, running
from tests.support.aws.gardens import KEYS
from tests.support.objects import secret

REGION: Final = "eu-west-1"
GARDEN: Final = "garden"
UID: Final = "2039f2f6-cfb5-4880-9421-9c214edcc241"
"""The end of the name of a BackupEntry."""
_POLL: Final = 0.1
_REQUESTED: Final = "requested by a test"
_SECRET: Final = "backup-credentials"


class HoldingAws(CorrectedAws):
    """An AWS that can hold back the answer of any call, so that its client dies waiting for it."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.held = asyncio.Event()
        self._release = asyncio.Event()
        self._left = 0

    def hold(self, call: int) -> None:
        """Carry out calls, and hold back the answer of the one with this number, from 1."""
        self.held.clear()
        self._release.clear()
        self._left = call

    def release(self) -> None:
        """Stop holding back answers."""
        self._left = 0
        self._release.set()

    async def _corrected(self, request: web.Request, call: Call, body: bytes) -> web.Response:
        answer = await super()._corrected(request, call, body)
        self._left -= 1
        if self._left == 0:
            self.held.set()
            await self._release.wait()
        return answer


class GardenSite(ExtensionSite):
    """One extension resource of class `garden`, the Secret that it names, and an AWS.

    Attributes:
        aws: the AWS behind it.
        made: the class of its actuator.
        grace: how long backups outlive their BackupEntry.
        secret_name: of the Secret with the credentials.
    """

    aws: HoldingAws
    made: type[AwsAccess]
    grace = timedelta()
    secret_name = _SECRET
    _actuators: tuple[AwsAccess, ...] = ()

    def actuator(self, *, retry: Retry = QUICK) -> AwsAccess:
        """Return a new actuator without memory, as after a restart, for this site alone."""
        settings = AwsSettings(
            endpoint_url=self.aws.url, retry=retry, poll_seconds=0.01, backup_grace=self.grace
        )
        own = type("Own", (self.made,), {"type": self.type})
        actuator: AwsAccess = own(settings)
        self._actuators += (actuator,)
        return actuator

    def controller(self, *, client: Client | None = None, served: str = GARDEN) -> Unit:
        """Return the unit of a new actuator.

        Args:
            client: gives it another identity.
            served: the class of the resources.
        """
        return self.unit(self.actuator(), Settings(classes=(served,)), client=client)

    def client_of(self) -> AwsClient:
        """Return a client of the AWS."""
        return self.aws.client(REGION, retry=QUICK)

    async def put_secret(self, **data: str) -> None:
        """Write the Secret with the credentials, by default with valid ones."""
        credentials = secret(self.namespace, self.secret_name, **(data or KEYS))
        await self.client.apply(credentials, manager="pergola-testing", force=True)

    @property
    def secret_key(self) -> Key:
        """The key of the Secret with the credentials."""
        return Key(self.namespace, self.secret_name)

    async def ask(self, spec: JsonObject, asked: str = "reconcile") -> JsonObject:
        """Create the resource, and request an operation."""
        secret = {"name": self.secret_name, "namespace": self.namespace}
        return await self.create(asked, spec={"class": GARDEN, "secretRef": secret, **spec})

    async def again(self, asked: str = "reconcile") -> JsonObject:
        """Request an operation, and wait until it succeeded."""
        await self.request(asked)
        return await self.until_answered()

    async def request(self, asked: str = "reconcile") -> None:
        """Request an operation, and mark it as pending in the status."""
        await self.edit_status({"lastOperation": {"description": _REQUESTED}})
        await self.annotate(asked)

    async def until_answered(self) -> JsonObject:
        """Wait until the requested operation succeeded."""
        return await self.until(
            lambda obj: (
                operation(obj)[1] == "Succeeded"
                and map_at(obj, "status", "lastOperation").get("description") != _REQUESTED
            )
        )

    async def until_failed(self, text: str = "") -> JsonObject:
        """Wait until the last operation failed with an error that contains a text."""
        return await self.until(
            lambda obj: (
                operation(obj)[1] == "Error"
                and text in map_at(obj, "status", "lastError").get("description", "")
            )
        )

    async def until_noted(self, namespace: str, text: str) -> None:
        """Wait until an Event about the resource contains a text.

        The controller must still run: it writes an Event after the change that it reports.

        Args:
            namespace: of the Event.
        """
        async with asyncio.timeout(PATIENCE):
            notes: list[str] = []
            while not any(text in note for note in notes):
                await asyncio.sleep(_POLL)
                events = await self.client.list(EVENT, namespace)
                notes = [
                    event["note"] for event in events if event["regarding"]["name"] == self.key.name
                ]

    async def survive(self, until: Callable[[], Coroutine[None, None, object]]) -> int:
        """Kill the extension after each of its calls to AWS in turn, until one run completes.

        Args:
            until: waits for the end of the operation.

        Returns:
            How often it was killed.
        """
        for number in count(1):
            self.aws.hold(number)
            waits = [asyncio.ensure_future(each) for each in (until(), self.aws.held.wait())]
            async with running(self.controller()):
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                is_killed = self.aws.held.is_set()
            self.aws.release()
            for wait in waits:
                wait.cancel()
            if not is_killed:
                return number - 1
        raise AssertionError("counting never ends")

    async def clean_up(self) -> None:
        """Delete objects that outlive the namespace, and close connections."""
        self.aws.release()
        for actuator in self._actuators:
            await actuator.close()
        with suppress(NotFound):
            await self.edit({"metadata": {"finalizers": []}})
        with suppress(NotFound):
            await self.client.delete(self.gvk, self.key)
        with suppress(NotFound):
            await self.client.patch(SECRET, self.secret_key, {"metadata": {"finalizers": []}})


async def garden_site(
    client: Client,
    namespace: str,
    aws: HoldingAws,
    made: type[AwsAccess],
    secret_name: str = _SECRET,
) -> GardenSite:
    """Create the Secret in an existing namespace, and return the site."""
    await install_garden_extension_crds(client)
    gvk: GroupVersionKind = made.gvk()
    await served(client, gvk)
    site = GardenSite(client, namespace, gvk)
    if made.kind == "BackupBucket":
        site.key = Key("", namespace)
    if made.kind == "BackupEntry":
        site.key = Key("", f"{namespace}--{UID}")
    site.aws, site.made, site.secret_name = aws, made, secret_name
    await site.put_secret()
    return site
