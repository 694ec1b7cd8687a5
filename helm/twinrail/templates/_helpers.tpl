{{/* Name of all objects: the release's name, with "twinrail" in it. */}}
{{- define "twinrail.fullname" -}}
{{- if contains "twinrail" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-twinrail" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "twinrail.selectorLabels" -}}
app.kubernetes.io/name: twinrail
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "twinrail.labels" -}}
{{ include "twinrail.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "twinrail.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* "off" or "own": a bare off in a YAML file arrives as false. */}}
{{- define "twinrail.gpu" -}}
{{- .Values.gpu | default "off" -}}
{{- end -}}

{{/*
Value of TWINRAIL_PUBLISH; empty: the agent's own default. Aliases that count functions need pf,
"gpu: own" needs gpu.
*/}}
{{- define "twinrail.publish" -}}
{{- $kinds := .Values.publish -}}
{{- if and (not $kinds) (or .Values.aliases.mrdma .Values.aliases.roce) -}}
{{- $kinds = list "card" "nic" "pf" -}}
{{- end -}}
{{- if and $kinds (eq (include "twinrail.gpu" .) "own") -}}
{{- $kinds = append $kinds "gpu" | uniq -}}
{{- end -}}
{{- join "," $kinds -}}
{{- end -}}

{{/* Refuse values that contradict each other. */}}
{{- define "twinrail.check" -}}
{{- if and (or .Values.aliases.mrdma .Values.aliases.dranetRdma .Values.aliases.roce) (not .Values.mirror) -}}
{{- fail "aliases.* select on dra.net/rdma, which \"mirror: false\" does not publish: set mirror to true or the aliases to false" -}}
{{- end -}}
{{- if and (has "gpu" .Values.publish) (eq (include "twinrail.gpu" .) "off") -}}
{{- fail "publish contains gpu although \"gpu: off\" leaves GPUs to their vendor's driver: set gpu to own or take gpu out of publish" -}}
{{- end -}}
{{- end -}}
