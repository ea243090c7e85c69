"""The dashboard of Gardener (spec 20 §16.6).

settings       its hosts, and the API server that it presents to users
configuration  its configuration file and the options of its login page
workload       the Deployment and its companions
exposure       its routes through the ingress gateway
permissions    its roles in the virtual cluster
component      the component itself
"""
