package enrol_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestAccess_AfterARestore_IsAsBeforeIt(t *testing.T) {
	d := documents{}
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
	if err := admit(t, d, create(t, d, time.Hour, at(0)), at(0)); err != nil {
		t.Fatal(err)
	}
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
	if err := enrol.Remove(t.Context(), d, d.write, "head1", "root", at(1)); err != nil {
		t.Fatal(err)
	}
	second := create(t, d, time.Hour, at(1))
	if err := enrol.Admit(t.Context(), d, d.write, &enrol.Arrival{Token: second, Role: identity.Agent, Name: "head2", Address: "head2:7070", Key: identity.Digest{8}}, at(1)); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(d)
	was, err := enrol.ReadAccess(d)
	if err != nil {
		t.Fatal(err)
	}
	d = snapshot
	sets, err := enrol.AmendSnapshot(d, at(0))
	if err == nil {
		_, err = d.write(t.Context(), &store.DocumentCommand{Sets: sets})
	}
	if r, bad := enrol.FindRestored(d, at(2)); err != nil || bad != nil || r.Tokens != 1 || !slices.Equal(r.Agents, []string{"head1"}) || !r.Made.Equal(at(0)) {
		t.Errorf("%+v, %v, %v", r, err, bad)
	}
	for _, text := range []string{ended, kept} {
		if _, err := enrol.FindSession(d, text, at(2)); err == nil {
			t.Error("a session of the snapshot lives on")
		}
	}
	if removed, err := was.Put(t.Context(), d, d.write); err != nil || !slices.Equal(removed, []string{"head1"}) {
		t.Fatal(removed, err)
	}
	if r, err := enrol.FindRestored(d, at(2)); r.Tokens+len(r.Agents) != 0 || err != nil {
		t.Error(r, err)
	}
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
