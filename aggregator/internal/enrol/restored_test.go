package enrol_test

import (
	"bytes"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func TestAccess_AfterARestore_IsAsBeforeIt(t *testing.T) {
	d := documents{{"joined-agents", "head1"}: []byte("{}")}
	session := func(user string) string {
		text, err := enrol.Begin(t.Context(), d, d.write, enrol.NewSession{User: user}, at(0))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	bearer := func(by string) (string, string) {
		text, b, err := enrol.CreateBearer(t.Context(), d, d.write, enrol.NewBearer{Scope: enrol.Scope{Roles: "read"}, Life: 5 * time.Hour, By: by}, at(0))
		if err != nil {
			t.Fatal(err)
		}
		return text, b.ID
	}
	create(t, d, time.Hour, at(0))
	ended, kept := session("alice"), session("bob")
	revoked, id := bearer("x")
	snapshot := maps.Clone(d)
	over, err := enrol.FindSession(d, ended, at(0))
	if err == nil {
		err = errors.Join(enrol.End(t.Context(), d.write, over), enrol.Revoke(t.Context(), d, d.write, id, "root", at(1)))
	}
	if err != nil {
		t.Fatal(err)
	}
	later, _ := bearer("later")
	before := maps.Clone(d)
	was, err := enrol.ReadAccess(d)
	if err != nil {
		t.Fatal(err)
	}
	d = snapshot
	delete(d, [2]string{"joined-agents", "head1"}) // joined after the snapshot
	sets, err := enrol.AmendSnapshot(d, at(0))
	if err == nil {
		_, err = d.write(t.Context(), &store.DocumentCommand{Sets: sets})
	}
	if n, made, bad := enrol.RestoredTokens(d, at(2)); err != nil || bad != nil || n != 1 || !made.Equal(at(0)) {
		t.Errorf("%d tokens of %s, %v, %v", n, made, err, bad)
	}
	for _, text := range []string{ended, kept} {
		if _, err := enrol.FindSession(d, text, at(2)); err == nil {
			t.Error("a session of the snapshot lives on")
		}
	}
	if err := was.Put(t.Context(), d, d.write); err != nil {
		t.Fatal(err)
	}
	if n, _, err := enrol.RestoredTokens(d, at(2)); n != 0 || err != nil {
		t.Error(n, err)
	}
	delete(before, [2]string{"joined-agents", "head1"})
	if !maps.EqualFunc(d, before, bytes.Equal) {
		t.Errorf("%v, want %v", d, before)
	}
	for text, ok := range map[string]bool{later: true, revoked: false} {
		if _, err := enrol.FindBearer(d, text, at(2)); (err == nil) != ok {
			t.Errorf("%v, %v", ok, err)
		}
	}
	for text, ok := range map[string]bool{kept: true, ended: false} {
		if _, err := enrol.FindSession(d, text, at(2)); (err == nil) != ok {
			t.Errorf("%v, %v", ok, err)
		}
	}
}
