package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.yaml
var openAPIText []byte

// openAPI serves the description of the interface.
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPIText) // a client that is gone needs no answer
}
