"""The dashboards of the virtual cluster: API servers and etcds."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.plutono.dashboards.panels import (
    choice,
    dashboard,
    graph,
    stat,
)

_JOB: Final = 'job=~"$job"'
_ETCD: Final = 'job="virtual-garden-etcd"'
_BACKUP: Final = 'job="virtual-garden-etcd-backup"'


def api_servers() -> JsonObject:
    """Return the dashboard of kube-apiserver and gardener-apiserver."""
    return dashboard(
        "garden-api-servers",
        "Garden: API Servers",
        [
            graph(
                "Requests",
                {"{{verb}}": f"sum by (verb) (rate(apiserver_request_total{{{_JOB}}}[5m]))"},
                unit="reqps",
                stacked=True,
            ),
            graph(
                "Requests that failed",
                {"{{code}}": _failed()},
                unit="percentunit",
            ),
            graph(
                "Duration of requests, 99th percentile",
                {"{{verb}}": _duration()},
                unit="s",
            ),
            graph(
                "Requests in progress",
                {
                    "{{job}} {{request_kind}}": "sum by (job, request_kind) "
                    f"(apiserver_current_inflight_requests{{{_JOB}}})"
                },
            ),
            graph(
                "Objects, the 15 most frequent resources",
                {"{{resource}}": _most(f"max by (resource) (apiserver_storage_objects{{{_JOB}}})")},
            ),
            graph(
                "Watches, the 15 most frequent kinds",
                {"{{kind}}": _most(f"sum by (kind) (apiserver_registered_watchers{{{_JOB}}})")},
            ),
        ],
        choice("job", "API server", "label_values(apiserver_request_total, job)"),
    )


def _most(query: str) -> str:
    return f"topk(15, {query})"


def _failed() -> str:
    failed = f'sum by (code) (rate(apiserver_request_total{{{_JOB},code=~"5.."}}[5m]))'
    all_of_them = f"sum(rate(apiserver_request_total{{{_JOB}}}[5m]))"
    return f"{failed} / ignoring (code) group_left () {all_of_them}"


def _duration() -> str:
    matchers = f'{_JOB},verb!~"WATCH|CONNECT"'
    rate = f"rate(apiserver_request_duration_seconds_bucket{{{matchers}}}[5m])"
    return f"histogram_quantile(0.99, sum by (verb, le) ({rate}))"


def etcds() -> JsonObject:
    """Return the dashboard of the etcds and their backups."""
    since_snapshot = f"time() - max by (role, kind) (etcdbr_snapshot_latest_timestamp{{{_BACKUP}}})"
    return dashboard(
        "garden-etcds",
        "Garden: etcd",
        [
            stat(
                "Members",
                f"sum by (role) (up{{{_ETCD}}})",
                legend="{{role}}",
                width=8,
                bad_below=1,
            ),
            stat(
                "Members with a leader",
                f"sum by (role) (etcd_server_has_leader{{{_ETCD}}})",
                legend="{{role}}",
                width=8,
                bad_below=1,
            ),
            stat(
                "Changes of leader within an hour",
                f"max by (role) (increase(etcd_server_leader_changes_seen_total{{{_ETCD}}}[1h]))",
                legend="{{role}}",
                width=8,
                bad_from=3,
            ),
            graph(
                "Size of the database",
                {
                    "{{role}}": f"max by (role) (etcd_mvcc_db_total_size_in_bytes{{{_ETCD}}})",
                    "{{role}}, in use": "max by (role) "
                    f"(etcd_mvcc_db_total_size_in_use_in_bytes{{{_ETCD}}})",
                },
                unit="bytes",
            ),
            graph("Time since the last snapshot", {"{{role}} {{kind}}": since_snapshot}, unit="s"),
            graph(
                "Writing the log, 99th percentile",
                {"{{role}}": _write("etcd_disk_wal_fsync_duration_seconds")},
                unit="s",
            ),
            graph(
                "Committing, 99th percentile",
                {"{{role}}": _write("etcd_disk_backend_commit_duration_seconds")},
                unit="s",
            ),
        ],
    )


def _write(histogram: str) -> str:
    rate = f"rate({histogram}_bucket{{{_ETCD}}}[5m])"
    return f"histogram_quantile(0.99, sum by (role, le) ({rate}))"
