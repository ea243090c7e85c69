"""Set up what all tests share: the event loop policy, and how long hypothesis searches.

`--hypothesis-profile=nightly` gives every property 20,000 examples.
"""

import asyncio

from hypothesis import settings

NIGHTLY_EXAMPLES = 20_000

# A slow machine is not a defect: no example has a deadline, the tests have their time limits.
settings.register_profile("default", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=NIGHTLY_EXAMPLES)
settings.load_profile("default")


def pytest_configure() -> None:
    """Start without an event loop: a left-over one would end a later test as unclosed."""
    asyncio.set_event_loop(None)
