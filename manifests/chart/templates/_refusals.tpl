{{/* Checks of combinations of values, which the schema cannot express. */}}
{{- define "crewyard.refusals" -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.database.existingSecret) -}}
{{- fail (printf "api.replicas is %d, but the index is SQLite, which supports one writer: name a Secret with the URL of a PostgreSQL database in database.existingSecret, or set api.replicas to 1" (int .Values.api.replicas)) -}}
{{- end -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.bucket.url) -}}
{{- fail (printf "api.replicas is %d, but artifacts would be on a volume of one replica: set bucket.url, or set api.replicas to 1" (int .Values.api.replicas)) -}}
{{- end -}}
{{- if and .Values.network.runEgress (not .Values.networkPolicies.enabled) -}}
{{- fail "network.runEgress is set, but networkPolicies.enabled is false: a policy that allows one connection would block all others of those runs; set networkPolicies.enabled to true, or network.runEgress to []" -}}
{{- end -}}
{{- if and (not .Values.internalTls.plain) (not .Values.internalTls.existingSecret) -}}
{{- fail "internalTls.plain is false, but no pod could reach the API server: name the Secret with its certificate in internalTls.existingSecret" -}}
{{- end -}}
{{- if and .Values.internalTls.caConfigMap (not .Values.internalTls.existingSecret) -}}
{{- fail "internalTls.caConfigMap is set: name the Secret with the certificate of the API server in internalTls.existingSecret" -}}
{{- end -}}
{{- if and .Values.ca.configMap .Values.ca.secret -}}
{{- fail "ca.configMap and ca.secret are both set: name one of them" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled is true: set ingress.host to the host name that clients use" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- fail "gateway.enabled is true: name the Gateway in gateway.parentRefs" -}}
{{- end -}}
{{- if and .Values.bucket.direct (not .Values.bucket.publicUrl) -}}
{{- fail "bucket.direct is true: set bucket.publicUrl to the URL of the bucket for clients" -}}
{{- end -}}
{{- if eq .Values.crews.namespace .Release.Namespace -}}
{{- fail (printf "crews.namespace is %s, which is the release's own: crews must not run in the namespace of the service's Secrets; name another namespace" .Values.crews.namespace) -}}
{{- end -}}
{{- range .Values.crews.teams -}}
{{- if or (eq . $.Release.Namespace) (eq . $.Values.crews.namespace) -}}
{{- fail (printf "crews.teams has %s, which is the namespace of the release or crews.namespace: name others only" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.signing.verifyImages (not .Values.signing.existingSecret) -}}
{{- fail "signing.verifyImages is true: name the Secret with the key in signing.existingSecret" -}}
{{- end -}}
{{- $secrets := dict "CREWYARD_TOKEN_KEY" "tokens" "CREWYARD_OTHER_TOKEN_KEYS" "tokens" "CREWYARD_ADMIN_KEYS" "adminKeys" "CREWYARD_DATABASE_URL" "database" -}}
{{- $secrets = merge $secrets (dict "CREWYARD_RATE_LIMIT_URL" "rateLimit" "CREWYARD_SIGN_IN_SECRET" "signIn" "CREWYARD_OTLP_HEADERS" "telemetry.otlp") -}}
{{- $secrets = merge $secrets (dict "CREWYARD_SIGNING_KEY" "signing" "AWS_SECRET_ACCESS_KEY" "bucket" "AWS_SESSION_TOKEN" "bucket") -}}
{{- range $name, $place := $secrets -}}
{{- if hasKey $.Values.settings $name -}}
{{- fail (printf "settings.%s would be stored in a ConfigMap: use %s.existingSecret" $name $place) -}}
{{- end -}}
{{- end -}}
{{/* A tool that only renders, like Argo CD, cannot see the Secret and would draw another key each time. It is detected by
API versions that no rendering without a cluster has; at the first installation they are missing, and one key is right. */}}
{{- $there := lookup "apps/v1" "Deployment" .Release.Namespace "" -}}
{{- $rendersOnly := or (.Capabilities.APIVersions.Has "crewyard.dev/v1alpha1") (.Capabilities.APIVersions.Has "argoproj.io/v1alpha1") -}}
{{- if and $rendersOnly (not $there) -}}
{{- if not .Values.tokens.existingSecret -}}
{{- fail "tokens.existingSecret is empty, and this rendering cannot read the existing Secret: it would draw another key of all tokens each time, and the tokens of running crews would become invalid. Create the Secret once and set tokens.existingSecret (docs/installation.md, Argo CD); with helm diff, or helm itself, add --dry-run=server" -}}
{{- end -}}
{{- if not (or .Values.secretUse .Values.settings.CREWYARD_SECRET_USE) -}}
{{- fail "secretUse is empty, and this rendering cannot see what the release has: set it to any or labelled (docs/installation.md, Argo CD); with helm diff, or helm itself, add --dry-run=server" -}}
{{- end -}}
{{- end -}}
{{/* Services and policies select their pods by labels that are the same in all releases. */}}
{{- range $there.items -}}
{{- $other := dig "metadata" "annotations" "meta.helm.sh/release-name" $.Release.Name . -}}
{{- if and (eq (dig "metadata" "labels" "app.kubernetes.io/name" "" .) "crewyard") (ne $other $.Release.Name) -}}
{{- fail (printf "the namespace %s already has the release %s of Crewyard, and the Services of both would select the pods of both: install this one into another namespace" $.Release.Namespace $other) -}}
{{- end -}}
{{- end -}}
{{- end -}}
