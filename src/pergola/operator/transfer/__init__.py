"""Moving a Garden to another runtime cluster: its credentials as one sealed file.

The file contains everything that a new runtime cluster cannot generate: the durable Secrets of the
secrets manager, user-provided objects, and the Garden. It does not contain the data in etcd.

export       what the file holds
collect      from a cluster
seal         under a passphrase
target       may it be imported here, and what is missing?
apply        into a cluster
"""

from pergola.operator.transfer.apply import apply_import, create_garden
from pergola.operator.transfer.collect import collect
from pergola.operator.transfer.export import Export, TransferError, decode, encode
from pergola.operator.transfer.seal import is_sealed, seal, unseal
from pergola.operator.transfer.target import Missing, observe_missing

__all__ = [
    "Export",
    "Missing",
    "TransferError",
    "apply_import",
    "collect",
    "create_garden",
    "decode",
    "encode",
    "is_sealed",
    "observe_missing",
    "seal",
    "unseal",
]
