"""The requests of a resource manager, from the audit log of an API server."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from pergola.api.objects import JsonObject, map_at
from pergola.kube.yaml import dump
from pergola.sandbox.directory import write

_FORBIDDEN: Final = 403


@dataclass(frozen=True)
class AuditLog:
    """The log of the requests of some users or groups.

    Attributes:
        directory: of its files.
        name: of the cluster; its files begin with it.
        users, groups: whose requests are in the log.
    """

    directory: Path
    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def flags(self) -> tuple[str, ...]:
        """Write the policy; return the flags of the API server."""
        policy: JsonObject = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [
                *({"level": "Metadata", "users": [user]} for user in self.users),
                *({"level": "Metadata", "userGroups": [group]} for group in self.groups),
                {"level": "None"},
            ],
        }
        file = write(self.directory / f"{self.name}-audit.yaml", dump(policy))
        return f"--audit-policy-file={file}", f"--audit-log-path={self._file}"

    def requests(self) -> Iterator[JsonObject]:
        """Yield the requests that ended so far, as audit events."""
        lines = self._file.read_bytes().splitlines() if self._file.exists() else []
        for line in lines:
            event: JsonObject = orjson.loads(line)
            yield event

    @property
    def _file(self) -> Path:
        return self.directory / f"{self.name}-audit.jsonl"


def refused(events: Iterable[JsonObject]) -> Iterator[str]:
    """Yield a sentence for each request that was forbidden."""
    for event in events:
        status = map_at(event, "responseStatus")
        if status.get("code") == _FORBIDDEN:
            user = map_at(event, "user").get("username")
            said = status.get("message") or "no reason was given"
            yield f"{user}: {event['verb']} {event['requestURI']}: {said}"
