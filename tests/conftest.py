"""What all tests share."""

import asyncio


def pytest_configure() -> None:
    """No event loop before a test makes one: a left-over would end some later test as unclosed."""
    asyncio.set_event_loop(None)
