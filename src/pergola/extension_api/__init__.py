"""Extension resources as the SDK and their callers see them: kinds, error codes, predicates.

`pergola.extension_api.caller` creates, awaits, migrates and deletes extension resources.

Not for: implementing an extension, which is in `pergola.extensions`.
"""

from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import Code, ExtensionError, RequeueAfter, SeveralErrors
from pergola.extension_api.kinds import EXTENSION_KINDS, ExtensionKind

__all__ = [
    "EXTENSION_KINDS",
    "Cluster",
    "Code",
    "ExtensionError",
    "ExtensionKind",
    "RequeueAfter",
    "SeveralErrors",
    "Shoot",
]
