"""The operator: maintains a Garden, which is everything a Gardener landscape needs (spec 20).

`garden` reconciles a Garden, `components` are the parts that it is made of, `webhooks` admit
Gardens and related objects, and `known` holds facts about versions of Kubernetes and Gardener.

Not for: what a resource manager does with the objects, which is in `pergola.resource_manager`.
"""
