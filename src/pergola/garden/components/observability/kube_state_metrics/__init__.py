"""kube-state-metrics: metrics about the objects of the runtime cluster (spec 20 §16.8).

`component` runs it, and `custom_resources` configures metrics of Gardens and autoscalers.
"""
