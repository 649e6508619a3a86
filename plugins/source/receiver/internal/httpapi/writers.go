package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Anybody lets everyone write who can connect: for a listener on loopback.
func Anybody(*http.Request) error { return nil }

// Every among the names of writers stands for every client's certificate of the CA.
const Every = "*"

// Writers lets those write whose certificate has the role write, and those that are
// named.
func Writers(keys *identity.Keys, named []string) func(*http.Request) error {
	return func(r *http.Request) error {
		if r.TLS == nil {
			return errors.New("no certificate")
		}
		id, err := identity.Peer(*r.TLS)
		if err != nil {
			return err
		}
		if err := keys.Valid(r.TLS.PeerCertificates); err != nil {
			return err
		}
		if id.Role != identity.Client || !id.Rights.Any(identity.Write) && !slices.Contains(named, Every) && !slices.Contains(named, id.Name) {
			return fmt.Errorf("%s may not write: its certificate needs the role write, or its name must stand in writers", id)
		}
		return nil
	}
}
