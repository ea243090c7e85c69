"""Connections of other users of the machine are told apart by the tables of the kernel."""

import os
from pathlib import Path

import pytest

from pergola.dashboard.access.peers import is_own

HEAD = "  sl  local_address rem_address st tx_queue tr tm->when retrnsmt uid timeout inode\n"
HERE, PEER = ("127.0.0.1", 8600), ("127.0.0.1", 40000)
SERVER, CLIENT = "0100007F:2198", "0100007F:9C40"
MAPPED_SERVER = "0000000000000000FFFF00000100007F:2198"
MAPPED_CLIENT = "0000000000000000FFFF00000100007F:9C40"


def row(local: str, remote: str, uid: int) -> str:
    return f"   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000 {uid} 0 1 1\n"


OURS = row(SERVER, CLIENT, os.getuid())
OTHER = os.getuid() + 1


@pytest.mark.parametrize(
    ("rows", "is_ours"),
    [
        ([OURS, row(CLIENT, SERVER, os.getuid())], True),
        ([OURS, row(CLIENT, SERVER, 0)], True),
        ([OURS, row(MAPPED_CLIENT, MAPPED_SERVER, os.getuid())], True),
        ([OURS, row(CLIENT, SERVER, OTHER)], False),
        ([OURS, row(MAPPED_CLIENT, MAPPED_SERVER, OTHER)], False),
        ([OURS], False),
        ([], True),
    ],
    ids=["own", "root", "own-mapped", "other", "other-mapped", "unknown", "no-table"],
)
def test_only_our_user_and_root_are_own(tmp_path: Path, rows: list[str], *, is_ours: bool) -> None:
    table = tmp_path / "tcp"
    table.write_text(HEAD + "".join(rows))
    assert is_own(PEER, HERE, [table]) is is_ours


def test_without_tables_every_peer_counts_as_own(tmp_path: Path) -> None:
    assert is_own(PEER, HERE, [tmp_path / "missing"])
