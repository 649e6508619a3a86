// Package run makes runs of what the API server tells of a pod: one for each start of each
// container, or one for the pod.
//
// The status of a container has its present run and the one before. An [Entry] remembers
// those before them, so that a container that restarts often loses none, and what is
// needed of the pod when it has been deleted.
package run
