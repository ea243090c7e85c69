"""The name of a BackupEntry, which determines everything else about it. Pure."""

from typing import Final, NamedTuple

from pergola.api.objects import Key

_SOURCE: Final = "source-"
_SECRET: Final = "etcd-backup"  # noqa: S105 - a name
_SEPARATOR: Final = "--"


class Entry(NamedTuple):
    """A BackupEntry, identified by its name `<technical id>--<uid>`.

    Attributes:
        name: without the prefix of source entries.
        is_source: whether it refers to backups that a control plane left in a bucket, while they
            are copied; its name begins with `source-`.
    """

    name: str
    is_source: bool = False

    @property
    def technical_id(self) -> str:
        """The namespace of the etcd: that of a control plane, or `garden`."""
        found, separator, _ = self.name.rpartition(_SEPARATOR)
        return found if separator else self.name

    @property
    def prefix(self) -> str:
        """The prefix of all its objects in the bucket; it is not a prefix of any other entry's."""
        return f"{self.name}/"

    @property
    def secret(self) -> Key:
        """The Secret from which the etcd reads the bucket and the credentials."""
        return Key(self.technical_id, f"{_SOURCE if self.is_source else ''}{_SECRET}")


def entry_of(name: str) -> Entry:
    """Return the entry for the name of a BackupEntry."""
    return Entry(name.removeprefix(_SOURCE), name.startswith(_SOURCE))
