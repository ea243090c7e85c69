{{/* The name of all objects; the registration in webhook.yaml names the Service, too. */}}
{{- define "infra-manager.name" -}}
pergola-infra-manager
{{- end -}}

{{/* Labels of all objects, and the selector of the pods. */}}
{{- define "infra-manager.labels" -}}
app.kubernetes.io/name: {{ include "infra-manager.name" . }}
{{- end -}}
