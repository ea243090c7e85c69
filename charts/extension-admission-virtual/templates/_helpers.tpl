{{/* The name of the component and of all its objects. */}}
{{- define "admission.name" -}}
admission-{{ .Values.extension }}
{{- end -}}

{{/* The name of its webhook configurations and of the Service by which the API server reaches it. */}}
{{- define "admission.service" -}}
gardener-extension-{{ include "admission.name" . }}
{{- end -}}

{{/* The labels of the pods in the runtime cluster. */}}
{{- define "admission.selector" -}}
app.kubernetes.io/name: {{ include "admission.name" . }}
{{- end -}}

{{- define "admission.labels" -}}
{{ include "pergola.labels" (list . "admission") }}
{{- end -}}
