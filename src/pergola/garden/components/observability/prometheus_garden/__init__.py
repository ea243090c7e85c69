"""The garden Prometheus: metrics for operators, alerts and metering (spec 20 §16.8).

`component` combines its parts, `scrapes` has the sources of its metrics, and the modules named
`…_rules` its alerts and recording rules.
"""
