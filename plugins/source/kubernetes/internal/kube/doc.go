// Package kube asks a Kubernetes API server: it lists and watches, and decodes of each
// object only what accounting needs. The connection – kubeconfig, certificates, tokens
// and their renewal – is that of client-go.
package kube
