{{/* What the schema cannot say of two values together. */}}
{{- define "crewyard.refusals" -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.database.existingSecret) -}}
{{- fail (printf "api.replicas is %d, but the index is SQLite, which has one writer: name a Secret with the address of a PostgreSQL in database.existingSecret, or set api.replicas to 1" (int .Values.api.replicas)) -}}
{{- end -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.bucket.url) -}}
{{- fail (printf "api.replicas is %d, but artifacts would be on a volume that one replica has: set bucket.url, or set api.replicas to 1" (int .Values.api.replicas)) -}}
{{- end -}}
{{- if and .Values.ca.configMap .Values.ca.secret -}}
{{- fail "ca.configMap and ca.secret are both set: name one of them" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled is true: set ingress.host to the name that clients use" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- fail "gateway.enabled is true: name the Gateway in gateway.parentRefs" -}}
{{- end -}}
{{- if and .Values.bucket.direct (not .Values.bucket.publicUrl) -}}
{{- fail "bucket.direct is true: set bucket.publicUrl to the address at which clients reach the bucket" -}}
{{- end -}}
{{- if eq .Values.crews.namespace .Release.Namespace -}}
{{- fail (printf "crews.namespace is %s, which is the release's own: crews run beside nothing that holds a Secret of the service; name another one" .Values.crews.namespace) -}}
{{- end -}}
{{- $secrets := dict "CREWYARD_TOKEN_KEY" "tokens" "CREWYARD_ADMIN_KEYS" "adminKeys" "CREWYARD_DATABASE_URL" "database" -}}
{{- $secrets = merge $secrets (dict "CREWYARD_RATE_LIMIT_URL" "rateLimit") -}}
{{- $secrets = merge $secrets (dict "AWS_SECRET_ACCESS_KEY" "bucket" "AWS_SESSION_TOKEN" "bucket") -}}
{{- range $name, $place := $secrets -}}
{{- if hasKey $.Values.settings $name -}}
{{- fail (printf "settings.%s would lie in a ConfigMap: use %s.existingSecret" $name $place) -}}
{{- end -}}
{{- end -}}
{{/* What only renders, as Argo CD does, sees no Secret and would draw another key each time. It gives itself away by
kinds that no rendering without a cluster knows; the first time they are not all there, and one key is right. */}}
{{- $there := lookup "apps/v1" "Deployment" .Release.Namespace "" -}}
{{- if and (not .Values.tokens.existingSecret) (not $there) -}}
{{- if or (.Capabilities.APIVersions.Has "crewyard.dev/v1alpha1") (.Capabilities.APIVersions.Has "argoproj.io/v1alpha1") -}}
{{- fail "tokens.existingSecret is empty, and this rendering cannot see the Secret that is there: it would draw another key of all tokens each time, and running crews would lose theirs. Make the Secret once and name it there (docs/installation.md, Argo CD); with helm diff, or helm itself, add --dry-run=server" -}}
{{- end -}}
{{- end -}}
{{/* Services and policies know their pods by labels that all releases have alike. */}}
{{- range $there.items -}}
{{- $other := dig "metadata" "annotations" "meta.helm.sh/release-name" $.Release.Name . -}}
{{- if and (eq (dig "metadata" "labels" "app.kubernetes.io/name" "" .) "crewyard") (ne $other $.Release.Name) -}}
{{- fail (printf "the namespace %s has the release %s of Crewyard already, and each would answer for the other: install this one into another namespace" $.Release.Namespace $other) -}}
{{- end -}}
{{- end -}}
{{- end -}}
