package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// feed answers /v1/changes with changes up to last.
func feed(last int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var after int
		_, _ = fmt.Sscan(r.URL.Query().Get("after"), &after)
		rows := []string{}
		for seq := after + 1; seq <= last; seq++ {
			rows = append(rows, fmt.Sprintf(`{"seq":%d,"record_id":"r%d","record":{"n":%d}}`, seq, seq%2, seq))
		}
		fmt.Fprintf(w, `{"changes":[%s],"last":%d}`, strings.Join(rows, ","), last)
	})
}

// ledger is a receiver that keeps its word: it does what has a key once, and keeps of
// each record what has the greatest number.
type ledger struct {
	mu      sync.Mutex
	seen    map[string]bool // keys
	effects int
	records map[string]int
	fence   string
}

func newLedger() *ledger { return &ledger{seen: map[string]bool{}, records: map[string]int{}} }

// take does what a post wants, unless its key was seen before.
func (l *ledger) take(r *http.Request, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if l.fence = r.Header.Get("Bursar-Fence"); l.seen[key] {
		return
	}
	l.seen[key] = true
	l.effects++
	var in struct {
		Changes []struct {
			Seq int
			ID  string `json:"record_id"`
		}
	}
	_ = json.Unmarshal(body, &in)
	for _, c := range in.Changes {
		l.records[c.ID] = max(l.records[c.ID], c.Seq)
	}
}

