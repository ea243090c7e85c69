"""The webhook configurations of a resource manager, for components that deploy one."""

from pergola.admission.configurations import by_service
from pergola.admission.webhook import registrations
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config import configuration_from
from pergola.resource_manager.serving import render
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.installation import Installation


def garden_webhooks(config: JsonObject, bundle: bytes) -> list[JsonObject]:
    """Return the webhook configurations for the runtime cluster of a garden.

    Args:
        config: The configuration file; only enabled webhooks are registered.
        bundle: The certificates that the API server must trust, PEM.

    Raises:
        ConfigurationInvalid: The configuration is not valid.
    """
    settings = configuration_from(config).config
    place = Installation("runtime", garden=True)
    entries = registrations(webhooks(settings.webhooks, Dependencies(place, DocumentLookups([]))))
    return render(place, entries, by_service(place.name, place.namespace), bundle)
