"""A stand-in for opentelemetry-operator: it runs collectors of mode `deployment`.

Of an OpenTelemetryCollector it reads the pod's fields and the ports of the OTLP receiver. It makes
a Deployment and a Service, and reports the scale that autoscalers read. It does not translate the
configuration into anything: the sandbox's collector answers probes only.
"""
