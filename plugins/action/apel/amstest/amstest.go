// Package amstest is a stand-in of an ARGO Messaging Service on this machine, with
// its token service, that behaves as documented, errors included.
package amstest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Message is a message that was published.
type Message struct {
	ID         string
	Attributes map[string]string
	Data       []byte
}

// Service is the stand-in. Start makes it.
type Service struct {
	Host            string // 127.0.0.1
	Port, AuthnPort int
	Project, Topic  string
	Users           []string // common names of certificates that get a token

	mu       sync.Mutex
	tokens   map[string]bool
	issued   int
	messages []Message
	limit    int
	failures []Failure
	requests []string
	held     int
}

// Failure is how a request fails: the first that fits is used up.
type Failure struct {
	What   string // "authx509" or "publish"
	Status int    // 0: the connection is broken off
	Done   bool   // what is asked is done all the same

	// Hold is closed by the test when the answer may go; nil: at once. Meanwhile who
	// asked can be killed.
	Hold <-chan struct{}
}

// Start starts a service with that certificate, whose clients have certificates of
// the authority.
func Start(t testing.TB, cert tls.Certificate, clients *x509.CertPool) *Service {
	t.Helper()
	s := &Service{Host: "127.0.0.1", Project: "accounting", Topic: "gLite-APEL", tokens: map[string]bool{}, limit: 1 << 20}
	s.Port = serveTLS(t, http.HandlerFunc(s.handleAPI), &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}})
	s.AuthnPort = serveTLS(t, http.HandlerFunc(s.handleAuthn), &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
	})
	return s
}

func serveTLS(t testing.TB, h http.Handler, conf *tls.Config) int {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.TLS = conf
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Fail makes the next requests fail in this order.
func (s *Service) Fail(list ...Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, list...)
}

// Limit sets how many bytes of data a message may have.
func (s *Service) Limit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = n
}

// Expire makes all tokens worthless.
func (s *Service) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Messages are those that were published.
func (s *Service) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Requests are those that came, with the status that was answered.
func (s *Service) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Held is how many requests there were whose answer was held.
func (s *Service) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// holdRequest waits until a failure may be answered, or who asked is gone.
func (s *Service) holdRequest(r *http.Request, f Failure) {
	if f.Hold == nil {
		return
	}
	s.mu.Lock()
	s.held++
	s.mu.Unlock()
	select {
	case <-f.Hold:
	case <-r.Context().Done():
	}
}

// nextFailure takes the failure for a request.
func (s *Service) nextFailure(what string) (Failure, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.failures, func(f Failure) bool { return f.What == what })
	if i < 0 {
		return Failure{}, false
	}
	f := s.failures[i]
	s.failures = slices.Delete(s.failures, i, i+1)
	return f, true
}

// handleRequest answers a request by do, or fails it.
func (s *Service) handleRequest(w http.ResponseWriter, r *http.Request, what string, do func(*http.Request) (int, any)) {
	f, fails := s.nextFailure(what)
	status, body := f.Status, problemBody(f.Status, http.StatusText(f.Status))
	if !fails || f.Done {
		done, answer := do(r)
		if !fails {
			status, body = done, answer
		}
	}
	s.holdRequest(r, f)
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%s %d", what, status))
	s.mu.Unlock()
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func problemBody(code int, message string) any {
	status := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 408: "TIMEOUT", 413: "INVALID_ARGUMENT"}[code]
	if status == "" {
		status = "INTERNAL"
	}
	return map[string]any{"error": map[string]any{"code": code, "message": message, "status": status}}
}

// handleAuthn answers as the token service.
func (s *Service) handleAuthn(w http.ResponseWriter, r *http.Request) {
	s.handleRequest(w, r, "authx509", func(r *http.Request) (int, any) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/service-types/ams/hosts/"+s.Host+":authx509" {
			return 404, problemBody(404, "Resource not found")
		}
		if len(r.TLS.PeerCertificates) == 0 {
			return 400, problemBody(400, "No certificate provided")
		}
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; !slices.Contains(s.Users, name) {
			return 404, problemBody(404, "Binding was not found")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.issued++
		token := fmt.Sprintf("token-%d", s.issued)
		s.tokens[token] = true
		return 200, map[string]string{"token": token}
	})
}

// handleAPI answers as the messaging service.
func (s *Service) handleAPI(w http.ResponseWriter, r *http.Request) {
	s.handleRequest(w, r, "publish", s.publishMessages)
}

func (s *Service) publishMessages(r *http.Request) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tokens[r.Header.Get("X-Api-Key")] {
		return 401, problemBody(401, "Unauthorized")
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/projects/"+s.Project+"/")
	if !ok {
		return 404, problemBody(404, "ProjectUUID doesn't exist")
	}
	if path != "topics/"+s.Topic+":publish" || r.Method != http.MethodPost {
		return 404, problemBody(404, "Topic doesn't exist")
	}
	text, err := io.ReadAll(r.Body)
	var body struct {
		Messages []struct {
			Attributes map[string]string
			Data       string
		}
	}
	if err != nil || json.Unmarshal(text, &body) != nil || len(body.Messages) == 0 {
		return 400, problemBody(400, "Invalid Message Arguments")
	}
	var ids []string
	for _, m := range body.Messages {
		data, err := base64.StdEncoding.DecodeString(m.Data)
		if err != nil {
			return 400, problemBody(400, "Invalid Message Arguments")
		}
		if len(m.Data) > s.limit {
			return 413, problemBody(413, "Message size is too large")
		}
		id := strconv.Itoa(len(s.messages) + 1)
		s.messages = append(s.messages, Message{ID: id, Attributes: m.Attributes, Data: data})
		ids = append(ids, id)
	}
	return 200, map[string][]string{"messageIds": ids}
}
