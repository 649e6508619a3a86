// Package post is what the actions that post to a receiver over HTTP share: where a post
// goes and as whose, and what an answer means.
package post

import (
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Receiver is where posts go, and as whose.
type Receiver struct {
	Shown   string   // of the URL, to people
	Agent   string   // of the header User-Agent
	Secrets []string // each signs
	Timeout time.Duration
	Cert    string // of the client, a file in PEM; "": none

	url     *url.URL
	method  string
	headers map[string]string
	plain   bool     // http is allowed beyond loopback
	proxy   *url.URL // nil: none
	ca, key string   // files in PEM; "": the system's authorities
	hide    *strings.Replacer
}

// Settings say where posts go, and as whose.
type Settings struct {
	URL        hcl.String
	Method     string
	Secrets    []string // each signs; none: Unsigned must be set
	Unsigned   bool
	Headers    map[string]string
	Timeout    time.Duration
	TLS        *TLS
	Proxy      string
	AllowPlain bool
	Agent      string // of the header User-Agent
}

// TLS are the settings of a tls block.
type TLS struct {
	CA   hcl.Absolute `hcl:"ca,optional" unset:"those of the system" doc:"the authorities to trust"`
	Cert hcl.Absolute `hcl:"cert,optional" doc:"a client certificate"`
	Key  hcl.Absolute `hcl:"key,optional" doc:"its key"`
}

const (
	minSecret  = 16
	maxSecrets = 4
)

// secretURL is shown for a URL that came from a secret.
const secretURL = "the URL"

// Read checks the settings of a block and reports every problem. The files that it names are
// tried only where nothing else is wrong with the configuration, as sound says.
func Read(cfg *sdk.Body, sound func() bool, s *Settings) *Receiver {
	r := &Receiver{method: s.Method, Timeout: s.Timeout, plain: s.AllowPlain, Secrets: s.Secrets, Agent: s.Agent}
	r.readURL(cfg, s.URL)
	r.checkSecrets(cfg, s.Unsigned)
	r.readHeaders(cfg, s.Headers)
	r.readProxy(cfg, s.Proxy)
	r.readTLS(cfg, sound, s)
	r.hide = r.newHider()
	return r
}

// readURL reads the URL. What is wrong with it is told without its text, which may be
// a secret.
func (r *Receiver) readURL(cfg *sdk.Body, text hcl.String) {
	if text.Value == "" {
		return
	}
	u, err := url.Parse(text.Value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		cfg.Errorf("url", `it is not a URL such as "https://billing.example.org/bursar"`)
		return
	case u.User != nil:
		cfg.Errorf("url", `it has a user name in it; write headers = { Authorization = … }, with file() or env()`)
		return
	case u.Fragment != "":
		cfg.Errorf("url", "what is behind # is not sent")
		return
	case u.Scheme == "http" && !r.plain && !IsLoopback(u.Hostname()):
		cfg.Errorf("url", "http is neither secret nor safe from changes on its way; write https, or allow_plain = true where the network is your own")
	}
	r.url, r.Shown = u, u.Scheme+"://"+u.Host
	if strings.Trim(u.EscapedPath(), "/") != "" || u.RawQuery != "" {
		r.Shown += "/…"
	}
	if text.Sensitive {
		r.Shown = secretURL
	}
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r *Receiver) checkSecrets(cfg *sdk.Body, unsigned bool) {
	switch {
	case len(r.Secrets) == 0 && !unsigned:
		cfg.Errorf("secret", `write secret = file("…"), with which posts are signed, or unsigned = true where the receiver knows by another way who posts`)
	case len(r.Secrets) > 0 && unsigned:
		cfg.Errorf("unsigned", "there is a secret, with which posts are signed")
	case len(r.Secrets) > maxSecrets:
		cfg.Errorf("secret", "%d secrets; at most %d are allowed", len(r.Secrets), maxSecrets)
	}
	for i, s := range r.Secrets {
		if len(s) < minSecret {
			cfg.ElementErrorf("secret", i, "it has fewer than %d characters; make one with: openssl rand -hex 32", minSecret)
		}
	}
}

// own are the headers that are the action's.
var own = []string{
	"Bursar-Attempt", "Bursar-Fence", "Bursar-Signature", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect",
	"Host", "Idempotency-Key", "Keep-Alive", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func (r *Receiver) readHeaders(cfg *sdk.Body, given map[string]string) {
	r.headers = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, canonical := given[name], http.CanonicalHeaderKey(name)
		_, twice := r.headers[canonical]
		switch {
		case !isToken(name):
			cfg.Errorf("headers", "%q is not the name of a header", name)
		case slices.Contains(own, canonical):
			cfg.Errorf("headers", "%s is set by this action", canonical)
		case twice:
			cfg.Errorf("headers", "%s given more than once", canonical)
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			cfg.Errorf("headers", "the value of %s has a line break or another control character", canonical)
		}
		r.headers[canonical] = value
	}
}

// isToken reports whether s can name a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.!#$%&'*+^`|~", c)
	})
}

