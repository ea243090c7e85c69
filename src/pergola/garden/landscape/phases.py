"""The phases of a credential's rotation (spec 21 §10.3)."""

from typing import Final

PREPARING: Final = "Preparing"
PREPARED: Final = "Prepared"
COMPLETING: Final = "Completing"
COMPLETED: Final = "Completed"
