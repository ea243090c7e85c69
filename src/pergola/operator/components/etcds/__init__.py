"""The two etcds of the virtual cluster, as `Etcd` objects that druid serves (spec 20 §15.1).

etcd        the objects themselves
access      their certificates
backups     where the main etcd is backed up
schedules   when it is, and when both are defragmented
autoscaling their VerticalPodAutoscalers
metrics     what Prometheus scrapes
"""
