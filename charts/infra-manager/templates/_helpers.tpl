{{/* The name of all objects. */}}
{{- define "infra-manager.name" -}}
pergola-infra-manager
{{- end -}}

{{/* Labels of all objects, and the selector of the pods. */}}
{{- define "infra-manager.labels" -}}
app.kubernetes.io/name: {{ include "infra-manager.name" . }}
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "infra-manager.job" -}}
{{ include "infra-manager.name" . }}-metrics
{{- end -}}
