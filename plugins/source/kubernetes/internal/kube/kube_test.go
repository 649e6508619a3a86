package kube

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
)

// The recorded answers are those of a real API server.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWatch_RecordedEvents_AreDecoded(t *testing.T) {
	var phases []string
	var last Event
	for line := range bytes.Lines(recorded(t, "watch-events.ndjson")) {
		e, err := parseEvent(line)
		if err != nil || e.Bad != nil || e.Pod == nil {
			t.Fatalf("%v %v: %s", err, e.Bad, line)
		}
		phases, last = append(phases, e.Pod.Status.Phase), e
	}
	if phases = slices.Compact(phases); !slices.Equal(phases, []string{Pending, Running, Succeeded}) || !last.Deleted {
		t.Errorf("phases %q, the last event %+v", phases, last)
	}
	p := last.Pod
	ended := p.Status.ContainerStatuses[0].State.Terminated
	if p.Metadata.Name != "train" || p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] != "1" || ended.FinishedAt.Sub(ended.StartedAt) != time.Minute ||
		p.Metadata.Version() == 0 || p.Spec.InitContainers[0].Name != "init" || p.Metadata.Annotations["accounting/project"] != "ERC-12" {
		t.Errorf("%+v", p)
	}
}

func TestDecode_RecordedNodeAndPod(t *testing.T) {
	n, bad := decodeObject[Node](recorded(t, "kwok-node.json"))
	if bad != nil || !n.Ready() || n.Status.Allocatable["memory"] != "512Gi" {
		t.Errorf("%+v, %v", n, bad)
	}
	p, bad := decodeObject[Pod](recorded(t, "kwok-pod-running.json"))
	if bad != nil || p.Status.ContainerStatuses[0].State.Running == nil || p.Status.StartTime == nil {
		t.Errorf("%+v, %v", p, bad)
	}
}

func TestWatch_OddLines_AreErrorsOrOneBadPod(t *testing.T) {
	if _, err := parseEvent([]byte(`{"type":"ERROR","object":{"kind":"Status","message":"too old resource version: 1 (5)","reason":"Expired","code":410}}`)); !Expired(err) {
		t.Error(err)
	}
	if _, err := parseEvent([]byte(`{"type":"ADD`)); err == nil {
		t.Error("a line that was cut is taken")
	}
	e, err := parseEvent([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"status":[]}}`))
	if err != nil || e.Bad == nil || e.Bad.UID != "u" || e.Version != "7" || len(e.Bad.Raw) == 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestAmount_EveryNotation_IsRead(t *testing.T) {
	for _, c := range []struct {
		text string
		unit int32
		want int64
		ok   bool
	}{
		{"1500m", -3, 1500, true}, {"2", -3, 2000, true}, {"0.1", -3, 100, true}, {"100u", -3, 1, true}, {"1n", -3, 1, true}, {"1e3", -3, 1_000_000, true}, {"1E3", 0, 1000, true},
		{"2Gi", 0, 2 << 30, true}, {"2G", 0, 2e9, true}, {"1.5Ti", 0, 3 << 39, true}, {"500k", 0, 500_000, true}, {"128974848", 0, 128974848, true}, {"129e6", 0, 129_000_000, true},
		{"1Pi", 0, 1 << 50, true}, {"123456789012345m", 0, 123456789013, true}, {"8Ei", 0, 0, false}, {"9999999999E", 0, 0, false}, {"-1", 0, 0, false}, {"", 0, 0, false}, {"1 Gi", 0, 0, false}, {"1GiB", 0, 0, false},
	} {
		got, err := Amount(c.text, map[int32]Unit{-3: Milli, 0: One}[c.unit])
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %d, %v; want %d", c.text, got, err, c.want)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for line := range bytes.Lines(recorded(f, "watch-events.ndjson")) {
		f.Add(line)
	}
	f.Fuzz(func(_ *testing.T, line []byte) {
		e, err := parseEvent(line)
		if err == nil && e.Pod != nil {
			e.Pod.Metadata.Version()
		}
	})
}

func TestRefusal_OfWhoAsks_SaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		code          int
		account, want string
	}{
		{http.StatusUnauthorized, "", "/api/v1/pods: status 401: no; the token or certificate of the kubeconfig is not valid or has expired: renew it, the source reads it again"},
		{http.StatusUnauthorized, "/account", "/api/v1/pods: status 401: no; the token of the pod's service account, /account/token, is not valid or has expired: " +
			"the kubelet renews it, and the source reads it again; where it stays so, check that the service account exists, and delete the pod, so that it gets another token"},
		{http.StatusForbidden, "", "/api/v1/pods: status 403: no; grant the user of the kubeconfig the rights in deploy/rbac.yaml"},
		{http.StatusForbidden, "/account", "/api/v1/pods: status 403: no; apply the RBAC manifest in deploy/rbac.yaml, which grants the pod's service account its rights"},
		{http.StatusNotFound, "/account", "/api/v1/pods: status 404: no"},
	} {
		err := &Refusal{Path: Pods, Code: c.code, Message: "no", account: c.account}
		if err.Error() != c.want || Denied(err) != (c.code != http.StatusNotFound) || Unauthorized(err) != (c.code == http.StatusUnauthorized) {
			t.Errorf("%s, denied %t, unauthorized %t; want %s", err, Denied(err), Unauthorized(err), c.want)
		}
	}
}
