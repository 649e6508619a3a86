//go:build e2e

package rig

// kubeStages is what kwok does with nodes and pods: a pod on a node starts at once; it
// ends after its annotation rig/run-for, with the exit code of rig/exit; one that is
// labelled rig-restart restarts once before. The annotations rig/start, rig/crash, rig/again
// and rig/stop may give the times: kwok repeats a change of which it did not hear that it
// was made, as no kubelet does with other times. Pods that are deleted go at once, unless
// a finalizer holds them.
const kubeStages = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.startTime', operator: DoesNotExist}
  next:
    statusTemplate: |
      {{ $now := or (index (or .metadata.annotations dict) "rig/start") Now }}
      initContainerStatuses:
      {{ range .spec.initContainers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: true
        restartCount: 0
        {{ if eq .restartPolicy "Always" }}
        started: true
        state: {running: {startedAt: {{ $now | Quote }}}}
        {{ else }}
        state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
        {{ end }}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: true
        restartCount: 0
        state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
      phase: Running
      startTime: {{ $now | Quote }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-restart}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.metadata.labels["rig-restart"]', operator: Exists}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.status.containerStatuses.[0].lastState.terminated', operator: DoesNotExist}
  delay:
    durationMilliseconds: 1000
  next:
    statusTemplate: |
      {{ $crash := or (index (or .metadata.annotations dict) "rig/crash") Now }}
      {{ $now := or (index (or .metadata.annotations dict) "rig/again") Now }}
      {{ $status := .status }}
      containerStatuses:
      {{ range $i, $c := .spec.containers }}
      {{ $was := index $status.containerStatuses $i }}
      - image: {{ $c.image | Quote }}
        imageID: ""
        name: {{ $c.name | Quote }}
        ready: true
        restartCount: 1
        lastState: {terminated: {exitCode: 1, reason: Error, startedAt: {{ $was.state.running.startedAt | Quote }}, finishedAt: {{ $crash | Quote }}}}
        state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
---
` + kubeCompletePlain + `---
` + kubeCompleteRestarted + `---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: Exists}
  next:
    delete: true
`

// kubeComplete has a pod end. Pods that restart do so before.
const (
	kubeCompletePlain = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-complete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.metadata.labels["rig-restart"]', operator: DoesNotExist}
    - {key: '.metadata.annotations["rig/run-for"]', operator: Exists}
    - {key: '.status.phase', operator: In, values: [Running]}
` + kubeComplete
	kubeCompleteRestarted = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-complete-restarted}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.metadata.labels["rig-restart"]', operator: Exists}
    - {key: '.metadata.annotations["rig/run-for"]', operator: Exists}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.status.containerStatuses.[0].lastState.terminated', operator: Exists}
` + kubeComplete
	kubeComplete = `  delay:
    durationMilliseconds: 1000
    durationFrom: {expressionFrom: '.metadata.annotations["rig/run-for"]'}
  next:
    statusTemplate: |
      {{ $now := or (index .metadata.annotations "rig/stop") Now }}
      {{ $status := .status }}
      {{ $exit := or (index .metadata.annotations "rig/exit") "0" }}
      initContainerStatuses:
      {{ range $i, $c := .spec.initContainers }}
      {{ $was := index $status.initContainerStatuses $i }}
      - image: {{ $c.image | Quote }}
        imageID: ""
        name: {{ $c.name | Quote }}
        ready: false
        restartCount: 0
        {{ if $was.state.running }}
        state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $was.state.running.startedAt | Quote }}, finishedAt: {{ $now | Quote }}}}
        {{ else }}
        state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $was.state.terminated.startedAt | Quote }}, finishedAt: {{ $was.state.terminated.finishedAt | Quote }}}}
        {{ end }}
      {{ end }}
      containerStatuses:
      {{ range $i, $c := .spec.containers }}
      {{ $was := index $status.containerStatuses $i }}
      - image: {{ $c.image | Quote }}
        imageID: ""
        name: {{ $c.name | Quote }}
        ready: false
        restartCount: {{ $was.restartCount }}
        {{ if $was.lastState.terminated }}
        lastState: {terminated: {exitCode: 1, reason: Error, startedAt: {{ $was.lastState.terminated.startedAt | Quote }}, finishedAt: {{ $was.lastState.terminated.finishedAt | Quote }}}}
        {{ end }}
        state: {terminated: {exitCode: {{ $exit }}, reason: {{ if eq $exit "0" }}Completed{{ else }}Error{{ end }}, startedAt: {{ $was.state.running.startedAt | Quote }}, finishedAt: {{ $now | Quote }}}}
      {{ end }}
      phase: {{ if eq $exit "0" }}Succeeded{{ else }}Failed{{ end }}
`
)
