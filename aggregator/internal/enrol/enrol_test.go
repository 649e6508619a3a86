package enrol_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
)

// documents are the replicated state.
type documents map[[2]string][]byte

func (d documents) Document(space, key string) ([]byte, bool, error) {
	v, ok := d[[2]string{space, key}]
	return v, ok, nil
}

func (d documents) Documents(space, _ string, yield func(store.Document) error) error {
	for at, v := range d {
		if at[0] == space {
			if err := yield(store.Document{Space: space, Key: at[1], Value: v}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d documents) write(_ context.Context, c store.Command) (any, error) {
	command, ok := c.(*store.DocumentCommand)
	if !ok {
		return nil, errors.New("another command")
	}
	for _, is := range command.If {
		if got := d[[2]string{is.Space, is.Key}]; (got == nil) != (is.Value == nil) || !bytes.Equal(got, is.Value) {
			return store.DocumentResult{}, nil
		}
	}
	for _, set := range command.Sets {
		if at := [2]string{set.Space, set.Key}; set.Value == nil {
			delete(d, at)
		} else {
			d[at] = set.Value
		}
	}
	return store.DocumentResult{Done: true}, nil
}

func at(hours int) time.Time {
	return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(time.Duration(hours) * time.Hour)
}

func create(t *testing.T, d documents, life time.Duration, now time.Time) join.Token {
	t.Helper()
	token, err := enrol.Create(t.Context(), d, d.write, enrol.Wanted{Role: identity.Agent, Life: life, By: "root"}, identity.Digest{1}, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func admit(t *testing.T, d documents, token join.Token, now time.Time) error {
	t.Helper()
	return enrol.Admit(t.Context(), d, d.write, &enrol.Arrival{
		Token: token, Role: identity.Agent, Name: "head1", Address: "head1:7070", From: "192.0.2.7", Key: identity.Digest{7},
	}, now)
}

func TestToken_AfterItsTime_IsRefusedAndListedForAWhile(t *testing.T) {
	d := documents{}
	token := create(t, d, time.Hour, at(0))
	if err := admit(t, d, token, at(2)); !errors.Is(err, enrol.ErrExpired) {
		t.Error(err)
	}
	if err := admit(t, d, token, at(1)); err != nil {
		t.Error("in its last moment: ", err)
	}
	if err := admit(t, d, token, at(2)); !errors.Is(err, enrol.ErrExpired) {
		t.Error("repeated after its time: ", err)
	}
	create(t, d, time.Hour, at(24))
	if list, err := enrol.Tokens(d); err != nil || len(list) != 2 || list[1].State(at(24)) != "used" || list[0].State(at(24)) != "unused" {
		t.Error(list, err)
	}
	create(t, d, time.Hour, at(24*40))
	if list, err := enrol.Tokens(d); err != nil || len(list) != 1 {
		t.Error("old tokens stay: ", list, err)
	}
}

func TestToken_ItsMachineRemovedOrReplaced_IsSpent(t *testing.T) {
	for _, removed := range []bool{false, true} {
		d := documents{}
		token := create(t, d, 5*time.Hour, at(0))
		if err := errors.Join(admit(t, d, token, at(0)), admit(t, d, token, at(0))); err != nil {
			t.Fatal("a repetition: ", err)
		}
		if removed {
			delete(d, [2]string{"joined-agents", "head1"})
		} else {
			other, err := enrol.Create(t.Context(), d, d.write, enrol.Wanted{Role: identity.Agent, Name: "head1", Life: time.Hour, By: "root"}, identity.Digest{1}, at(1))
			if err == nil {
				err = enrol.Admit(t.Context(), d, d.write, &enrol.Arrival{Token: other, Role: identity.Agent, Name: "head1", Address: "head1:7070", Key: identity.Digest{8}}, at(1))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := admit(t, d, token, at(2)); !errors.Is(err, enrol.ErrSpent) {
			t.Errorf("removed %v: %v", removed, err)
		}
	}
}

func TestToken_Stored_HoldsNoSecret(t *testing.T) {
	d := documents{}
	token := create(t, d, time.Hour, at(0))
	for at, value := range d {
		if bytes.Contains(value, token.Secret[:]) || strings.Contains(string(value), token.String()) || at[1] != token.Name() {
			t.Errorf("%s: %s", at, value)
		}
	}
}

func TestToken_LifeOutOfBounds_IsRefused(t *testing.T) {
	d := documents{}
	for _, life := range []time.Duration{0, -time.Hour, time.Second, 8 * 24 * time.Hour} {
		_, err := enrol.Create(t.Context(), d, d.write, enrol.Wanted{Role: identity.Agent, Life: life}, identity.Digest{}, at(0))
		if !errors.Is(err, enrol.ErrRequest) {
			t.Errorf("%s: %v", life, err)
		}
	}
}

func TestArrival_OddRequest_IsRefusedBeforeTheToken(t *testing.T) {
	d := documents{}
	token := create(t, d, time.Hour, at(0))
	for _, a := range []enrol.Arrival{
		{Role: identity.Client, Name: "a", Address: "a:1"}, {Role: identity.Agent, Name: "../a", Address: "a:1"}, {Role: identity.Agent, Address: "a:1"},
		{Role: identity.Agent, Name: "a", Address: "a"}, {Role: identity.Agent, Name: "a", Address: ":1"}, {Role: identity.Agent, Name: "a", Address: "a:0"},
		{Role: identity.Agent, Name: "a", Address: "a:70000"},
	} {
		a.Token = token
		if err := enrol.Admit(t.Context(), d, d.write, &a, at(0)); !errors.Is(err, enrol.ErrRequest) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if err := admit(t, d, token, at(0)); err != nil {
		t.Error("the token is gone: ", err)
	}
}

// The values that this version writes; later ones must read them.
func TestStored_GoldenValues_AreRead(t *testing.T) {
	d := documents{
		{"tokens", "0102030405060708"}: []byte(`{"format":1,"id":"0102030405060708","hash":"00000000000000000000000000000000000000000000000000000000000000ff","role":"agent","by":"root at the socket","made":"2026-11-23T12:00:00Z","expires":"2026-11-23T13:00:00Z","use":{"at":"2026-11-23T12:01:00Z","name":"head1","from":"192.0.2.7","key":"0700000000000000000000000000000000000000000000000000000000000000"}}`),
		{"joined-agents", "head1"}:     []byte(`{"format":1,"name":"head1","address":"head1:7070","token":"0102030405060708","key":"0700000000000000000000000000000000000000000000000000000000000000","at":"2026-11-23T12:01:00Z"}`),
	}
	tokens, err := enrol.Tokens(d)
	if err != nil || len(tokens) != 1 || tokens[0].Hash[31] != 0xff || tokens[0].Use.Key[0] != 7 {
		t.Error(tokens, err)
	}
	agents, err := enrol.Agents(d)
	if err != nil || len(agents) != 1 || agents[0].Address != "head1:7070" {
		t.Error(agents, err)
	}
	d[[2]string{"joined-agents", "head2"}] = []byte(`{"format":2}`)
	if _, err := enrol.Agents(d); err == nil {
		t.Error("a value of a newer format was read")
	}
}

func TestParse_TokensThatAreNone_AreRefused(t *testing.T) {
	good := join.New(identity.Digest{1, 2, 3})
	if got, err := join.Parse(" " + good.String() + "\n"); err != nil || got != good {
		t.Error(got, err)
	}
	text := good.String()
	for _, bad := range []string{"", "b1_", text[1:], text[:len(text)-1], text + "A", strings.Replace(text, "b1_", "b2_", 1)} {
		if _, err := join.Parse(bad); !errors.Is(err, join.ErrToken) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestBearer_StoredRevokedAndExpired_HoldsNoSecretAndIsRefused(t *testing.T) {
	d := documents{}
	make := func(w enrol.NewBearer, now time.Time) (string, *enrol.Bearer) {
		t.Helper()
		text, b, err := enrol.CreateBearer(t.Context(), d, d.write, w, now)
		if err != nil {
			t.Fatal(err)
		}
		return text, b
	}
	text, b := make(enrol.NewBearer{Scope: enrol.Scope{Roles: "read", Person: "alice"}, Life: time.Hour, By: "root"}, at(0))
	for key, value := range d {
		if strings.Contains(string(value), text[len(text)-26:]) {
			t.Errorf("%s: %s", key, value)
		}
	}
	if got, err := enrol.FindBearer(d, text, at(1)); err != nil || got.Scope.Person != "alice" || got.Scope.Rights() != identity.Read {
		t.Error(got, err)
	}
	for wrong, want := range map[string]error{text[:len(text)-1] + "?": enrol.ErrUnknown, "": enrol.ErrUnknown, "bt1_": enrol.ErrUnknown, text[:20]: enrol.ErrUnknown} {
		if _, err := enrol.FindBearer(d, wrong, at(0)); !errors.Is(err, want) || strings.Contains(err.Error(), text[20:]) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := enrol.FindBearer(d, text, at(2)); !errors.Is(err, enrol.ErrExpired) {
		t.Error(err)
	}
	uses := map[string]enrol.BearerUse{b.ID: {At: at(0), From: "192.0.2.7"}, "gone": {At: at(0)}}
	if err := enrol.NoteUses(t.Context(), d, d.write, uses); err != nil {
		t.Error(err)
	}
	if use, err := enrol.UsedBearer(d, b.ID); err != nil || use == nil || use.From != "192.0.2.7" {
		t.Error(use, err)
	}
	if err := enrol.Revoke(t.Context(), d, d.write, b.ID, "root", at(0)); err != nil {
		t.Error(err)
	}
	if _, err := enrol.FindBearer(d, text, at(0)); !errors.Is(err, enrol.ErrRevoked) {
		t.Error(err)
	}
	make(enrol.NewBearer{Scope: enrol.Scope{Roles: "read"}, Life: time.Hour}, at(24*40))
	if list, err := enrol.Bearers(d); err != nil || len(list) != 1 {
		t.Error("old tokens stay: ", list, err)
	}
	if use, err := enrol.UsedBearer(d, b.ID); err != nil || use != nil {
		t.Error("the use of an old token stays: ", use, err)
	}
}

func TestBearer_OddRequest_IsRefused(t *testing.T) {
	d := documents{}
	for _, w := range []enrol.NewBearer{
		{Scope: enrol.Scope{}}, {Scope: enrol.Scope{Roles: "agent"}}, {Scope: enrol.Scope{Roles: "read"}, Life: time.Second},
		{Scope: enrol.Scope{Roles: "read"}, Life: 400 * 24 * time.Hour}, {Scope: enrol.Scope{Roles: "read", Rows: []map[string][]string{{}}}},
		{Scope: enrol.Scope{Roles: "read", Rows: []map[string][]string{{"group_id": {}}}}},
		{Scope: enrol.Scope{Roles: "read", Person: "a", Rows: []map[string][]string{{"group_id": {"x"}}}}},
	} {
		if w.Life == 0 {
			w.Life = time.Hour
		}
		if _, _, err := enrol.CreateBearer(t.Context(), d, d.write, w, at(0)); !errors.Is(err, enrol.ErrRequest) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// The values of tokens of the API that this version writes; later ones must read them.
func TestBearer_GoldenValue_IsRead(t *testing.T) {
	d := documents{{"api-tokens", "0102030405060708"}: []byte(`{"format":1,"id":"0102030405060708","hash":"00000000000000000000000000000000000000000000000000000000000000ff","name":"grafana","scope":{"roles":"read,monitor","rows":[{"group_id":["atlas"]}],"person":""},"by":"root at the socket","made":"2026-11-23T12:00:00Z","expires":"2027-02-21T12:00:00Z"}`)}
	list, err := enrol.Bearers(d)
	if err != nil || len(list) != 1 || list[0].Hash[31] != 0xff || list[0].Scope.Rows[0]["group_id"][0] != "atlas" {
		t.Error(list, err)
	}
}

func TestSessions_OfOneUser_TheOldestEndWhereTooManyBegin(t *testing.T) {
	d := documents{}
	begin := func(w enrol.NewSession, minute int) string {
		text, err := enrol.Begin(t.Context(), d, d.write, w, at(0).Add(time.Duration(minute)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	other := begin(enrol.NewSession{User: "bob"}, 0)
	token := begin(enrol.NewSession{Token: &enrol.Bearer{ID: "alice", Expires: at(5)}}, 0)
	var own []string
	for minute := range 25 {
		own = append(own, begin(enrol.NewSession{User: "alice"}, minute))
	}
	for i, text := range append([]string{other, token}, own...) {
		_, err := enrol.FindSession(d, text, at(1))
		if ended := i >= 2 && i < 2+5; ended != (err != nil) {
			t.Errorf("session %d: %v", i, err)
		}
	}
}

func TestSession_OfAToken_IsWhatTheTokenIsNow(t *testing.T) {
	d := documents{}
	_, b, err := enrol.CreateBearer(t.Context(), d, d.write, enrol.NewBearer{Scope: enrol.Scope{Roles: "read", Person: "alice"}, Life: time.Hour}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	text, err := enrol.Begin(t.Context(), d, d.write, enrol.NewSession{Token: b}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	s, err := enrol.FindSession(d, text, at(0).Add(time.Hour))
	if err != nil || s.Way != enrol.ByToken || !s.Expires.Equal(b.Expires) {
		t.Fatalf("%+v %v", s, err)
	}
	if _, err := enrol.FindSession(d, text, b.Expires.Add(1)); !errors.Is(err, enrol.ErrUnknown) {
		t.Error("a session outlives its token: ", err)
	}
	if now, err := enrol.SessionBearer(d, s, at(0)); err != nil || now.Scope.Person != "alice" {
		t.Error(now, err)
	}
	if _, err := enrol.SessionBearer(d, s, b.Expires.Add(1)); !errors.Is(err, enrol.ErrExpired) {
		t.Error(err)
	}
	if err := enrol.Revoke(t.Context(), d, d.write, b.ID, "root", at(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := enrol.SessionBearer(d, s, at(1)); !errors.Is(err, enrol.ErrRevoked) {
		t.Error(err)
	}
	delete(d, [2]string{"api-tokens", b.ID})
	if _, err := enrol.SessionBearer(d, s, at(1)); !errors.Is(err, enrol.ErrUnknown) {
		t.Error(err)
	}
}

// The values of sessions that this version writes; later ones must read them.
func TestSession_GoldenValue_IsRead(t *testing.T) {
	d := documents{
		{"sessions", "0102030405060708"}: []byte(`{"format":1,"id":"0102030405060708","hash":"00000000000000000000000000000000000000000000000000000000000000ff","way":"token","token":"1112131415161718","made":"2026-11-23T12:00:00Z","expires":"2026-11-24T00:00:00Z"}`),
		{"users", "alice"}:               []byte(`{"format":1,"name":"alice"}`), // no version has read these
	}
	if _, err := enrol.Begin(t.Context(), d, d.write, enrol.NewSession{User: "bob"}, at(0)); err != nil || len(d) != 3 {
		t.Error(d, err)
	}
}
