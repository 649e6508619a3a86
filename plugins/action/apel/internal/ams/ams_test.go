package ams_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/amstest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/ams"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

func start(t *testing.T) (*amstest.Service, ams.Config) {
	t.Helper()
	a := gridtest.New(t)
	s := amstest.Start(t, a.Server(t), a.Pool())
	s.Users = []string{"ce1.example.org"}
	cert, key := a.Host(t, "ce1.example.org", gridtest.Curve(t))
	return s, ams.Config{
		Host: s.Host, Port: s.Port, AuthnPort: s.AuthnPort, Project: s.Project, Topic: s.Topic,
		Cert: cert, Key: key, CA: a.File, Timeout: time.Minute,
	}
}

func client(t *testing.T, c ams.Config) *ams.Client {
	t.Helper()
	out, err := ams.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	return out
}

var attributes = map[string]string{"empaid": "20261122/20261122093000"}

func TestAMessageArrivesWithItsAttributes(t *testing.T) {
	s, c := start(t)
	id, err := client(t, c).Publish(t.Context(), []byte("bytes \x00\xff"), attributes)
	got := s.Messages()
	if err != nil || id != "1" || len(got) != 1 || string(got[0].Data) != "bytes \x00\xff" || got[0].Attributes["empaid"] != attributes["empaid"] {
		t.Fatal(id, err, got)
	}
}

func TestOneTokenServesManyMessagesAndAnExpiredOneIsReplaced(t *testing.T) {
	s, c := start(t)
	publisher := client(t, c)
	for i := range 3 {
		if i == 2 {
			s.Expire()
		}
		if _, err := publisher.Publish(t.Context(), []byte("x"), attributes); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"authx509 200", "publish 200", "publish 200", "publish 401", "authx509 200", "publish 200"}
	if got := s.Requests(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheTableOfWhatMayBeTriedAgain(t *testing.T) {
	for _, what := range []string{"authx509", "publish"} {
		for status, again := range map[int]bool{
			0: true, 408: true, 500: true, 502: true, 503: true, 504: true, 400: false, 401: false, 403: false, 404: false, 409: false, 413: false, 429: false, 302: false,
		} {
			s, c := start(t)
			s.Fail(amstest.Failure{What: what, Status: status})
			_, err := client(t, c).Publish(t.Context(), []byte("x"), attributes)
			e, ok := errors.AsType[*ams.Error](err)
			if !ok || e.Again() != again || e.Status != status || e.TooLarge() != (what == "publish" && status == 413) {
				t.Errorf("%s with %d: %v", what, status, err)
			}
			if len(s.Messages()) != 0 {
				t.Errorf("%s with %d: a message is there", what, status)
			}
		}
	}
}

func TestALostAnswerSaysThatTheMessageMayBeThere(t *testing.T) {
	s, c := start(t)
	s.Fail(amstest.Failure{What: "publish", Done: true})
	publisher := client(t, c)
	_, err := publisher.Publish(t.Context(), []byte("x"), attributes)
	e, ok := errors.AsType[*ams.Error](err)
	if !ok || !e.InDoubt() || !e.Again() || len(s.Messages()) != 1 {
		t.Fatal(err, s.Messages())
	}
	if _, err := publisher.Publish(t.Context(), []byte("x"), attributes); err != nil || len(s.Messages()) != 2 {
		t.Error(err)
	}
}

func TestAServiceThatIsNotThereIsTriedAgain(t *testing.T) {
	_, c := start(t)
	_, port, err := net.SplitHostPort(porttest.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	if c.AuthnPort, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	_, err = client(t, c).Publish(t.Context(), []byte("x"), attributes)
	if e, ok := errors.AsType[*ams.Error](err); !ok || !e.Again() || e.InDoubt() {
		t.Error(err)
	}
}

func TestAServiceOfAnotherAuthorityIsNotTrusted(t *testing.T) {
	s, c := start(t)
	c.CA = gridtest.New(t).File
	_, err := client(t, c).Publish(t.Context(), []byte("x"), attributes)
	if e, ok := errors.AsType[*ams.Error](err); !ok || e.InDoubt() || len(s.Requests()) != 0 {
		t.Error(err)
	}
}

func TestACertificateThatIsNotKnownGetsNoToken(t *testing.T) {
	s, c := start(t)
	s.Users = nil
	_, err := client(t, c).Publish(t.Context(), []byte("x"), attributes)
	if e, ok := errors.AsType[*ams.Error](err); !ok || e.Again() || !strings.Contains(err.Error(), "Binding was not found") {
		t.Error(err)
	}
}

func TestAMessageThatIsTooLargeSaysSo(t *testing.T) {
	s, c := start(t)
	s.Limit(100)
	_, err := client(t, c).Publish(t.Context(), make([]byte, 1000), attributes)
	if e, ok := errors.AsType[*ams.Error](err); !ok || !e.TooLarge() || e.Again() || e.Status != http.StatusRequestEntityTooLarge {
		t.Error(err)
	}
}

func TestAPublishEndsWithItsContext(t *testing.T) {
	_, c := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, c).Publish(ctx, []byte("x"), attributes); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFilesThatAreNoCertificatesAreRefused(t *testing.T) {
	_, c := start(t)
	for what, spoil := range map[string]func(*ams.Config){
		"no such file":      func(c *ams.Config) { c.Cert += "x" },
		"a key for a CA":    func(c *ams.Config) { c.CA = c.Key },
		"no such authority": func(c *ams.Config) { c.CA += "x" },
	} {
		bad := c
		spoil(&bad)
		if _, err := ams.New(bad); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
