"""Run Pergola in each place in which Gardener's own code deploys a resource manager.

    python -m conformance.places             all nine places
    python -m conformance.places seed shoot  some of them

`oracle/gardener/places.go` deploys it with the originals' constructors, and waits with their waits.
A process node runs the container with its arguments, environment and files, with a token of its
ServiceAccount, and with the permissions that were deployed.

catalogue   the places, each with its checks
clusters    the source and target cluster of a place
deployment  what the original's code is asked
run         one place, from its clusters to its outcome
audit       the requests of the resource manager, from the API servers' logs
results     the outcomes of the last saved run, which the documentation shows
checks/     what a resource manager applies, mutates, approves and refuses
"""
