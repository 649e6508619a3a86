//go:build e2e

package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// kubeletMetrics plays a kubelet: it tells what containers use, as /metrics/resource does. A
// container uses the same share of its core from when it is first asked for.
type kubeletMetrics struct {
	*httptest.Server

	mu    sync.Mutex
	since map[string]time.Time
	pods  []string
}

// cpuShare and memoryBytes are what a container of a pod uses.
const (
	cpuShare    = 0.75
	memoryBytes = 123_456_789
)

func newKubelet(t *testing.T) *kubeletMetrics {
	k := &kubeletMetrics{since: map[string]time.Time{}}
	k.Server = httptest.NewServer(http.HandlerFunc(k.answer))
	t.Cleanup(k.Close)
	return k
}

func (k *kubeletMetrics) answer(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fmt.Fprintln(w, "# TYPE container_cpu_usage_seconds_total counter\n# TYPE pod_cpu_usage_seconds_total counter")
	for _, pod := range k.pods {
		if k.since[pod].IsZero() {
			k.since[pod] = time.Now()
		}
		used := 1 + cpuShare*time.Since(k.since[pod]).Seconds()
		for _, container := range []string{"main", "side"} {
			of := fmt.Sprintf("namespace=\"default\",pod=%q,container=%q", pod, container)
			fmt.Fprintf(w, "container_cpu_usage_seconds_total{%s} %f\ncontainer_memory_working_set_bytes{%s} %d\n", of, used, of, memoryBytes)
		}
		of := fmt.Sprintf("namespace=\"default\",pod=%q", pod)
		fmt.Fprintf(w, "pod_cpu_usage_seconds_total{%s} %f\npod_memory_working_set_bytes{%s} %d\n", of, 2*used, of, 2*memoryBytes)
	}
}

func (k *kubeletMetrics) has(pods ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = append(k.pods, pods...)
}

// promServer is a Prometheus that scrapes a kubelet each second and is asked by https.
type promServer struct {
	*site.Daemon
	address, ca string
	client      *http.Client
}

func newPromServer(t *testing.T, s *site.Site, kubelet string) *promServer {
	t.Helper()
	keys := s.Cert(identity.Aggregator, "prometheus")
	config := s.Write("prometheus.yml", fmt.Sprintf("global: { scrape_interval: 1s, evaluation_interval: 1s }\nscrape_configs:\n  - job_name: kubelet\n    honor_labels: true\n    static_configs: [{ targets: [%q] }]\n",
		strings.TrimPrefix(kubelet, "http://")))
	web := s.Write("web.yml", fmt.Sprintf("tls_server_config: { cert_file: %q, key_file: %q }\n", keys.Cert, keys.Key))
	p := &promServer{address: s.Address(), ca: keys.CA}
	p.Daemon = s.Daemon("prometheus", "prometheus", "--config.file", config, "--web.config.file", web, "--storage.tsdb.path", filepath.Join(s.Dir, "tsdb"), "--web.listen-address", p.address)
	p.Become("/usr/bin/prometheus")
	text, err := os.ReadFile(keys.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: time.Minute}
	return p
}

