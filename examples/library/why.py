"""Explanations: `pergola.why`."""

from pergola.api import GroupVersionKind, JsonObject, Key, name_of
from pergola.kube import Client
from pergola.manifests import manifest
from pergola.why import (
    Answer,
    Asked,
    Evidence,
    Explainer,
    Kind,
    Part,
    Reader,
    Statement,
    Topic,
    data_of,
    explain,
    explain_object,
)

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


async def explain_pizza(asked: Asked, reader: Reader) -> Part:
    """Return what is to be said about a ConfigMap with a pizza."""
    owner = await reader.find(CONFIG_MAP, Key(asked.key.namespace, "menu"))
    text = "the menu has it" if owner else "no menu has it"
    evidence = Evidence(Kind.FIELD, "data.pizza")
    said = Statement(topic=Topic.DECIDED, subject="pizza", text=text, evidence=(evidence,))
    return Part(statements=(said,), next_steps=("write a menu",))


def is_pizza(obj: JsonObject) -> bool:
    """Return whether an object is a pizza."""
    return name_of(obj).startswith("pizza")


async def explanations(client: Client, namespace: str) -> None:
    """Explain an object, with an explainer of your own."""
    obj = await client.create(manifest("v1", "ConfigMap", "pizza-1", namespace=namespace))
    own = Explainer("pizza", is_pizza, explain_pizza)
    answer = await explain(client, CONFIG_MAP, Key.of(obj), [own])
    assert isinstance(answer, Answer)
    assert "no menu has it" in str(data_of(answer))
    same = await explain_object(client, obj, [own])
    assert same.next_steps == answer.next_steps
