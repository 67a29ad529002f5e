{{/* The entries of the ConfigMap, as YAML: `settings` override those of the other values. */}}
{{- define "crewyard.settings" -}}
{{- include "crewyard.over" (list (include "crewyard.made" . | fromYaml) .Values.settings) -}}
{{- end -}}

{{/* Omit values that are the service's defaults. */}}
{{- define "crewyard.made" -}}
{{- $name := include "crewyard.fullname" . -}}
CREWYARD_NAMESPACE: {{ .Values.crews.namespace | quote }}
CREWYARD_INTERNAL_URL: {{ include "crewyard.apiUrl" . | quote }}
CREWYARD_CONTROLLER_URL: {{ printf "http://%s-controller.%s.svc:9090" $name .Release.Namespace | quote }}
CREWYARD_PUBLIC_URL: {{ include "crewyard.publicUrl" . | quote }}
CREWYARD_DATA: /var/lib/crewyard
CREWYARD_SERVICE_IMAGE: {{ include "crewyard.image" . | quote }}
CREWYARD_KANIKO_IMAGE: {{ .Values.builds.kanikoImage | quote }}
CREWYARD_BASE_IMAGES: {{ .Values.builds.baseImages | toRawJson | quote }}
{{- if .Values.internalTls.existingSecret }}
CREWYARD_INTERNAL_TLS_DIR: {{ include "crewyard.tlsDirectory" . | quote }}
CREWYARD_INTERNAL_TLS_URL: {{ printf "https://%s-api.%s.svc:8443" $name .Release.Namespace | quote }}
CREWYARD_INTERNAL_CA_FILE: {{ printf "%s/%s" (ternary (include "crewyard.caDirectory" .) (include "crewyard.tlsDirectory" .) (ne .Values.internalTls.caConfigMap "")) .Values.internalTls.caKey | quote }}
CREWYARD_CONTROLLER_TLS_URL: {{ printf "https://%s-controller.%s.svc:9443" $name .Release.Namespace | quote }}
{{- end }}
{{- if not .Values.internalTls.plain }}
CREWYARD_INTERNAL_PLAIN: "off"
{{- end }}
{{- with .Values.builds.dockerfileImages }}
CREWYARD_DOCKERFILE_IMAGES: {{ . | toRawJson | quote }}
{{- end }}
CREWYARD_REGISTRY: {{ .Values.registry.prefix | quote }}
CREWYARD_REGISTRY_INSECURE: {{ .Values.registry.insecure | toString | quote }}
CREWYARD_REGISTRY_SECRET: {{ .Values.registry.pushSecret | quote }}
{{- $old := lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-config" $name) }}
{{- $kept := get ($old.data | default dict) "CREWYARD_SECRET_USE" }}
CREWYARD_SECRET_USE: {{ .Values.secretUse | default $kept | default (ternary "labelled" "any" (empty $old)) | quote }}
CREWYARD_VERIFY_IMAGES: {{ .Values.signing.verifyImages | toString | quote }}
CREWYARD_LEADER_ELECTION: "on"
CREWYARD_NET_ALLOW: {{ join "," .Values.network.allow | quote }}
CREWYARD_NET_DENY: {{ join "," .Values.network.deny | quote }}
CREWYARD_PLANS: {{ .Values.plans | toRawJson | quote }}
CREWYARD_LIMITS: {{ .Values.limits | toRawJson | quote }}
CREWYARD_LOG_LEVEL: {{ .Values.logLevel | quote }}
{{- with .Values.crews.teams }}
CREWYARD_NAMESPACES: {{ join "," . | quote }}
{{- end }}
{{- with .Values.network.trustedProxies }}
CREWYARD_TRUSTED_PROXIES: {{ join "," . | quote }}
{{- end }}
{{- with .Values.network.contextHosts }}
CREWYARD_CONTEXT_HOSTS: {{ join "," . | quote }}
{{- end }}
{{- with .Values.network.corsOrigins }}
CREWYARD_CORS_ORIGINS: {{ join "," . | quote }}
{{- end }}
{{- with .Values.network.runEgress }}
CREWYARD_RUN_EGRESS: {{ . | toRawJson | quote }}
{{- end }}
{{- with .Values.docsUrl }}
CREWYARD_DOCS_URL: {{ . | quote }}
{{- end }}
{{- with .Values.telemetry.otlp.endpoint }}
CREWYARD_OTLP_ENDPOINT: {{ . | quote }}
{{- end }}
{{- if .Values.telemetry.otlp.content }}
CREWYARD_OTLP_CONTENT: "on"
{{- end }}
{{- with .Values.prices }}
CREWYARD_PRICES: {{ . | toRawJson | quote }}
{{- end }}
{{- if or .Values.proxy.http .Values.proxy.https }}
CREWYARD_BUILD_PROXIES: {{ .Values.proxy | toRawJson | quote }}
{{- end }}
{{- with .Values.pods }}
CREWYARD_PODS: {{ . | toRawJson | quote }}
{{- end }}
{{- if ne (int .Values.builds.maxConcurrent) 2 }}
CREWYARD_MAX_BUILDS: {{ int .Values.builds.maxConcurrent | toString | quote }}
{{- end }}
{{- if ne (int .Values.builds.maxConcurrentPerProject) 1 }}
CREWYARD_MAX_BUILDS_PER_PROJECT: {{ int .Values.builds.maxConcurrentPerProject | toString | quote }}
{{- end }}
{{- if .Values.builds.pullAhead }}
CREWYARD_PULL_AHEAD: "on"
{{- end }}
{{- if not .Values.builds.installInBase }}
CREWYARD_INSTALL_IN_BASE: "off"
{{- end }}
{{- if ne (int .Values.retention.runSeconds) 600 }}
CREWYARD_RUN_TTL: {{ int .Values.retention.runSeconds | toString | quote }}
{{- end }}
{{- if ne (int .Values.retention.runPodSeconds) 120 }}
CREWYARD_RUN_POD_TTL: {{ int .Values.retention.runPodSeconds | toString | quote }}
{{- end }}
{{- if ne (int .Values.retention.recordSeconds) 2592000 }}
CREWYARD_RECORD_TTL: {{ int .Values.retention.recordSeconds | toString | quote }}
{{- end }}
{{- if not .Values.identity.kubernetesTokens }}
CREWYARD_KUBERNETES_TOKENS: "off"
{{- end }}
{{- if ne .Values.identity.kubernetesAudience "crewyard" }}
CREWYARD_TOKEN_AUDIENCE: {{ .Values.identity.kubernetesAudience | quote }}
{{- end }}
{{- with .Values.identity.oidcIssuer }}
CREWYARD_OIDC_ISSUER: {{ . | quote }}
{{- end }}
{{- with .Values.identity.oidcAudience }}
CREWYARD_OIDC_AUDIENCE: {{ . | quote }}
{{- end }}
{{- with .Values.signIn.provider }}
CREWYARD_SIGN_IN: {{ . | toRawJson | quote }}
{{- end }}
{{- if .Values.bucket.url }}
CREWYARD_BLOBS_URL: {{ .Values.bucket.url | quote }}
CREWYARD_BLOBS_PUBLIC_URL: {{ .Values.bucket.publicUrl | quote }}
{{- if .Values.bucket.direct }}
CREWYARD_BLOBS_DIRECT: "true"
{{- end }}
{{- end }}
{{- end -}}
