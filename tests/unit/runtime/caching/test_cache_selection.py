"""A cache that could never list anything, or would list everything, is refused at once."""

from typing import cast

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import name_of
from pergola.kube.client import Client
from pergola.kube.errors import InvalidKey
from pergola.kube.selectors import SelectorError
from pergola.runtime.caching.cache import Cache


@pytest.mark.parametrize("namespace", ["", "a/b", ".."])
def test_an_invalid_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidKey, match="ConfigMap: namespace "):
        Cache(cast("Client", None), CONFIG_MAP, name_of, namespace=namespace)


@pytest.mark.parametrize("selection", [{"labels": ""}, {"fields": " "}])
def test_an_empty_selector_is_refused(selection: dict[str, str]) -> None:
    with pytest.raises(SelectorError, match="would select everything"):
        Cache(
            cast("Client", None),
            CONFIG_MAP,
            name_of,
            labels=selection.get("labels"),
            fields=selection.get("fields"),
        )
