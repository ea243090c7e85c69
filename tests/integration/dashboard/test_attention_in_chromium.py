"""`pergola why` and the page list the same objects, in the same order."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import Card, card_of
from pergola.why.attention import needing_attention
from tests.support.chromium import Tab
from tests.support.dashboard_objects import PROGRESSING, bad, condition, good, managed_resource

pytestmark = pytest.mark.timeout(300)

LISTED = """
import("/assets/js/store.js").then(({ Store }) => {
  const store = new Store();
  store.apply({ items: ITEMS, gone: [] }, true);
  return store.attention().map((card) => card.id);
})
"""


def cards() -> Iterator[Card]:
    """Yield cards in every state, of ages around what each state may last."""
    for number, minutes in enumerate((0.3, 0.8, 1.5, 4, 6, 29, 31)):
        running = condition(PROGRESSING, "True", "1 of 2 pods", minutes=minutes)
        unknown = condition("ResourcesHealthy", "Unknown", "not known", minutes=minutes)
        began = timestamp(datetime.now(UTC) - timedelta(minutes=minutes))
        states: dict[str, JsonObject] = {
            "good": {"conditions": good(minutes)},
            "bad": {"conditions": bad("broken", minutes)},
            "running": {"conditions": [*good(minutes)[:2], running]},
            "unknown": {"conditions": [good(minutes)[0], unknown, good(minutes)[2]]},
            "deleting": {"conditions": good(minutes)},
            "ignored": {"conditions": bad("broken", minutes)},
            "new": {},
        }
        for name, status in states.items():
            obj = managed_resource(Key("demo", f"{name}-{number}"))
            obj["metadata"]["creationTimestamp"] = began
            if name == "deleting":
                obj["metadata"]["deletionTimestamp"] = began
            if name == "ignored":
                obj["metadata"]["annotations"] = {"resources.gardener.cloud/ignore": "true"}
            yield card_of(MANAGED_RESOURCE, {**obj, "status": status})


async def test_the_command_and_the_page_agree_about_what_needs_attention(tab: Tab) -> None:
    found = [*cards()]
    items = orjson.dumps([card.data() for card in found]).decode()
    listed = await tab.run(LISTED.replace("ITEMS", items))
    assert listed == [card.id for card in needing_attention(found, datetime.now(UTC))]
    assert 20 < len(listed) < len(found) - 10
