package cli

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

func TestRefusal_AgentNotReached_SaysWhichSocketAndWhatToType(t *testing.T) {
	dir := folder(t, sound)
	for _, socket := range []string{"absent", "of an agent that has ended"} {
		if socket != "absent" {
			if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("unix", filepath.Join(dir, "data", "agent.sock"))
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}
		for _, command := range []string{"status", "reload", "forget -cluster x", "recollect -source example/ex -from 2026-01-01"} {
			for config, tried := range map[string]string{dir + "/agent.hcl": "data/agent.sock, in data_dir of agent.hcl", dir + "/none.hcl": "/var/lib/bursar-agent/agent.sock, in the default data_dir: file none.hcl does not exist"} {
				code, text := bursar(t, dir, append(strings.Fields(command), "-config", config)...)
				name, _, _ := strings.Cut(command, " ")
				if code != codeError || strings.Count(text, "\n") != 4 || !strings.Contains(text, "not running") || !strings.Contains(text, "\nTried: "+tried) ||
					!strings.Contains(text, "\nType:  systemctl start bursar-agent   # or bursar-agent "+name+" -config FILE") {
					t.Errorf("%s, socket %s: %d\n%s", command, socket, code, text)
				}
			}
		}
	}
}

func TestRefusal_Join_SaysWhichServerAndWhatToType(t *testing.T) {
	plain, foreign := httptest.NewServer(http.NotFoundHandler()), httptest.NewUnstartedServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	t.Cleanup(foreign.Close)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	foreign.Config.ErrorLog = log.New(io.Discard, "", 0)
	foreign.StartTLS()
	token := join.New(identity.Digest{}).String()
	for address, want := range map[string]string{
		porttest.Free(t): "connection refused", plain.Listener.Addr().String(): "does not use TLS", foreign.Listener.Addr().String(): "is not bursar",
	} {
		dir := t.TempDir()
		code, text := bursar(t, dir, "join", address, token, "-name", "a1", "-user", me.Username, "-config", dir+"/agent.hcl")
		if code != codeError || !strings.Contains(text, want) || !strings.Contains(text, "\nTried: https://"+address) || !strings.Contains(text, "\nType:  bursar-agent join HOST:PORT TOKEN") {
			t.Errorf("%s: %d\n%s", want, code, text)
		}
	}
}