func (r *Receiver) readProxy(cfg *sdk.Body, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		cfg.Errorf("proxy", `it is not a URL such as "http://proxy.example.org:3128"`)
		return
	}
	r.proxy = u
	if r.url != nil && r.url.Scheme == "http" && !r.plain {
		cfg.Errorf("proxy", "a URL with http is for this machine, which needs no proxy")
	}
}

func (r *Receiver) readTLS(cfg *sdk.Body, sound func() bool, s *Settings) {
	b := cfg.Block("tls")
	if s.TLS == nil {
		return
	}
	r.ca, r.Cert, r.key = string(s.TLS.CA), string(s.TLS.Cert), string(s.TLS.Key)
	if (r.Cert == "") != (r.key == "") {
		b.Errorf("cert", "a client certificate is both, cert and key")
	}
	if r.url != nil && r.url.Scheme == "http" {
		b.Errorf("ca", "a URL with http has no TLS")
	}
	if sound() {
		if _, err := r.tlsConfig(); err != nil {
			b.Errorf("ca", "%v", err)
		}
	}
}

// About is what a plan shows of the receiver: nothing of it is secret.
func (r *Receiver) About() string {
	lines := []string{r.method + " " + r.Shown}
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		lines = append(lines, name+": ***")
	}
	return strings.Join(lines, "\n") + "\n"
}

// Words that are shorter are no secrets.
const (
	leastWord = 8
	leastPath = 16 // of an element of a path, which often is a plain word
)

// newHider takes out of a text what must not be shown: what the receiver was told, which
// it may repeat, and of the URL what is not shown.
func (r *Receiver) newHider() *strings.Replacer {
	hidden := atLeast(leastWord, r.Secrets...)
	for _, value := range r.headers {
		hidden = append(hidden, atLeast(leastWord, append(strings.Fields(value), value)...)...)
	}
	if r.proxy != nil && r.proxy.User != nil {
		password, _ := r.proxy.User.Password()
		hidden = append(hidden, atLeast(leastWord, r.proxy.User.String(), password)...)
	}
	if u := r.url; u != nil {
		hidden = append(hidden, atLeast(leastWord, u.RequestURI(), u.Path, u.RawQuery)...)
		hidden = append(hidden, atLeast(leastPath, strings.Split(u.Path, "/")...)...)
		for _, values := range u.Query() {
			hidden = append(hidden, atLeast(leastWord, values...)...)
		}
		if r.Shown == secretURL {
			hidden = append(hidden, u.Host, u.Hostname())
		}
	}
	slices.SortFunc(hidden, func(a, b string) int { return len(b) - len(a) }) // the longest first
	var pairs []string
	for _, h := range hidden {
		pairs = append(pairs, h, "***")
	}
	return strings.NewReplacer(pairs...)
}

// atLeast are the words that are so long.
func atLeast(n int, words ...string) (long []string) {
	for _, w := range words {
		if len(w) >= n {
			long = append(long, w)
		}
	}
	return long
}
