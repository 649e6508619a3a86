package origin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ErrHost is wrapped when a request names a host that the server does not have: the
// name of another site may lead to this machine.
var ErrHost = errors.New("unknown host")

// ErrSite is wrapped when a page of another site makes a browser ask for a change.
var ErrSite = errors.New("a page of another site sent this request")

// Hosts are the names and addresses of a server. It always has localhost, the
// addresses of loopback, and the address to which a connection came.
type Hosts []string

// Check returns an error that wraps [ErrHost] when the request is for a host that is
// none of these, or for none at all.
func (h Hosts) Check(r *http.Request) error {
	name := Name(r.Host)
	switch {
	case name == "":
		return fmt.Errorf("%w: the request names none", ErrHost)
	case name == "localhost", slices.ContainsFunc(h, func(known string) bool { return Name(known) == name }):
		return nil
	}
	ip, err := netip.ParseAddr(name)
	if err == nil && (ip.Unmap().IsLoopback() || ip.Unmap() == arrivedAt(r)) {
		return nil
	}
	return fmt.Errorf("%w %.100q", ErrHost, name)
}

// Name is the host of an address or of a Host header as names are compared: without
// a port, brackets, a zone and a dot at the end, in lower case.
func Name(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	address = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(address, "."))
}

// arrivedAt is the address to which the request's connection came; the zero address when
// it has none.
func arrivedAt(r *http.Request) netip.Addr {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return netip.Addr{}
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return netip.Addr{} // a unix socket
	}
	return at.Addr().Unmap().WithZone("")
}

// CheckSite returns an error that wraps [ErrSite] when the request would change
// something and comes from a page of another site, as its Sec-Fetch-Site or its Origin
// says. It compares Origin with the host of the request, so check that one too.
func CheckSite(r *http.Request) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return fmt.Errorf("%w: %w", ErrSite, err)
	}
	return nil
}
