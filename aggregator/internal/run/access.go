package run

import (
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// who says who makes a request: the holder of the certificate, or on a plain
// listener whoever reaches it.
func who(r *http.Request) access.Principal {
	p := access.Principal{Name: "plain", Rights: identity.Admin, Rows: access.AllRows()}
	if r.TLS == nil {
		return p
	}
	id, err := identity.Peer(*r.TLS)
	if err != nil {
		return access.Principal{}
	}
	p.Name = id.String()
	return p
}
