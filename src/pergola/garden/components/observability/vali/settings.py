"""The configuration files of Vali and of its curator, which drops the oldest logs."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.yaml import dump

_DATA: Final = "/data"
_CHUNKS: Final = f"{_DATA}/vali/chunks"
_INDEX: Final = f"{_DATA}/vali/index"
_RETENTION: Final = "360h"
_LARGE_DIRECTORIES: Final = f"""#!/bin/bash
# A directory with many chunks needs an index of more than two levels, which ext4 has to allow.
set -o errexit
device=$(mount | awk '$3 == "{_DATA}" {{print $1}}')
tune2fs -O large_dir "$device"
"""


def files(port: int) -> dict[str, str]:
    """Return all files by name.

    Args:
        port: The port that Vali listens on.
    """
    return {
        "vali.yaml": dump(_vali(port)),
        "curator.yaml": dump(_curator()),
        "vali-init.sh": _LARGE_DIRECTORIES,
    }


def _vali(port: int) -> JsonObject:
    """Return Vali's configuration: one replica, fifteen days of logs on the volume."""
    return {
        "auth_enabled": False,
        "server": {"http_listen_port": port},
        "ingester": _ingester(),
        "limits_config": {
            "enforce_metric_name": False,
            "reject_old_samples": True,
            "reject_old_samples_max_age": "168h",
            "ingestion_rate_mb": 8,
            "ingestion_burst_size_mb": 12,
        },
        "schema_config": {"configs": [_schema()]},
        "storage_config": {
            "boltdb": {"directory": _INDEX},
            "filesystem": {"directory": _CHUNKS},
        },
        "chunk_store_config": {"max_look_back_period": _RETENTION},
        "table_manager": {"retention_deletes_enabled": True, "retention_period": _RETENTION},
    }


def _ingester() -> JsonObject:
    ring = {"kvstore": {"store": "inmemory"}, "replication_factor": 1}
    return {
        "chunk_target_size": 1536000,
        "chunk_idle_period": "3m",
        "chunk_block_size": 262144,
        "chunk_retain_period": "3m",
        "max_transfer_retries": 3,
        "lifecycler": {"ring": ring, "final_sleep": "0s", "min_ready_duration": "1s"},
    }


def _schema() -> JsonObject:
    """Return the layout of the data; existing volumes are unreadable with any other."""
    return {
        "from": "2018-04-15",
        "store": "boltdb",
        "object_store": "filesystem",
        "schema": "v11",
        "index": {"prefix": "index_", "period": "24h"},
    }


def _curator() -> JsonObject:
    """Return the curator's configuration: drop the oldest chunks if less than 10% is free."""
    limits = {
        "MinFreePercentages": 10,
        "TargetFreePercentages": 15,
        "PageSizeForDeletionPercentages": 1,
    }
    return {
        "LogLevel": "info",
        "DiskPath": _CHUNKS,
        "TriggerInterval": "1h",
        "InodeConfig": limits,
        "StorageConfig": dict(limits),
    }
