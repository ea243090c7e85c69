"""The two etcds of the virtual cluster, as `Etcd` objects that druid reconciles (spec 20 §15.1).

etcd        the objects themselves
access      their certificates
backups     the object store for backups of the main etcd
schedules   the times of full backups and of defragmentation
autoscaling their VerticalPodAutoscalers
metrics     their ServiceMonitors
"""
