package enrol_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
)

func TestHideInLog_TokensAnywhere_AreWithoutTheirSecrets(t *testing.T) {
	d := documents{}
	bearer, b, err := enrol.CreateBearer(t.Context(), d, d.write, enrol.NewBearer{Scope: enrol.Scope{Roles: "read"}, Life: time.Hour}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	session, err := enrol.Begin(t.Context(), d, d.write, enrol.NewSession{Token: b}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	machine := join.New(identity.Digest{7}).String()
	for _, token := range []string{bearer, session, machine, bearer[:len(bearer)-5], machine[:len(machine)/2], bearer + machine, "x_" + bearer, "x" + machine} {
		var out bytes.Buffer
		log := slog.New(enrol.HideInLog(slog.NewTextHandler(&out, nil)))
		log.With("before", "x"+" "+token, slog.Group("g", "in", "/v1/records/"+token)).WithGroup("h").Error("message "+token, "error", fmt.Errorf("path %q: %w", token, errors.New(token)),
			"list", []string{token}, "path", "/ui/"+token+"/x?token="+token, "n", 7, slog.Group("i", "in", token))
		for _, secret := range []string{bearer[21:46], session[21:46], machine[14:50], token} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%s: %s", token, out.String())
			}
		}
		if strings.Count(out.String(), "***") < 8 || !strings.Contains(out.String(), "h.n=7") {
			t.Error(out.String())
		}
	}
	for _, text := range []string{"", "node b1_x", "bt1_", "job-b1_of-alice", "web1_0123456789abcdef", "sub1_0123456789abcdef_x"} {
		if enrol.Hide(text) != text {
			t.Errorf("%q is %q", text, enrol.Hide(text))
		}
	}
	if got, want := enrol.Hide("token "+bearer+"."), "token bt1_"+b.ID+"_***."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