// values are the numbers of all series of an answer, at a time.
func (p *promServer) values(query string, at int64) (all []float64, err error) {
	resp, err := p.client.Get("https://" + p.address + "/api/v1/query?" + url.Values{"query": {query}, "time": {fmt.Sprint(at)}}.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Value  [2]any
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	for _, r := range answer.Data.Result {
		for _, v := range append(r.Values, r.Value) {
			if text, ok := v[1].(string); ok {
				n, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return nil, err
				}
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// A real Prometheus completes records with what containers used, also those of the time in
// which it was away. The converted configuration of AUDITOR's Kubernetes collector, beside
// it, makes that collector's records of the same pods.
func TestKubernetes_RealPrometheus_CompletesRecords(t *testing.T) {
	t.Parallel()
	c := rig.Kubernetes(t)
	c.Apply(filepath.Join(site.Top(), kubeManifest, "rbac.yaml"))
	s := site.New(t)
	kubelet := newKubelet(t)
	prom := newPromServer(t, s, kubelet.URL)
	host, port, _ := strings.Cut(prom.address, ":")
	example := auditorExample(t, s, "kubernetes.yml", "prometheus.example.org", host, "31000", port, "    - app==test\n", "", "tier=batch", "user!=none", `"2024-04-18T12:00:00Z"`, `"2024-04-18T12:00:00Z"`)
	auditor := convertedSource(t, s, example, fmt.Sprintf("kubeconfig = %q", c.Kubeconfig("agenttoken")))
	secure := strings.NewReplacer(`address = "http://`, fmt.Sprintf("ca = %q\n delay = \"4s\"\n address = \"https://", prom.ca), `"5m"`, `"1s"`, "retries = 2", "retries = 100")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: secure.Replace(auditor) +
		kubeSource(c, fmt.Sprintf("prometheus {\n address = \"https://%s\"\n ca = %q\n delay = \"4s\"\n retry = \"1s\"\n retries = 100\n }", prom.address, prom.ca))})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	prom.Start()
	limits := object{"requests": object{"cpu": "500m", "memory": "1Gi"}, "limits": object{"cpu": "1500m", "memory": "1500M"}}
	pod := func(name string, change func(spec, container object)) {
		kubelet.has(name)
		c.Do(http.MethodPost, kubePods, kubeSpec(name, "15s", func(_, spec, container object) {
			container["resources"] = limits
			change(spec, container)
		}), nil)
	}
	pod("one", func(object, object) {})
	two := kubeSpec("two", "15s", nil)
	two["spec"].(object)["containers"] = []object{{"name": "main", "image": "x", "resources": limits}, {"name": "side", "image": "x", "resources": limits}}
	kubelet.has("two")
	c.Do(http.MethodPost, kubePods, two, nil)
	pod("bare", func(_, container object) { delete(container, "resources") })
	truth := kubeTruth{}
	awaitOverPods(s, c, truth, "one", "two", "bare")
	checkKubeUsage(t, s, agg, prom, truth, 3)

	t.Log("Prometheus is away when a pod ends, and knows it later")
	pod("late", func(object, object) {})
	s.Eventually("Prometheus knows the pod", func() (bool, string) {
		got, err := prom.values(`pod_cpu_usage_seconds_total{pod="late"}[1m]`, time.Now().Unix())
		return len(got) >= 8, fmt.Sprint(got, err)
	})
	awaitOverPods(s, c, truth, "late")
	prom.Terminate(time.Minute)
	s.Eventually("its records wait", func() (bool, string) {
		waiting := 0
		for _, r := range agg.Whole() {
			if !r.Open() && slices.Contains(r.Meta.Get("usage"), "pending") {
				waiting++
			}
		}
		return waiting == 2, fmt.Sprint(waiting)
	})
	prom.Start()
	checkKubeUsage(t, s, agg, prom, truth, 4)
	checkAsAuditor(t, s, c, agg, prom, "one", "two", "bare", "late")
	checkConserved(t, agg)
}

// checkKubeUsage compares what records have of a container with the samples that Prometheus
// took while it ran. The other source has a record for each pod.
func checkKubeUsage(t *testing.T, s *site.Site, g *site.Aggregator, prom *promServer, truth kubeTruth, pods int) {
	t.Helper()
	s.Eventually("all records are complete", func() (bool, string) {
		complete := 0
		for _, r := range g.Whole() {
			if slices.Contains(r.Meta.Get("usage"), "complete") {
				complete++
			}
		}
		return complete == len(truth)+pods, fmt.Sprintf("%d of %d", complete, len(truth)+pods)
	})
	all := g.Whole()
	for id, run := range truth {
		r := all[id]
		long := run.Stop - run.Start + 1
		of := fmt.Sprintf(`{pod=%q,container=%q}[%ds]`, run.Pod, run.Container, long)
		samples, err := prom.values("container_cpu_usage_seconds_total"+of, run.Stop)
		if err != nil || len(samples) < 2 {
			t.Fatalf("%s: samples %v, %v", id, samples, err)
		}
		if got, want := amount(&r, "TotalCPU"), int64(math.RoundToEven(slices.Max(samples))); got != want || want < 2 {
			t.Errorf("%s: CPU %d s, want %d of %v", id, got, want, samples)
		}
		if got, want := amount(&r, "MemoryUsed"), int64((memoryBytes+(1<<20)-1)>>20); got != want {
			t.Errorf("%s: memory %d MB, want %d", id, got, want)
		}
	}
}

// checkAsAuditor compares the records of the converted configuration with those that
// AUDITOR's rules make of the pods, asking Prometheus as AUDITOR does.
func checkAsAuditor(t *testing.T, s *site.Site, c *rig.KubeCluster, g *site.Aggregator, prom *promServer, names ...string) {
	t.Helper()
	want := map[string]auditorRecord{}
	for _, name := range names {
		var pod struct {
			Metadata struct{ Name, Namespace, UID string }
			Spec     struct {
				Containers []struct {
					Name      string
					Resources struct{ Limits map[string]string }
				}
			}
			Status struct {
				Phase             string
				StartTime         time.Time
				ContainerStatuses []struct {
					Name  string
					State struct {
						Terminated struct{ StartedAt, FinishedAt time.Time }
					}
				}
			}
		}
		c.Do(http.MethodGet, kubePods+"/"+name, nil, &pod)
		m := pod.Metadata
		r := auditorRecord{Meta: map[string][]string{"podname": {m.Name}, "namespace": {m.Namespace}, "status": {pod.Status.Phase}}, Start: pod.Status.StartTime.Unix()}
		limited, naive, memory := true, 0.0, int64(0)
		for i, container := range pod.Status.ContainerStatuses {
			ran := container.State.Terminated
			r.Stop = max(r.Stop, ran.FinishedAt.Unix())
			limits := pod.Spec.Containers[i].Resources.Limits
			limited = limited && len(limits) > 0
			naive += ran.FinishedAt.Sub(ran.StartedAt).Seconds() * map[string]float64{"1500m": 1.5}[limits["cpu"]]
			memory += map[string]int64{"1500M": 1_500_000_000}[limits["memory"]]
		}
		if limited {
			r.Components = append(r.Components, auditorComponent{"naive_cpu_time", int64(naive), []auditorScore{}}, auditorComponent{"memory_limit", memory, []auditorScore{}})
		}
		for _, q := range [][2]string{
			{"cpu", `sum by (namespace,pod) (max_over_time(increase(pod_cpu_usage_seconds_total{namespace=%q,pod=%q}[%[3]ds])[%[3]ds:]))`},
			{"memory", `sum by (namespace,pod) (max_over_time(pod_memory_working_set_bytes{namespace=%q,pod=%q}[%ds]))`},
		} {
			got, err := prom.values(fmt.Sprintf(q[1], m.Namespace, m.Name, r.Stop-r.Start+1), r.Stop)
			if err != nil || len(got) != 1 || got[0] <= 0 {
				t.Fatalf("%s of %s: %v, %v", q[0], name, got, err)
			}
			r.Components = append(r.Components, auditorComponent{q[0], int64(math.Round(got[0])), []auditorScore{}})
		}
		want[fmt.Sprintf("KUBE-%s-%s-%s", m.Namespace, m.Name, m.UID)] = r
	}
	s.Eventually("the records of the converted configuration are AUDITOR's", func() (bool, string) {
		got := endedAsAuditor(t, g, "KUBE")
		for id, r := range got {
			if !slices.Equal(r.Meta["usage"], []string{"complete"}) {
				return false, fmt.Sprintf("%s: usage %v", id, r.Meta["usage"])
			}
			delete(r.Meta, "usage") // bursar's own
		}
		d := cmp.Diff(want, got)
		return d == "", d
	})
}
