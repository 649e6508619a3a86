// Package v1 is the contract of the interface below /v1: openapi.yaml describes each
// route, and the types are those of its answers. They are made of the description, so
// that a server and its clients cannot differ: after a change of openapi.yaml, run
//
//	go test ./proto/v1 -update
package v1

import _ "embed"

// OpenAPI is the text of openapi.yaml.
//
//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of the interface, in YAML. The caller owns it.
func OpenAPI() []byte { return append([]byte(nil), openAPI...) }
