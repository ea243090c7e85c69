"""fluent-bit: reads the logs of all pods and system services of each node (spec 20 §16.8).

`component` describes the DaemonSet for fluent-operator, `pipeline` the steps for all logs,
`custom_resources` those for the logs of individual components, and `resources` builds the custom
resources of both.
"""
