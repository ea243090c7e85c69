"""BackupEntries of any provider: their names, the etcd's Secret, the grace period of a deletion."""

from pergola.extensions.backups.actuator import BackupEntryActuator
from pergola.extensions.backups.entry import Entry, entry_of

__all__ = ["BackupEntryActuator", "Entry", "entry_of"]
