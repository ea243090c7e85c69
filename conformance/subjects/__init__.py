"""The subjects: what is compared, one module each."""

from typing import Final

from conformance.subjects.health import Health
from conformance.subjects.subject import Subject

SUBJECTS: Final[tuple[Subject, ...]] = (Health(),)
"""All subjects."""
