package api

import (
	"net/http"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// openAPI serves the description of the interface.
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(v1.OpenAPI()) // a client that is gone needs no answer
}
