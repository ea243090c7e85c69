{{/* The name of the component and of all its objects. */}}
{{- define "admission.name" -}}
admission-{{ .Values.extension }}
{{- end -}}

{{/* The name of its webhook configurations and of the Service by which the API server reaches it. */}}
{{- define "admission.service" -}}
gardener-extension-{{ include "admission.name" . }}
{{- end -}}

{{/* The labels by which the Deployment and the Service find the pods. They cannot change. */}}
{{- define "admission.selector" -}}
app.kubernetes.io/name: {{ include "admission.name" . }}
{{- end -}}

{{- define "admission.labels" -}}
{{ include "pergola.labels" (list . "admission") }}
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "admission.job" -}}
{{ include "admission.name" . }}-metrics
{{- end -}}
