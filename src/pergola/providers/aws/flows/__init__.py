"""The flows of an Infrastructure: which steps there are, in which order, and running them.

reconcile  the graph that creates a cluster's infrastructure and keeps it
delete     the graph that deletes it
run        plans a graph without changing anything, and runs it
"""
