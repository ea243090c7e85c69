{{/* The name of all objects. */}}
{{- define "infra-manager.name" -}}
pergola-infra-manager
{{- end -}}

{{/* The labels by which the Deployment and the Service find the pods. They cannot change. */}}
{{- define "infra-manager.selector" -}}
app.kubernetes.io/name: {{ include "infra-manager.name" . }}
{{- end -}}

{{- define "infra-manager.labels" -}}
{{ include "pergola.labels" (list . "infra-manager") }}
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "infra-manager.job" -}}
{{ include "infra-manager.name" . }}-metrics
{{- end -}}

{{/* A rule for each kind of InfraClusters, by the plural that Kubernetes would guess. */}}
{{- define "infra-manager.rules" -}}
{{- range .Values.kinds }}
{{- $kind := splitList "." . | first | lower }}
{{- $plural := printf "%ss" $kind }}
{{- if hasSuffix "s" $kind }}
{{- $plural = printf "%ses" $kind }}
{{- else if hasSuffix "y" $kind }}
{{- $plural = printf "%sies" (trimSuffix "y" $kind) }}
{{- end }}
- apiGroups: [{{ splitList "." . | rest | join "." }}]
  resources: [{{ $plural }}, {{ $plural }}/status]
  verbs: [get, list, watch, patch]
{{- end }}
{{- end -}}
