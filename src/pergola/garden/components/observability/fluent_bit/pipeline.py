"""The inputs, parsers and filters that all logs share."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.fluent_bit.resources import (
    STATE,
    cluster_filter,
    cluster_input,
    cluster_parser,
    to_collector,
)

SCRIPTS_NAME: Final = "fluent-bit-lua-config"
"""The name of the ConfigMap with the scripts of filters."""

_PODS: Final = "kubernetes.*"
_SERVICES: Final = "systemd.*"
_CONTAINERD: Final = r"^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[^ ]*) (?<log>.*)$"

_ADD_TAG: Final = """-- The tag holds the names of pod, namespace and container.
function add_tag_to_record(tag, timestamp, record)
  record["tag"] = tag
  return 2, timestamp, record
end
"""
_ADD_TIME: Final = """-- The journal has the time beside the record, and the text in MESSAGE.
function add_time_and_systemd_attr(tag, timestamp, record)
  local seconds = os.date("!%Y-%m-%dT%H:%M:%S", timestamp.sec)
  record["time"] = string.format("%s.%09dZ", seconds, timestamp.nsec)
  if record["MESSAGE"] then
    record["log"] = record["MESSAGE"]
    record["MESSAGE"] = nil
  end
  if record["unit"] == nil and record["_SYSTEMD_UNIT"] then
    record["unit"] = record["_SYSTEMD_UNIT"]:gsub("%.service$", "")
  end
  return 2, timestamp, record
end
"""
_UNIFY_SEVERITY: Final = """-- Give severities one spelling, so that they can be searched.
local spellings = {
  I = "INFO", INF = "INFO", INFO = "INFO",
  W = "WARN", WRN = "WARN", WARN = "WARN", WARNING = "WARN",
  E = "ERR", ERR = "ERR", ERROR = "ERR", EROR = "ERR",
  D = "DBG", DBG = "DBG", DEBUG = "DBG",
  N = "NOTICE", NOTICE = "NOTICE",
  F = "FATAL", FATAL = "FATAL",
}

function cb_modify(tag, timestamp, record)
  local unified = spellings[tostring(record["severity"] or ""):match("^%s*(.-)%s*$"):upper()]
  if unified == nil then
    return 0, timestamp, record
  end
  record["severity"] = unified
  return 2, timestamp, record
end
"""


def scripts() -> dict[str, str]:
    """Return the scripts of filters, by file name."""
    return {
        "add_tag_to_record.lua": _ADD_TAG,
        "add_time_and_systemd_attr.lua": _ADD_TIME,
        "modify_severity.lua": _UNIFY_SEVERITY,
    }


def pipeline() -> list[JsonObject]:
    """Return the resources for all logs."""
    return [
        cluster_input("tail-kubernetes", {"tail": _tail()}),
        cluster_parser("containerd-parser", _containerd()),
        _script(
            "01-systemd",
            _SERVICES,
            "add_time_and_systemd_attr.lua",
            "add_time_and_systemd_attr",
            timeAsTable=True,
        ),
        _script("02-add-tag-to-record", _PODS, "add_tag_to_record.lua", "add_tag_to_record"),
        _script("zz-modify-severity", _PODS, "modify_severity.lua", "cb_modify"),
        to_collector("systemd", _SERVICES, Origin="seed-systemd"),
    ]


def _script(name: str, match: str, file: str, function: str, **options: bool) -> JsonObject:
    lua = {"script": {"name": SCRIPTS_NAME, "key": file}, "call": function, **options}
    return cluster_filter(name, match, {"lua": lua})


def _tail() -> JsonObject:
    """Return the input of pods' logs, without fluent-bit and Vali, to avoid a feedback loop."""
    return {
        "tag": _PODS,
        "path": "/var/log/containers/*.log",
        "excludePath": "*_garden_fluent-bit-*.log,*_garden_vali-*.log",
        "parser": "containerd-parser",
        "db": f"{STATE}/flb_kube.db",
        "dbSync": "Normal",
        "ignoredOlder": "30m",
        "refreshIntervalSeconds": 10,
        "memBufLimit": "60MB",
        "skipLongLines": True,
        "storageType": "filesystem",
        "pauseOnChunksOverlimit": "on",
    }


def _containerd() -> JsonObject:
    return {
        "decoders": [{"decodeFieldAs": "json log"}],
        "regex": {
            "regex": _CONTAINERD,
            "timeKey": "time",
            "timeKeep": True,
            "timeFormat": "%Y-%m-%dT%H:%M:%S.%L%z",
        },
    }
