{{- /* What pods have in common. Each takes the name of the program and the chart's context. */ -}}

{{- define "notifyproject.labels" -}}
app.kubernetes.io/name: notifyproject
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{- define "notifyproject.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "notifyproject.annotations" -}}
checksum/settings: {{ toYaml .Values.settings | sha256sum }}
{{- with .Values.pods.annotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "notifyproject.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
volumes:
  - { name: tmp, emptyDir: { medium: Memory, sizeLimit: 64Mi } }
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.pods.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "notifyproject.container" -}}
image: {{ include "notifyproject.image" . }}
envFrom:
  - configMapRef: { name: notifyproject-settings }
  - secretRef: { name: {{ .Values.secret }} }
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
{{- end -}}
