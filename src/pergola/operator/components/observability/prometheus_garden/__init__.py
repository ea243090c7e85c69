"""The garden Prometheus: the entry point for operators, and the aggregator of metering (§16.8).

`component` puts it together, `scrapes` says where its metrics come from, and the modules named
`…_rules` what it evaluates.
"""
