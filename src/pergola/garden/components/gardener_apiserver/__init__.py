"""gardener-apiserver: serves the API groups of Gardener (spec 20 §16.2).

workload      the Deployment and its companions, in the runtime cluster
registration  its APIServices and permissions in the virtual cluster
component     the component itself
"""
