{{- define "trainmedic.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "trainmedic.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trainmedic.labels" -}}
{{ include "trainmedic.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "trainmedic.several" -}}
{{- if or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled }}yes{{ end -}}
{{- end -}}

{{/* A value as a string: numbers as they are written, not as 1e+06. */}}
{{- define "trainmedic.string" -}}
{{- if kindIs "string" . }}{{ . | quote }}{{ else }}{{ . | toJson | quote }}{{ end -}}
{{- end -}}

{{/* A map whose values Kubernetes wants to be strings. */}}
{{- define "trainmedic.strings" -}}
{{- $strings := dict }}
{{- range $name, $value := . }}
{{- $_ := set $strings $name (ternary $value (toJson $value) (kindIs "string" $value)) }}
{{- end }}
{{- toYaml $strings }}
{{- end -}}

{{/* Replicas count requests together, unless the settings say where. */}}
{{- define "trainmedic.countTogether" -}}
{{- if and (include "trainmedic.several" .) (not (hasKey .Values.settings "rate_limit_storage")) (not (has "rate_limit_storage" .Values.secret.settings)) }}yes{{ end -}}
{{- end -}}
