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

{{/* The labels by which the Deployment and the Service find the pods. They cannot change. */}}
{{- define "dashboard.selector" -}}
app.kubernetes.io/name: {{ include "dashboard.name" . }}
{{- end -}}

{{- define "dashboard.labels" -}}
{{ include "pergola.labels" (list . "dashboard") }}
{{- end -}}
