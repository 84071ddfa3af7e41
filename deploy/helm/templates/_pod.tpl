{{/*
A deployment of fhirpub. It gets root (the context of the template), part, command, replicas,
workers, resources, and ports, probes and variables of this part as text.
*/}}
{{- define "fhirpub.deployment" -}}
{{- $values := .root.Values -}}
{{- $name := include "fhirpub.name" .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}-{{ .part }}
  labels:
    {{- include "fhirpub.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .part }}
spec:
  replicas: {{ .replicas }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels:
      {{- include "fhirpub.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .part }}
  template:
    metadata:
      labels:
        {{- include "fhirpub.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .part }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/config: {{ $values.config | sha256sum }}
        {{- if not $values.store.existingSecret }}
        checksum/store: {{ $values.store.url | sha256sum }}
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        seccompProfile: {type: RuntimeDefault}
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "fhirpub.selector" .root | nindent 14 }}
              app.kubernetes.io/component: {{ .part }}
      containers:
        - name: fhirpub
          image: {{ printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion) | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [{{ .command }}]
          env:
            - {name: FHIRPUB_SERVER__HOST, value: "0.0.0.0"}
            - {name: FHIRPUB_SERVER__PORT, value: "8080"}
            - {name: FHIRPUB_SERVER__WORKERS, value: {{ .workers | quote }}}
            - {name: FHIRPUB_SERVER__BASE_URL, value: {{ $values.baseUrl | quote }}}
            - {name: FHIRPUB_AUTH__AUDIENCE, value: {{ $values.audience | default (printf "%s/fhir" (trimSuffix "/" $values.baseUrl)) | quote }}}
            - {name: FHIRPUB_METRICS__HOST, value: "0.0.0.0"}
            - {name: FHIRPUB_METRICS__PORT, value: {{ $values.metrics.port | quote }}}
            - {name: FHIRPUB_LOGS__FORMAT, value: json}
            - {name: FHIRPUB_WEBHOOKS__DISPATCH_IN_SERVER, value: {{ not $values.dispatcher.enabled | quote }}}
            - {name: FHIRPUB_STORAGE__KEYS_FILE, value: /etc/fhirpub/store/keys}
            - name: FHIRPUB_STORAGE__URL
              valueFrom:
                secretKeyRef: {name: {{ include "fhirpub.secret" .root }}, key: url}
            {{- with .env }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with $values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- .ports | nindent 12 }}
          {{- .probes | nindent 10 }}
          lifecycle:
            preStop:
              exec:
                command: [/opt/fhirpub/bin/python, -c, "import time; time.sleep({{ $values.preStopSeconds }})"]
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          resources:
            {{- toYaml .resources | nindent 12 }}
          volumeMounts:
            - {name: config, mountPath: /etc/fhirpub/fhirpub.toml, subPath: fhirpub.toml, readOnly: true}
            # Without subPath: a key that is replaced in the Secret reaches the running processes.
            - {name: store, mountPath: /etc/fhirpub/store, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- with $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: config
          configMap: {name: {{ $name }}}
        - name: store
          secret:
            secretName: {{ include "fhirpub.secret" .root }}
            defaultMode: 0440
            items: [{key: keys, path: keys}]
        - name: tmp
          emptyDir: {sizeLimit: 64Mi}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
