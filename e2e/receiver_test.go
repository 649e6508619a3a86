//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// receiver is the source block of a receiver, and where it listens.
func receiver(s *site.Site, label, more string) (block, url string) {
	address, scheme := s.Address(), "http"
	if strings.Contains(more, "tls") {
		scheme = "https"
	} else {
		more += "\n    allow_local_users = true"
	}
	return fmt.Sprintf("source \"receiver\" %q {\n  config {\n    listen = %q\n    %s\n  }\n}\n", label, address, more), scheme + "://" + address
}

// pusher is a client that pushes records until all of them were taken.
type pusher struct {
	mode, out string
	cmd       *exec.Cmd
	said      bytes.Buffer
}

func push(t *testing.T, s *site.Site, mode, add, update string, count int, tls ...string) *pusher {
	t.Helper()
	p := &pusher{mode: mode, out: filepath.Join(s.Dir, mode+".json")}
	args := append([]string{"-W", "ignore", "testdata/auditor_pusher.py", mode, add, update, mode + "-", fmt.Sprint(count), p.out}, tls...)
	p.cmd = exec.CommandContext(t.Context(), rig.Python(t), args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// truth waits for the end of the client and adds what it has pushed.
func (p *pusher) truth(t *testing.T, all map[string][3]int64) {
	t.Helper()
	late := time.AfterFunc(10*time.Minute, func() { _ = p.cmd.Process.Kill() }) // it may have ended
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%s: %v (after ten minutes it is killed)\n%s", p.mode, err, p.said.String())
	}
	text, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
}

// checkPushed waits until the aggregator shows exactly what was pushed.
func checkPushed(t *testing.T, s *site.Site, g *site.Aggregator, want map[string][3]int64) {
	t.Helper()
	s.Eventually("all that was pushed is there, and closed", func() (bool, string) {
		got, wrong := g.ByID(), 0
		for id, w := range want {
			r, ok := got[id]
			if !ok || [3]int64{int64(r.Start), int64(r.Stop), r.Component("Cores").Amount} != w {
				wrong++
			}
		}
		return wrong == 0 && len(got) == len(want), fmt.Sprintf("%d records, want %d; %d are missing or differ", len(got), len(want), wrong)
	})
}

func TestReceiver_Kills_CountEachPushOnce(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	plain1, url1 := receiver(s, "plain", "")
	secure, urlTLS := receiver(s, "remote", "tls {}")
	plain2, url2 := receiver(s, "plain", "")
	head1 := s.Agent(site.AgentSpec{Name: "head1", Sources: plain1 + secure})
	head2 := s.Agent(site.AgentSpec{Name: "head2", Sources: plain2})
	agg := s.Aggregator(head1, head2)
	cert := s.Issue(identity.Identity{Role: identity.Client, Name: "tardis", Rights: identity.Write})
	for _, d := range []*site.Daemon{head1.Daemon, head2.Daemon, agg.Daemon} {
		d.Start()
	}
	awaitHealthy(t, s, url1, url2)
	clients := []*pusher{
		push(t, s, "async", url1, url2, 4000), // updates go to the other agent
		push(t, s, "blocking", urlTLS, urlTLS, 400, cert.Cert, cert.Key, cert.CA),
		push(t, s, "queued", url2, url2, 400),
	}
	killing{
		victims: []func(){head1.Restart, head2.Restart, agg.Restart, agg.Restart, head1.KillChildren, head2.KillChildren},
		alive:   []*site.Daemon{head1.Daemon, head2.Daemon, agg.Daemon},
		pause:   1200 * time.Millisecond,
	}.run(t)
	last, want := time.Now(), map[string][3]int64{}
	for _, c := range clients {
		c.truth(t, want)
		t.Logf("%s, %s after the last kill", strings.TrimSpace(c.said.String()), time.Since(last).Round(time.Second))
	}
	checkPushed(t, s, agg, want)
	checkConserved(t, agg)
	checkNothingWaits(t, agg)
}

// checkNothingWaits checks that every stop has found its record.
func checkNothingWaits(t *testing.T, g *site.Aggregator) {
	t.Helper()
	var answer struct {
		Waiting []struct {
			ID string `json:"record_id"`
		} `json:"waiting"`
	}
	if err := g.Get("/v1/waiting", &answer); err != nil || len(answer.Waiting) > 0 {
		t.Errorf("%d stops wait for their record; %v", len(answer.Waiting), err)
	}
}

// awaitHealthy waits until receivers take what is pushed.
func awaitHealthy(t *testing.T, s *site.Site, urls ...string) {
	t.Helper()
	for _, url := range urls {
		s.Eventually(url+" is healthy", func() (bool, string) {
			status, _, err := send("GET", url+"/health_check", "")
			return status == http.StatusOK, fmt.Sprint(status, err)
		})
	}
}

// send makes one request; an error is a connection that was broken off.
func send(method, url, body string) (status int, text string, err error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Close = true // each on its own connection, so that no broken one is tried again
	resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// must makes a request and fails the test when the answer is another one.
func must(t *testing.T, method, url, body string, status int, text string) {
	t.Helper()
	got, said, err := send(method, url, body)
	if err != nil || got != status || said != text {
		t.Errorf("%s %s %s: %d %q %v, want %d %q", method, url, body, got, said, err, status, text)
	}
}

func openRecord(id, more string) string {
	return fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":["x"]%s},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2024-02-24T00:00:00Z"}`, id, more)
}

func stopOf(id, stop string) string {
	return fmt.Sprintf(`{"record_id":%q,"components":[],"stop_time":%q}`, id, stop)
}

func TestReceiver_UpdateElsewhereOrAfterLostBuffer_ClosesRecord(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	block1, url1 := receiver(s, "r", "")
	block2, url2 := receiver(s, "r", "")
	head1 := s.Agent(site.AgentSpec{Name: "head1", Sources: block1})
	head2 := s.Agent(site.AgentSpec{Name: "head2", Sources: block2})
	agg := s.Aggregator(head1, head2)
	for _, d := range []*site.Daemon{head1.Daemon, head2.Daemon, agg.Daemon} {
		d.Start()
	}
	awaitHealthy(t, s, url1, url2)
	must(t, "POST", url1+"/record", openRecord("there", ""), 200, "")
	must(t, "POST", url1+"/record", openRecord("there", ""), 500, "RECORD_EXISTS")
	must(t, "POST", url1+"/record", openRecord("lost", ""), 200, "")
	must(t, "PUT", url2+"/record", stopOf("there", "2024-02-24T01:00:00Z"), 200, "")
	must(t, "PUT", url2+"/record", stopOf("early", "2024-02-24T02:00:00Z"), 200, "")
	must(t, "POST", url1+"/records", "["+openRecord("early", "")+","+openRecord("there", "")+"]", 500, "RECORD_EXISTS")
	must(t, "POST", url1+"/records", "["+openRecord("early", "")+"]", 200, "")
	agg.AwaitRecords(3)

	head1.Kill()
	if err := os.RemoveAll(head1.DataDir); err != nil {
		t.Fatal(err)
	}
	head1.Start()
	awaitHealthy(t, s, url1)
	must(t, "PUT", url1+"/record", stopOf("lost", "2024-02-24T03:00:00Z"), 200, "")
	must(t, "POST", url1+"/record", openRecord("there", `,"second":["body"]`), 200, "") // no one here knows it any more
	must(t, "POST", url1+"/record", openRecord("mark", ""), 200, "")
	want := map[string]string{"there": "2024-02-24T01:00:00Z", "early": "2024-02-24T02:00:00Z", "lost": "2024-02-24T03:00:00Z", "mark": ""}
	s.Eventually("all are closed", func() (bool, string) {
		got := agg.ByID()
		for id, stop := range want {
			if r, ok := got[id]; !ok || r.Open() != (stop == "") || !r.Open() && r.Stop.String() != stop {
				return false, fmt.Sprintf("%s: %+v", id, r)
			}
		}
		return true, ""
	})
	if r := agg.ByID()["there"]; r.Meta.Get("second") != nil {
		t.Error("the second body was taken")
	}
	checkConserved(t, agg)
	checkNothingWaits(t, agg)
}

func TestReceiver_BodyRefused_IsInQuarantine(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	block, url := receiver(s, "tardis", "")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: block})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	awaitHealthy(t, s, url)
	for _, body := range []string{"this is no JSON", `{"record_id":"half"}`, "this is no JSON"} {
		if status, text, err := send("POST", url+"/record", body); status != http.StatusBadRequest {
			t.Error(status, text, err)
		}
	}
	s.Eventually("both are in quarantine", func() (bool, string) {
		out, err := agg.Bursar("quarantine", "list")
		return err == nil && strings.Contains(out, "head1/receiver/tardis") && strings.Contains(out, "Json deserialize error") && strings.Contains(out, "missing field `components`"), fmt.Sprint(out, err)
	})
	if st, err := agg.Status(); err != nil || st.Quarantined != 2 || st.Records != 0 {
		t.Errorf("%+v %v", st, err)
	}
}

func TestReceiver_BufferFull_StallsPushes(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	block, url := receiver(s, "r", `patience = "2s"`)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: block, Buffer: `max_size = "1MiB"`})
	agg := s.Aggregator(agent)
	agent.Start()
	awaitHealthy(t, s, url)
	var mu sync.Mutex
	taken := map[string]bool{}
	add := func(id string) (ok bool) {
		status, text, err := send("POST", url+"/record", openRecord(id, `,"noise":["`+noise(180)+`","`+noise(180)+`"]`))
		switch {
		case err == nil && status == http.StatusOK, text == "RECORD_EXISTS":
			mu.Lock()
			defer mu.Unlock()
			taken[id] = true
			return true
		case err == nil:
			t.Errorf("%s was answered with %d %q", id, status, text)
		}
		return false
	}
	n := 0
	for full := false; !full && n < 20_000; {
		var all sync.WaitGroup
		for range 64 {
			id := fmt.Sprintf("r%05d", n)
			n++
			all.Go(func() {
				if !add(id) {
					mu.Lock()
					defer mu.Unlock()
					full = true
				}
			})
		}
		all.Wait()
	}
	if len(taken) == n {
		t.Fatal("the buffer never was full")
	}
	var waiting sync.WaitGroup // someone who pushes, so that there is something to be stuck with
	waiting.Go(func() { add(fmt.Sprintf("r%05d", n-1)) })
	s.Eventually("a receiver whose agent takes nothing is not healthy", func() (bool, string) {
		status, _, err := send("GET", url+"/health_check", "")
		return status == http.StatusInternalServerError, fmt.Sprint(status, err)
	})
	waiting.Wait()
	agg.Start()
	for i := range n {
		id := fmt.Sprintf("r%05d", i)
		if taken[id] {
			continue
		}
		s.Eventually("what was broken off is taken", func() (bool, string) { return add(id), id })
	}
	agg.AwaitRecords(int64(n))
	checkConserved(t, agg)
}

func TestReceiver_Reload_LosesNoPush(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	block, url := receiver(s, "r", "")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: block})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	awaitHealthy(t, s, url)
	const n = 400
	var pushing sync.WaitGroup
	pushing.Go(func() {
		for i := range n {
			for {
				status, text, err := send("POST", url+"/record", openRecord(fmt.Sprintf("r%d", i), ""))
				if err == nil && (status == http.StatusOK || text == "RECORD_EXISTS") {
					break
				}
				if err == nil {
					t.Errorf("record %d was answered with %d %q", i, status, text)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
	for i := range 4 {
		agent.Reload(strings.Replace(block, "config {", fmt.Sprintf("config {\n    patience = \"%ds\"", 20+i), 1))
	}
	pushing.Wait()
	agg.AwaitRecords(n)
	checkConserved(t, agg)
}

// noise is text that does not compress.
func noise(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}
