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

{{/* The plural that Kubernetes would guess for a kind with its group. */}}
{{- define "infra-manager.plural" -}}
{{- $kind := splitList "." . | first | lower -}}
{{- if hasSuffix "s" $kind -}}
{{ $kind }}es
{{- else if hasSuffix "y" $kind -}}
{{ trimSuffix "y" $kind }}ies
{{- else -}}
{{ $kind }}s
{{- end -}}
{{- end -}}

{{/* The group of a kind with its group. */}}
{{- define "infra-manager.group" -}}
{{ splitList "." . | rest | join "." }}
{{- end -}}

{{/* A rule for each kind of InfraClusters. */}}
{{- define "infra-manager.rules" -}}
{{- range .Values.kinds }}
{{- $plural := include "infra-manager.plural" . }}
- apiGroups: [{{ include "infra-manager.group" . }}]
  resources: [{{ $plural }}, {{ $plural }}/status]
  verbs: [get, list, watch, patch]
{{- end }}
{{- end -}}

{{/*
What the names of cluster-wide objects end with: a cluster may have several infra managers, each for
a namespace. Expects the root and a separator.
*/}}
{{- define "infra-manager.suffix" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.watchNamespace -}}
{{ index $ 1 }}{{ $root.Release.Namespace }}
{{- end -}}
{{- end -}}
