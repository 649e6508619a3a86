package run_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// eventually waits until ok.
func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within a minute\n%s", what, s.log)
		}
	}
}

func (s *site) page(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestTheEndOfACertificateIsShownAndARenewedOneIsTakenAndLogged(t *testing.T) {
	s := newSite(t)
	block, _ := s.tls()
	files := identity.Files{CA: s.path("ca.pem"), Cert: s.path("a1.pem"), Key: s.path("a1.key")}
	if _, err := identity.Renew(s.dir, files, 13*24*time.Hour, time.Now()); err != nil {
		t.Fatal(err)
	}
	address := porttest.Free(t)
	s.configure(block+fmt.Sprintf("metrics { listen = %q }", address), "")
	s.start()
	s.eventually("the coming end is logged", func() bool { return strings.Contains(s.log.String(), "a certificate ends soon") })
	metric := `bursar_cert_expiry_seconds{kind="certificate",name="a1",serial="`
	days := func(of string) bool { return strings.Contains(s.page("http://"+address+"/metrics"), of) }
	s.eventually("the metrics show certificate and authority", func() bool {
		return days(metric) && days(`bursar_cert_expiry_seconds{kind="authority",name="test",serial="`)
	})
	before := s.page("http://" + address + "/metrics")
	if _, err := identity.Renew(s.dir, files, 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.eventually("the renewal is logged", func() bool { return strings.Contains(s.log.String(), "certificates renewed") })
	if line(before, metric) == line(s.page("http://"+address+"/metrics"), metric) {
		t.Error("the metric is that of the certificate before")
	}
}

// line is the line of a page that begins so.
func line(page, begin string) string {
	_, rest, _ := strings.Cut(page, begin)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}
