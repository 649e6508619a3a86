package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/control"
)

// agent answers what it was given.
type agent struct {
	refuse error
	steps  []control.Step
}

func (a agent) Status() control.Status { return control.Status{Name: "a1"} }

func (a agent) Reload(context.Context) (control.Reloaded, error) {
	return control.Reloaded{Added: []string{"x/y"}}, a.refuse
}

func (a agent) Forget(_ context.Context, f control.Forget) (control.Forgotten, error) {
	return control.Forgotten{Cluster: control.Cluster{ID: f.Cluster}, Dropped: 7}, a.refuse
}

func (a agent) Recollect(_ context.Context, _ control.Recollect, send func(control.Step) error) (control.Counts, error) {
	for _, s := range a.steps {
		if err := send(s); err != nil {
			return control.Counts{}, err
		}
	}
	return control.Counts{Records: int64(len(a.steps))}, a.refuse
}

// serve answers on path until the test ends.
func serve(t *testing.T, path string, a agent) *control.Client {
	t.Helper()
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- control.Serve(ctx, l, a) }()
	client := control.NewClient(path)
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return client
}

func TestASocketWithALongPathAndOneThatACrashLeftBehindAreNoObstacle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "agent.sock"), filepath.Join(t.TempDir(), "s")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		client := serve(t, path, agent{})
		if s, err := client.Status(t.Context()); err != nil || s.Name != "a1" {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := control.Listen(path); err == nil {
			t.Error("two agents have one socket")
		}
	}
}

func TestARefusalKeepsItsWords(t *testing.T) {
	client := serve(t, filepath.Join(t.TempDir(), "s"), agent{refuse: errors.New("agent.hcl:1:1: no\nagent.hcl:2:2: never"), steps: make([]control.Step, 3)})
	if _, err := client.Reload(t.Context()); err == nil || err.Error() != "agent.hcl:1:1: no\nagent.hcl:2:2: never" {
		t.Errorf("error %v", err)
	}
	shown := 0
	counts, err := client.Recollect(t.Context(), control.Recollect{}, func(control.Step) { shown++ })
	if err == nil || !strings.Contains(err.Error(), "never") || shown != 3 || counts.Records != 3 {
		t.Errorf("%d steps, %+v, %v", shown, counts, err)
	}
}

func TestAnOrderToForgetNamesItsClusterAndSaysWhatWent(t *testing.T) {
	client := serve(t, filepath.Join(t.TempDir(), "s"), agent{})
	if got, err := client.Forget(t.Context(), control.Forget{Cluster: "c1"}); err != nil || got.Cluster.ID != "c1" || got.Dropped != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	client = serve(t, filepath.Join(t.TempDir(), "s"), agent{refuse: errors.New("there is no cluster \"c2\"")})
	if _, err := client.Forget(t.Context(), control.Forget{Cluster: "c2"}); err == nil || err.Error() != "there is no cluster \"c2\"" {
		t.Errorf("error %v", err)
	}
}

func TestWhereNobodyListensTheAgentDoesNotRun(t *testing.T) {
	client := control.NewClient(filepath.Join(t.TempDir(), "s"))
	if _, err := client.Status(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("error %v", err)
	}
}
