"""The caller of extensions: creates extension resources, waits for them, moves and deletes them.

A caller deploys a resource and waits (`deploy`, `wait_ready`), moves it to another seed (`migrate`,
`wait_migrated`, `restore`), and deletes it (`destroy`, `wait_deleted`), for every kind alike. Not
for: carrying out requests, which is the task of an `Actuator`.
"""

from pergola.extension_api.caller.deploy import (
    Request,
    ask,
    deploy,
    deploy_if_needed,
    timestamp_of,
)
from pergola.extension_api.caller.destroy import destroy
from pergola.extension_api.caller.errors import (
    CallerError,
    NotDeleted,
    NotMigrated,
    NotReady,
    Unrestorable,
)
from pergola.extension_api.caller.migrate import abandon, leave, migrate
from pergola.extension_api.caller.network import choose_cidr, network_of
from pergola.extension_api.caller.readiness import Verdict, readiness
from pergola.extension_api.caller.restore import restore
from pergola.extension_api.caller.shoot_state import SHOOT_STATE, Saved, collect, saved
from pergola.extension_api.caller.symptoms import Extension, explainer
from pergola.extension_api.caller.wait import (
    Progress,
    Waiting,
    wait_deleted,
    wait_migrated,
    wait_ready,
)
from pergola.extension_api.kinds import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    DNS_RECORD,
    EXTENSION,
    EXTENSION_KINDS,
    NETWORK,
    ExtensionKind,
)

__all__ = [
    "BACKUP_BUCKET",
    "BACKUP_ENTRY",
    "DNS_RECORD",
    "EXTENSION",
    "EXTENSION_KINDS",
    "NETWORK",
    "SHOOT_STATE",
    "CallerError",
    "Extension",
    "ExtensionKind",
    "NotDeleted",
    "NotMigrated",
    "NotReady",
    "Progress",
    "Request",
    "Saved",
    "Unrestorable",
    "Verdict",
    "Waiting",
    "abandon",
    "ask",
    "choose_cidr",
    "collect",
    "deploy",
    "deploy_if_needed",
    "destroy",
    "explainer",
    "leave",
    "migrate",
    "network_of",
    "readiness",
    "restore",
    "saved",
    "timestamp_of",
    "wait_deleted",
    "wait_migrated",
    "wait_ready",
]
