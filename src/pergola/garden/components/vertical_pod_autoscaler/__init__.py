"""The vertical pod autoscaler of the runtime cluster (spec 20 §13).

`programs` has its three Deployments and their settings, `permissions` their roles, `objects` the
component.
"""
