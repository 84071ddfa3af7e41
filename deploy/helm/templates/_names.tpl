{{- define "fhirpub.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "fhirpub.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fhirpub.labels" -}}
{{ include "fhirpub.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "fhirpub.secret" -}}
{{ .Values.store.existingSecret | default (printf "%s-store" (include "fhirpub.name" .)) }}
{{- end -}}

{{/* The ports of the metrics of a pod: one for each worker. */}}
{{- define "fhirpub.metricsPorts" -}}
{{- range $number := until (int .workers) }}
- name: {{ eq $number 0 | ternary "metrics" (printf "metrics-%d" $number) }}
  {{ $.key }}: {{ add (int $.first) $number }}
  protocol: TCP
{{- end }}
{{- end -}}
