"""Webhooks around extensions: a library that a provider configures with data (spec 40 §7).

declare             what a webhook is: registration and handler together
mutation            how all mutating webhooks behave
network_mutator     a cloud fits Networks to itself
provider_configs    rules for `providerConfig`, as data
clouds              such rules for clouds
shoot_mutator       defaults in Shoots, as data
shoot_validator     a network plugin refuses Shoots
objects_mutator     objects of control planes and inside of Shoots
settings            where the server is reached, and what is switched off
shoot_registration  webhooks that are registered inside of Shoots
admission           what a network plugin says to Shoots
permissions         what serving needs to be allowed
serving             all of that served, registered, and with certificates

Import from the modules: an actuator names `declare.Webhook`, and some of the others name actuators.
"""
