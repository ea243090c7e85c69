"""The flows of an Infrastructure: their steps, the order of the steps, and runs.

reconcile  the graph that creates a cluster's infrastructure and keeps it
delete     the graph that deletes it
run        plans a graph without changing anything, and runs it
"""