// server is a receiver that lets answer decide, by the number of the post, what
// becomes of it; nil: it is taken and answered. What is not signed is refused.
func (l *ledger) server(t *testing.T, answer func(n int, w http.ResponseWriter, take func()) bool) *httptest.Server {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !verify(secret, r.Header.Get("Bursar-Signature"), body, time.Now()) || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		n++
		if answer == nil || !answer(n, w, func() { l.take(r, body) }) {
			l.take(r, body)
			w.Header().Set("X-Request-Id", fmt.Sprint("post-", n))
			fmt.Fprint(w, "thank you")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// carry does an effect as the daemon does: again with the same key while it may.
func carry(t *testing.T, a *action, e sdk.Effect, key string) (last sdk.Result) {
	t.Helper()
	for n := 1; n <= 10; n++ {
		last = a.Execute(t.Context(), sdk.Attempt{Effect: e, Key: key, Fence: uint64(n), Number: n}, nil)
		if last.Outcome == sdk.Done || last.Outcome == sdk.Rejected {
			break
		}
	}
	return last
}

// planned are the effects of a plan from a state.
func planned(t *testing.T, a *action, state string, last int) sdk.Plan {
	t.Helper()
	p, err := a.Plan(t.Context(), sdk.PlanStart{Now: time.Unix(1, 0), State: []byte(state)}, sdk.NewData(feed(last)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// posting is an action that posts to a server.
func posting(t *testing.T, s *httptest.Server, nodes ...sdk.Node) *action {
	t.Helper()
	a, err := configured(append(nodes, text("url", s.URL+"/hook"))...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAPostIsSignedAndSaysWhatItIs(t *testing.T) {
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Request-Id", "r-1")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "taken\nwell \x1b[31m")
	}))
	defer s.Close()
	a := posting(t, s, text("method", "PUT"), headers(map[string]string{"authorization": "Bearer t", "User-Agent": "me"}))
	r := a.Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte(`{"x":1}`)}, Key: "k1", Fence: 7, Number: 2}, nil)
	if r.Outcome != sdk.Done || r.Reference != "r-1" || r.Message != "202 Accepted: taken well [31m" {
		t.Errorf("%+v", r)
	}
	want := map[string]string{
		"Idempotency-Key": "k1", "Bursar-Fence": "7", "Bursar-Attempt": "2", "Content-Type": "application/json",
		"User-Agent": "me", "Authorization": "Bearer t", "Content-Length": "7",
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if string(body) != `{"x":1}` || got.Method != "PUT" || got.URL.Path != "/hook" || !verify(secret, got.Header.Get("Bursar-Signature"), body, time.Now()) {
		t.Errorf("%s %s %s", got.Method, got.URL, body)
	}
}

func TestWhateverBecomesOfAPostItsEffectIsThereOnce(t *testing.T) {
	cut := func(w http.ResponseWriter) bool {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
		return true
	}
	status := func(w http.ResponseWriter, code int) bool {
		w.WriteHeader(code)
		return true
	}
	for name, first := range map[string]func(w http.ResponseWriter, take func()) bool{
		"answered":                      func(http.ResponseWriter, func()) bool { return false },
		"cut off before it was taken":   func(w http.ResponseWriter, _ func()) bool { return cut(w) },
		"cut off after it was taken":    func(w http.ResponseWriter, take func()) bool { take(); return cut(w) },
		"busy":                          func(w http.ResponseWriter, _ func()) bool { return status(w, 503) },
		"too many":                      func(w http.ResponseWriter, _ func()) bool { return status(w, 429) },
		"failed though it was taken":    func(w http.ResponseWriter, take func()) bool { take(); return status(w, 500) },
		"a gateway that does not wait":  func(w http.ResponseWriter, take func()) bool { take(); return status(w, 504) },
		"at work already with this key": func(w http.ResponseWriter, take func()) bool { take(); return status(w, 409) },
	} {
		l := newLedger()
		a := posting(t, l.server(t, func(n int, w http.ResponseWriter, take func()) bool { return n <= 3 && first(w, take) }))
		p := planned(t, a, "", 9)
		if r := carry(t, a, p.Effects[0], "key"); r.Outcome != sdk.Done || l.effects != 1 || l.records["r1"] != 9 || l.records["r0"] != 8 {
			t.Errorf("%s: %+v, %d effects, %v", name, r, l.effects, l.records)
		}
		if next := planned(t, a, string(p.State), 9); len(next.Effects) != 0 {
			t.Errorf("%s: it is planned again: %+v", name, next)
		}
	}
}

func TestAPlanThatIsMadeAgainWithAnotherKeyTakesNothingBack(t *testing.T) {
	l := newLedger()
	a := posting(t, l.server(t, nil))
	old, latest := planned(t, a, "", 5), planned(t, a, "", 9)
	for i, p := range []sdk.Plan{old, latest, old} {
		if r := carry(t, a, p.Effects[0], fmt.Sprint("key", i)); r.Outcome != sdk.Done {
			t.Fatal(r)
		}
	}
	if l.records["r1"] != 9 || l.records["r0"] != 8 {
		t.Error(l.records)
	}
}

func TestAnotherSecretIsRefusedAndNotTriedAgain(t *testing.T) {
	l := newLedger()
	s := l.server(t, nil)
	a := posting(t, s)
	a.receiver.Secrets = []string{"another secret of the sort"}
	if r := carry(t, a, planned(t, a, "", 1).Effects[0], "k"); r.Outcome != sdk.Rejected || l.effects != 0 || !strings.Contains(r.Message, "401") {
		t.Errorf("%+v", r)
	}
	a.receiver.Secrets = append(a.receiver.Secrets, secret) // while the receiver changes from one to the other
	if r := carry(t, a, planned(t, a, "", 1).Effects[0], "k"); r.Outcome != sdk.Done || l.effects != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAReceiverThatIsNotThereIsTriedAgain(t *testing.T) {
	a := posting(t, &httptest.Server{URL: "http://" + porttest.Free(t)})
	r := a.Execute(t.Context(), sdk.Attempt{}, nil)
	if r.Outcome != sdk.Retry || !strings.Contains(r.Message, "nothing was sent: ") {
		t.Errorf("%+v", r)
	}
}

func TestAReceiverThatDoesNotAnswerIsInDoubt(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer s.Close()
	defer close(hang)
	a := posting(t, s)
	a.receiver.Timeout = 50 * time.Millisecond
	if r := a.Execute(t.Context(), sdk.Attempt{}, nil); r.Outcome != sdk.Unknown || !strings.Contains(r.Message, "there was no answer: ") || strings.Contains(r.Message, "/hook") {
		t.Errorf("%+v", r)
	}
	a.receiver.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if r := a.Execute(ctx, sdk.Attempt{}, nil); r.Outcome != sdk.Unknown && r.Outcome != sdk.Retry {
		t.Errorf("%+v", r)
	}
}

func TestAnEffectGoesNowhereElse(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/t0ken", code)
		}))
		r := carry(t, posting(t, s), sdk.Effect{}, "k")
		if r.Outcome != sdk.Rejected || !strings.Contains(r.Message, "it redirects to \""+strings.TrimPrefix(other.URL, "http://")) || strings.Contains(r.Message, "; it redirects to \"127.0.0.1/t0ken") {
			t.Errorf("%+v", r)
		}
		s.Close()
	}
	t.Setenv("HTTP_PROXY", other.URL)
	t.Setenv("HTTPS_PROXY", other.URL)
	a, err := configured(text("url", "http://receiver.invalid/"), attribute("allow_plain", sdk.Bool(true)))
	if err != nil {
		t.Fatal(err)
	}
	if r := a.Execute(t.Context(), sdk.Attempt{}, nil); r.Outcome != sdk.Retry {
		t.Errorf("%+v", r)
	}
	if elsewhere.Load() != 0 {
		t.Errorf("%d posts elsewhere", elsewhere.Load())
	}
}

