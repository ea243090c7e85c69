"""fluent-bit: reads the logs of all pods and system services of each node (spec 20 §16.8).

`component` describes the DaemonSet to fluent-operator, `pipeline` what every log passes,
`custom_resources` how the logs of single components are read, and `resources` the shapes that they
share.
"""
