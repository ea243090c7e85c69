"""The dashboard of Gardener (spec 20 §16.6).

settings       which hosts it has, and what it shows users as the API server
configuration  its configuration file, and what its login page offers
workload       the Deployment and what surrounds it
exposure       how users reach it
permissions    what it may do in the virtual cluster
component      the component itself
"""
