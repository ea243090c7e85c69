"""The garden Prometheus: metrics for operators, alerts and metering (spec 20 §16.8).

`component` combines its parts, and `scrapes` has the sources of its metrics. Its alerts and
recording rules are files in `components/prometheus_rules`, except those of metering:
`metering_rules` generates them from tables, and a file would have twice the lines and three times
the characters.
"""