func TestAProxyThatIsConfiguredIsUsed(t *testing.T) {
	proxied := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		proxied = r.URL.String() + " " + r.Header.Get("Proxy-Authorization")
	}))
	defer proxy.Close()
	a, err := configured(text("url", "http://receiver.invalid/x"), attribute("allow_plain", sdk.Bool(true)), text("proxy", strings.Replace(proxy.URL, "//", "//u:pass@", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if r := a.Execute(t.Context(), sdk.Attempt{}, nil); r.Outcome != sdk.Done || proxied != "http://receiver.invalid/x Basic dTpwYXNz" {
		t.Errorf("%+v, %s", r, proxied)
	}
}

func TestTheReceiverAndTheSenderShowTheirCertificates(t *testing.T) {
	ca, stranger := identitytest.New(t), identitytest.New(t)
	server, files, other := ca.Keys(identity.Aggregator, "receiver"), ca.Files(identity.Client, "sender"), stranger.Files(identity.Client, "sender")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	s.TLS = server.Server(identity.Client)
	s.StartTLS()
	defer s.Close()
	// The receiver refuses a certificate after the handshake, so what the sender sees
	// first of it depends on who is faster.
	const asked = "where it asks for a client's certificate"
	for _, x := range []struct {
		ca, cert, key string
		want          string
	}{
		{files.CA, files.Cert, files.Key, "200 OK: sender"},
		{other.CA, files.Cert, files.Key, "nothing was sent: tls: failed to verify"},
		{"", files.Cert, files.Key, "tls { ca = … } names the authority"},
		{files.CA, other.Cert, other.Key, asked},
		{files.CA, "", "", asked},
	} {
		block := tlsBlock()
		for name, path := range map[string]string{"ca": x.ca, "cert": x.cert, "key": x.key} {
			if path != "" {
				block.Children = append(block.Children, text(name, path))
			}
		}
		r := posting(t, s, block).Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte("{}")}}, nil)
		if well := strings.HasPrefix(x.want, "200"); !strings.Contains(r.Message, x.want) || well != (r.Outcome == sdk.Done) || r.Outcome == sdk.Rejected {
			t.Errorf("%+v, want %q", r, x.want)
		}
	}
}

func TestNothingThatTheReceiverRepeatsIsKept(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "%s %s %s %s", r.Header.Get("Authorization"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.URL, secret)
	}))
	defer s.Close()
	a, err := configured(text("url", s.URL+"/services/T0KENT0KENT0KENT0KEN?key=t0kent0ken"), headers(map[string]string{"Authorization": "Bearer t0kent0ken0"}))
	if err != nil {
		t.Fatal(err)
	}
	r := a.Execute(t.Context(), sdk.Attempt{}, nil)
	if strings.Contains(strings.ToLower(r.Message), "t0ken") || strings.Contains(r.Message, secret) || !strings.Contains(r.Message, "400 Bad Request: ***") {
		t.Errorf("%+v", r)
	}
}

func TestALongAnswerIsCut(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := w.Write(bytes.Repeat([]byte("é\x00"), 10_000)); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	if r := posting(t, s).Execute(t.Context(), sdk.Attempt{}, nil); r.Outcome != sdk.Done || len(r.Message) > 600 {
		t.Errorf("%d: %+v", len(r.Message), r)
	}
}

func TestAnAnswerThatIsNoHTTPIsInDoubt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte("hello\n\n"))
			conn.Close()
		}
	}()
	a, err := configured(text("url", "http://"+l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	if r := a.Execute(t.Context(), sdk.Attempt{}, nil); r.Outcome != sdk.Unknown {
		t.Errorf("%+v", r)
	}
}
