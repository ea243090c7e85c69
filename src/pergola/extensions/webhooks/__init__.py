"""Webhooks of extensions: a library that a provider configures with data (spec 40 §7).

declare             names of webhooks, disabled webhooks, several owners in one server
mutation            the common behaviour of mutating webhooks
network_mutator     adapt Networks to a cloud
provider_configs    rules for `providerConfig`, as data
clouds              such rules for clouds
shoot_mutator       defaults in Shoots, as data
shoots              selectors of Shoots, and when defaults do not apply
objects_mutator     change objects of control planes and inside Shoots
garden              cached reads of the garden
settings            the server's address, and disabled webhooks
shoot_registration  webhooks registered inside Shoots
admission           the admission component at the garden
permissions         RBAC of a component with webhooks
serving             the webhook server of an extension process

A webhook itself is a `pergola.admission.Webhook`.
"""
