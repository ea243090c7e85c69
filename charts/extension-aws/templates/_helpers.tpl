{{/* The name of all objects. */}}
{{- define "extension.name" -}}
{{ .Chart.Name }}
{{- end -}}

{{/* The labels by which the Deployment and the Service find the pods. They cannot change. */}}
{{- define "extension.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end -}}

{{- define "extension.labels" -}}
{{ include "pergola.labels" (list . "extension") }}
{{- end -}}

{{/* The name of cluster-wide permissions. A runtime cluster that is a Seed, too, has the chart twice. */}}
{{- define "extension.role" -}}
extension-{{ .Chart.Name }}
{{- if eq (toString .Values.gardener.runtimeCluster.enabled) "true" -}}
-garden
{{- end -}}
{{- end -}}

{{/* The classes that are served: in the runtime cluster of a Garden, those of the garden. */}}
{{- define "extension.classes" -}}
{{- if eq (toString .Values.gardener.runtimeCluster.enabled) "true" -}}
garden
{{- else -}}
{{ join "," .Values.classes }}
{{- end -}}
{{- end -}}

{{/* The ring that each replica joins as a shard. A Garden has too few resources for one. */}}
{{- define "extension.ring" -}}
{{- if ne (toString .Values.gardener.runtimeCluster.enabled) "true" -}}
{{ .Values.sharding.controllerRing | default "" }}
{{- end -}}
{{- end -}}

{{/* Whether ControlPlanes are served: "true" or empty. A Garden has none. */}}
{{- define "extension.controlPlanes" -}}
{{- if and .Values.controlPlanes.enabled (ne (toString .Values.gardener.runtimeCluster.enabled) "true") -}}
true
{{- end -}}
{{- end -}}

{{/* Whether Workers are served: "true" or empty. A Garden has none. */}}
{{- define "extension.workers" -}}
{{- if and .Values.workers.enabled (ne (toString .Values.gardener.runtimeCluster.enabled) "true") -}}
true
{{- end -}}
{{- end -}}

{{/* The controllers that do not run, separated by commas. */}}
{{- define "extension.disabled" -}}
{{- $disabled := list -}}
{{- if not (include "extension.controlPlanes" .) -}}
{{- $disabled = concat $disabled (list "controlplane" "controlplane-healthcheck" "controlplane-hibernation") -}}
{{- end -}}
{{- if not (include "extension.workers" .) -}}
{{- $disabled = concat $disabled (list "worker" "worker-healthcheck" "worker-updates") -}}
{{- end -}}
{{ join "," $disabled }}
{{- end -}}

{{/* The webhooks that are not served: those for volumes need a Seed in AWS that grows its volumes. */}}
{{- define "extension.disabledWebhooks" -}}
{{- $seed := .Values.gardener.seed | default dict -}}
{{- if not (and (eq (dig "provider" "" $seed) "aws") (dig "spec" "settings" "persistentVolumeClaimAutoscaler" "enabled" false $seed)) -}}
seed-pvca
{{- end -}}
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "extension.job" -}}
{{ .Chart.Name }}-metrics
{{- end -}}
