package origin_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bursar-accounting/bursar/proto/origin"
)

func TestHosts_KnowTheirNamesLoopbackAndTheAddressOfTheConnection(t *testing.T) {
	known := origin.Hosts{"Accounting.example.org", "10.0.0.5:8000", "proxy.example.org:443"}
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8000} }
	cases := []struct {
		host  string
		local net.Addr
		ok    bool
	}{
		{"localhost", nil, true},
		{"LOCALHOST:8000", nil, true},
		{"localhost.:8000", nil, true},
		{"127.0.0.1", nil, true},
		{"127.9.9.9:1", nil, true},
		{"[::1]:8000", nil, true},
		{"[::1]", nil, true},
		{"[::ffff:127.0.0.1]:8000", nil, true},
		{"accounting.example.org", nil, true},
		{"ACCOUNTING.example.org.:8443", nil, true},
		{"proxy.example.org", nil, true},
		{"10.0.0.5", nil, true},
		{"10.0.0.5:9000", nil, true},
		{"192.0.2.7:8000", tcp("192.0.2.7"), true},
		{"[fe80::1]:8000", tcp("fe80::1"), true},
		{"192.0.2.7:8000", tcp("192.0.2.8"), false},
		{"192.0.2.7:8000", &net.UnixAddr{Name: "/run/x", Net: "unix"}, false},
		{"evil.example", tcp("127.0.0.1"), false},
		{"evil.example:8000", tcp("127.0.0.1"), false},
		{"localhost.evil.example", nil, false},
		{"127.0.0.1.evil.example", nil, false},
		{"evil.accounting.example.org", nil, false},
		{"0.0.0.0:8000", tcp("127.0.0.1"), false},
		{"[::]", nil, false},
		{"", nil, false},
		{":8000", nil, false},
		{".", nil, false},
		{"127.0.0.1@evil.example", nil, false},
		{"[localhost]evil.example", nil, false},
	}
	for _, c := range cases {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host = c.host
		if c.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local))
		}
		if err := known.Check(r); (err == nil) != c.ok || err != nil && !errors.Is(err, origin.ErrHost) {
			t.Errorf("host %q at %v: %v", c.host, c.local, err)
		}
	}
}

func TestCheckSite_RefusesEveryWriteOfAnotherSite(t *testing.T) {
	cases := []struct {
		site, from string
		ok         bool
	}{
		{"", "", true}, // no browser
		{"same-origin", "http://localhost:8000", true},
		{"none", "", true},
		{"", "http://localhost:8000", true},
		{"cross-site", "", false},
		{"same-site", "http://localhost:9000", false},
		{"", "http://localhost:9000", false},
		{"", "http://evil.example", false},
		{"", "null", false},
		{"cross-site", "http://localhost:8000", false},
	}
	for _, c := range cases {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:8000/", nil)
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			if c.from != "" {
				r.Header.Set("Origin", c.from)
			}
			want := c.ok || method == http.MethodGet
			if err := origin.CheckSite(r); (err == nil) != want || err != nil && !errors.Is(err, origin.ErrSite) {
				t.Errorf("%s with Sec-Fetch-Site %q, Origin %q: %v", method, c.site, c.from, err)
			}
		}
	}
}
