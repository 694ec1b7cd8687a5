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

{{/* Value of --publish; empty: the agent's own default. Aliases that count functions need pf. */}}
{{- define "twinrail.publish" -}}
{{- if .Values.publish -}}
{{- join "," .Values.publish -}}
{{- else if or .Values.aliases.mrdma .Values.aliases.roce -}}
card,nic,pf{{ if eq (include "twinrail.gpu" .) "own" }},gpu{{ end }}
{{- end -}}
{{- end -}}

{{/* Refuse values that contradict each other. */}}
{{- define "twinrail.check" -}}
{{- if and (or .Values.aliases.mrdma .Values.aliases.dranetRdma .Values.aliases.roce) (not .Values.mirror) -}}
{{- fail "aliases.* select on dra.net/rdma, which \"mirror: false\" does not publish: set mirror to true or the aliases to false" -}}
{{- end -}}
{{- if and (has "gpu" .Values.publish) (eq (include "twinrail.gpu" .) "off") -}}
{{- fail "publish contains gpu although \"gpu: off\" leaves GPUs to their vendor's driver: set gpu to own or take gpu out of publish" -}}
{{- end -}}
{{- if and .Values.publish (eq (include "twinrail.gpu" .) "own") (not (has "gpu" .Values.publish)) -}}
{{- fail "\"gpu: own\" is set, but publish does not contain gpu: add it, or set gpu to off" -}}
{{- end -}}
{{- end -}}
