package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
)

// nameServer answers questions for services; without any it fails.
type nameServer struct {
	t  *testing.T
	at net.PacketConn

	mu       sync.Mutex
	services []dnsmessage.SRVResource
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	at, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{t: t, at: at}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.run()
	}()
	t.Cleanup(func() {
		at.Close()
		<-ended
	})
	return n
}

func (n *nameServer) set(hosts ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.services = nil
	for _, h := range hosts {
		n.services = append(n.services, dnsmessage.SRVResource{Port: 7070, Target: dnsmessage.MustNewName(h + ".")})
	}
}

func (n *nameServer) run() {
	for b := make([]byte, 1500); ; {
		size, from, err := n.at.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(b[:size]); err != nil || len(m.Questions) != 1 {
			n.t.Errorf("a question: %v %v", m, err)
			continue
		}
		m.Response, m.Additionals = true, nil
		n.mu.Lock()
		for i := range n.services {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET, TTL: 60}, Body: &n.services[i],
			})
		}
		if len(n.services) == 0 {
			m.RCode = dnsmessage.RCodeServerFailure
		}
		n.mu.Unlock()
		text, err := m.Pack()
		if err == nil {
			_, err = n.at.WriteTo(text, from)
		}
		if err != nil {
			n.t.Error(err)
		}
	}
}

func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", n.at.LocalAddr().String())
	}}
}

func TestFindAgents_ServicesOfDNS_AreAgentsByTheirHosts(t *testing.T) {
	n := newNameServer(t)
	a := &Aggregator{set: Settings{Resolver: n.resolver()}}
	ask := func(wrong string, hosts ...string) (list []string) {
		t.Helper()
		n.set(hosts...)
		found, err := a.findAgents(t.Context(), "_bursar-agent._tcp.example.org")
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%v: %v, want %q", hosts, err, wrong)
		}
		for _, f := range found {
			list = append(list, f.Name+" "+f.Address)
		}
		return list
	}
	for _, c := range []struct {
		wrong string
		hosts []string
		want  []string
	}{
		{"", []string{"head2.example.org", "head1.example.org"}, []string{"head1 head1.example.org:7070", "head2 head2.example.org:7070"}},
		{"both named head1", []string{"head1.example.org", "head1.example.net"}, []string{"head1 head1.example.org:7070"}},
		{"server misbehaving", nil, nil},
	} {
		if got := ask(c.wrong, c.hosts...); len(got) != len(c.want) || c.wrong == "" && !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.hosts, got)
		}
	}
}

func TestFollowSRV_DNSFails_AgentsOfBeforeStayAndStatusSaysSo(t *testing.T) {
	files := func(srv string) *clusterconfig.Document {
		t.Helper()
		name := filepath.Join(t.TempDir(), "aggregator.hcl")
		text := srv + "\naggregator {\n  name = \"agg1\"\n  data_dir = \"data\"\n  tls {\n    ca = \"a\"\n    cert = \"b\"\n    key = \"c\"\n  }\n}\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		conf, _, diags := config.Load(name)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		return conf.Shared()
	}
	n := newNameServer(t)
	n.set("head1.example.org")
	agg, err := Open(Settings{Name: "agg1", DataDir: t.TempDir(), Files: files(`agent_srv = "_bursar-agent._tcp.example.org"`), Resolver: n.resolver(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- agg.Run(ctx) }()
	until := func(what string, is func(agents []ingest.Agent, trouble error) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			agg.pulled.mu.Lock()
			agents, trouble := agg.pulled.mergedAgents(), agg.pulled.srvTrouble
			agg.pulled.mu.Unlock()
			if is(agents, trouble) {
				return
			}
			if time.Now().After(end) {
				t.Fatal("not within a minute:", what, agents, trouble)
			}
		}
	}
	until("the agent is found", func(list []ingest.Agent, err error) bool {
		return len(list) == 1 && list[0].Name == "head1" && err == nil
	})
	n.set()
	agg.SetFiles(files(`agent_srv = "_other._tcp.example.org"`)) // is looked up at once
	until("a failure takes no agent away", func(list []ingest.Agent, err error) bool { return len(list) == 1 && err != nil })
	found := fmt.Sprint(agg.doctor.Report(t.Context()).Findings)
	if !strings.Contains(found, "agent-srv") || !strings.Contains(found, "_other._tcp.example.org") {
		t.Errorf("findings: %s", found)
	}
	agg.SetFiles(files(""))
	until("no agents are wanted from DNS", func(list []ingest.Agent, err error) bool { return len(list) == 0 && err == nil })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
