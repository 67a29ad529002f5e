{{/* What the pods of api and controller have alike, below `spec`. */}}
{{- define "crewyard.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* The environment that has the ways out: proxies and authorities. */}}
{{- define "crewyard.wayOut" -}}
{{- range $name, $value := dict "HTTP_PROXY" .Values.proxy.http "HTTPS_PROXY" .Values.proxy.https }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if or .Values.proxy.http .Values.proxy.https }}
- name: NO_PROXY
  value: {{ include "crewyard.noProxy" . | quote }}
{{- end }}
{{- if or .Values.ca.configMap .Values.ca.secret }}
- name: CREWYARD_CA
  valueFrom:
    {{- if .Values.ca.configMap }}
    configMapKeyRef:
      name: {{ .Values.ca.configMap }}
      key: {{ .Values.ca.key }}
    {{- else }}
    secretKeyRef:
      name: {{ .Values.ca.secret }}
      key: {{ .Values.ca.key }}
    {{- end }}
# Also for commands that are run in the pod later; the process itself writes the file first.
- name: SSL_CERT_FILE
  value: /tmp/crewyard-authorities.crt
- name: REQUESTS_CA_BUNDLE
  value: /tmp/crewyard-authorities.crt
{{- end }}
{{- end -}}

{{/* What is in the cluster is never asked for by a proxy: the apiserver by its address, Services by their names. */}}
{{- define "crewyard.noProxy" -}}
{{- join "," (compact (list "localhost" "127.0.0.1" ".svc" ".cluster.local" "$(KUBERNETES_SERVICE_HOST)" .Values.proxy.except)) -}}
{{- end -}}

{{- define "crewyard.command" -}}
{{- $root := index . 0 -}}
[python3, {{ if or $root.Values.ca.configMap $root.Values.ca.secret }}-m, outbound.authorities, python3, {{ end }}-m, {{ index . 1 }}]
{{- end -}}
