package cli_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// authority makes an authority with a certificate of a server and one of a client.
func authority(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, args := range []string{"ca create", "cert create -role aggregator -name agg -host 127.0.0.1", "cert create -role client -name alice -roles read"} {
		if code, _, errs := (shell{now: time.Now}).bursar(t.Context(), append(strings.Fields("tls "+args), "-dir", dir)...); code != 0 {
			t.Fatal(errs)
		}
	}
	for name, of := range map[string]struct {
		host string
		now  func() time.Time
	}{"expired": {"127.0.0.1", func() time.Time { return time.Now().AddDate(-5, 0, 0) }}, "named": {"agg.example.org", time.Now}} {
		if code, _, errs := (shell{now: of.now}).bursar(t.Context(), "tls", "cert", "create", "-role", "aggregator", "-name", name, "-host", of.host, "-dir", dir); code != 0 {
			t.Fatal(errs)
		}
	}
	return dir
}

// keysOf are those of a server.
func keysOf(t *testing.T, dir, name string) *identity.Keys {
	t.Helper()
	keys, err := identity.Load(identity.Files{CA: dir + "/ca.pem", Cert: dir + "/" + name + ".pem", Key: dir + "/" + name + ".key"})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// aggregators are servers of every kind, by their host and port.
type aggregators struct {
	home, other string // authorities
	at          map[string]string
}

func everyKind(t *testing.T) aggregators {
	t.Helper()
	a := aggregators{home: authority(t), other: authority(t), at: map[string]string{}}
	keys := keysOf(t, a.home, "agg")
	configs := map[string]*tls.Config{"tls": keys.Open(), "certificate": keys.Public(), "expired": keysOf(t, a.home, "expired").Open(), "named": keysOf(t, a.home, "named").Open()}
	refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // its end is what is waited for
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"status":401,"detail":"it takes the role read"}`) // the client notices
	})
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>") // the client notices
	})
	for name, h := range map[string]http.Handler{"plain": refuses, "page": page, "missing": http.NotFoundHandler(), "tls": refuses, "certificate": refuses, "expired": refuses, "named": refuses} {
		server := httptest.NewUnstartedServer(h)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.EnableHTTP2 = true
		if config := configs[name]; config != nil {
			server.TLS = config
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		a.at[name] = server.Listener.Addr().String()
	}
	a.at["nothing"] = porttest.Free(t)
	a.at["ssh"] = speaks(t, "SSH-2.0-OpenSSH_9.6\r\n")
	return a
}

// speaks is a server that is first to say something.
func speaks(t *testing.T, hello string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, hello) // the client notices
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// asked is a command line against a server of a kind.
type asked struct {
	server, scheme  string
	ca, cert, token string // "", "home", "other"
}

// want is what the answer says, on its first line and on that of what to type.
func (a asked) want() (why, do string) {
	tls, secure := slices.Contains([]string{"tls", "certificate", "expired", "named"}, a.server), a.scheme == "https"
	switch {
	case a.server == "nothing":
		return "connection refused", "does the aggregator run at 127.0.0.1:"
	case a.server == "ssh":
		return "server is not bursar", "{} -address https://HOST:8443"
	case tls && !secure:
		return "server takes TLS only", "{} -address https://127.0.0.1:"
	case !tls && secure:
		return "server does not use TLS", "{} -address http://127.0.0.1:"
	case a.server == "page", a.server == "missing":
		return "server is not bursar", "{} -address https://HOST:8443"
	case a.server == "expired":
		return "certificate has expired", "date"
	case a.server == "named":
		return "failed to verify certificate", "{} -address https://agg.example.org:"
	case tls && a.ca != "home":
		return "unknown authority", "{} -ca-cert FILE"
	case tls && a.cert == "other", a.server == "certificate" && a.cert == "":
		return "certificate", "{} -client-cert FILE -client-key FILE"
	}
	return "it takes the role read (401 Unauthorized)", "{} -token-file FILE"
}

// options are the flags, or the variables in their place, and what names their origin.
func (a asked) options(k aggregators, byEnv bool) (flags []string, env map[string]string) {
	env = map[string]string{}
	set := func(flag, variable, value string) {
		if byEnv {
			env[variable] = value
		} else {
			flags = append(flags, "-"+flag, value)
		}
	}
	of := map[string]string{"home": k.home, "other": k.other}
	set("address", "BURSAR_ADDR", a.scheme+"://"+k.at[a.server])
	if a.ca != "" {
		set("ca-cert", "BURSAR_CACERT", of[a.ca]+"/ca.pem")
	}
	if a.cert != "" {
		set("client-cert", "BURSAR_CLIENT_CERT", of[a.cert]+"/alice.pem")
		set("client-key", "BURSAR_CLIENT_KEY", of[a.cert]+"/alice.key")
	}
	if a.token != "" {
		set("token-file", "BURSAR_TOKEN_FILE", k.home+"/token")
	}
	return flags, env
}

// Every kind of server, asked in every way, refuses in three lines: what was asked and why
// it failed, what was tried and whence, and what to type.
func TestRefusal_ServersAndFlags_SaysThreeLines(t *testing.T) {
	k := everyKind(t)
	write(t, k.home, "token", "b1_x")
	for server := range k.at {
		for _, scheme := range []string{"http", "https"} {
			for i := range 3 * 3 * 2 {
				three := []string{"", "home", "other"}
				a := asked{server, scheme, three[i%3], three[i/3%3], three[i/9]}
				flags, env := a.options(k, i%2 == 1)
				code, out, errs := shell{env: env}.bursar(t.Context(), append([]string{"status"}, flags...)...)
				lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
				if code != 1 || out != "" || len(lines) != 3 {
					t.Errorf("%+v: %d %s\n%s", a, code, out, errs)
					continue
				}
				why, do := a.want()
				origin := scheme + "://" + k.at[server] + ", from " + map[bool]string{true: "BURSAR_ADDR", false: "-address"}[i%2 == 1]
				if !strings.HasPrefix(lines[0], "bursar status: GET /v1/") || !strings.Contains(lines[0], why) || !strings.HasPrefix(lines[1], "Tried: "+origin) ||
					!strings.HasPrefix(lines[2], "Type:  ") || !strings.Contains(lines[2], strings.ReplaceAll(do, "{}", "bursar status")) {
					t.Errorf("%+v: want %q and %q\n%s", a, why, do, errs)
				}
			}
		}
	}
}

func TestRefusal_Sockets_SaysWhichAndWhy(t *testing.T) {
	dir := t.TempDir()
	ended, mine := filepath.Join(dir, "ended.sock"), filepath.Join(dir, "mine.sock")
	l, err := net.Listen("unix", ended)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	listen, err := local.Listen(mine, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
	}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listen) }()
	t.Cleanup(func() { server.Close() })
	absent := filepath.Join(dir, "absent.sock")
	contexts := filepath.Join(dir, "bursar")
	if err := os.Mkdir(contexts, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, contexts, "contexts.hcl", "current = \"here\"\ncontext \"here\" {\n  address = \"unix:"+ended+"\"\n}\n")
	for name, c := range map[string]struct {
		s         shell
		flags     string
		tried, do string
	}{
		"none":         {shell{sockets: []string{absent, ended}}, "", nowhere + ", the default after " + absent + " (not found), " + ended + " (no process listens on it)", "bursar dev starts one here"},
		"that of here": {shell{sockets: []string{ended, mine}}, "", "unix:" + mine + ", the socket of this machine; without a token or a certificate", "sudo bursar status"},
		"option":       {shell{}, "-address unix:" + absent, "unix:" + absent + ", from -address", "without -address"},
		"variable":     {shell{env: map[string]string{"BURSAR_ADDR": "unix:" + ended}}, "", "unix:" + ended + ", from BURSAR_ADDR", "env -u BURSAR_ADDR bursar status"},
		"context":      {shell{env: map[string]string{"XDG_CONFIG_HOME": dir}}, "", "unix:" + ended + ", from the context here of " + contexts + "/contexts.hcl", "bursar status -address"},
		"no address":   {shell{}, "-address ftp://x", "ftp://x, from -address", "bursar status -address https://HOST:8443"},
		"token":        {shell{env: map[string]string{"BURSAR_TOKEN": "b1_x"}}, "-address http://agg.example.org:8000", "from -address; with the token of BURSAR_TOKEN", "-address https://agg.example.org:8000"},
	} {
		code, _, errs := c.s.bursar(t.Context(), append([]string{"status"}, strings.Fields(c.flags)...)...)
		if code != 1 || strings.Count(errs, "\n") != 3 || !strings.Contains(errs, "\nTried: "+c.tried) && !strings.Contains(errs, c.tried+"\n") || !strings.Contains(errs[strings.LastIndex(errs, "Type:"):], c.do) {
			t.Errorf("%s: %d, want %q and %q\n%s", name, code, c.tried, c.do, errs)
		}
	}
}
