{{/* The name of all objects. */}}
{{- define "dashboard.name" -}}
pergola-dashboard
{{- end -}}

{{/* The name of its cluster-wide permissions, of which each release has its own. */}}
{{- define "dashboard.role" -}}
pergola:dashboard:{{ .Release.Namespace }}
{{- end -}}

{{/* The Service that Prometheus scrapes; it is the label `job` of the metrics. */}}
{{- define "dashboard.job" -}}
{{ include "dashboard.name" . }}-metrics
{{- end -}}

{{/* Labels of all objects, and the selector of the pods. */}}
{{- define "dashboard.labels" -}}
app.kubernetes.io/name: {{ include "dashboard.name" . }}
{{- end -}}
