{{/* The name of the component and of all its objects. */}}
{{- define "admission.component" -}}
admission-{{ .Values.extension }}
{{- end -}}

{{/* The name of its webhook configurations and of the Service by which the API server reaches it. */}}
{{- define "admission.service" -}}
gardener-extension-{{ include "admission.component" . }}
{{- end -}}

{{/* Labels of all objects, and the selector of the pods. */}}
{{- define "admission.labels" -}}
app.kubernetes.io/name: {{ include "admission.component" . }}
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "admission.job" -}}
{{ include "admission.component" . }}-metrics
{{- end -}}
