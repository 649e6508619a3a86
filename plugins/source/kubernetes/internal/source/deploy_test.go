package source

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// manifest is what a test needs of an object.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []struct{ APIGroups, Resources, Verbs []string }
	Data     map[string]string
	RoleRef  struct{ Kind, Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				ServiceAccountName string `yaml:"serviceAccountName"`
				Containers         []struct {
					Command        []string
					StartupProbe   probe `yaml:"startupProbe"`
					ReadinessProbe probe `yaml:"readinessProbe"`
					LivenessProbe  probe `yaml:"livenessProbe"`
				}
			}
		}
	}
}

// probe is a probe of Kubernetes that runs a command in the container.
type probe struct{ Exec struct{ Command []string } }

func manifests(t *testing.T, name string) (out []manifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var m manifest
		if err := yaml.Unmarshal(part, &m); err != nil || m.Kind == "" || m.Metadata.Name == "" {
			t.Fatalf("%s: %v: %s", name, err, part)
		}
		out = append(out, m)
	}
	return out
}

// rights are those that a manifest gives.
func rights(t *testing.T, name string) map[string]bool {
	out := map[string]bool{}
	for _, m := range manifests(t, name) {
		for _, rule := range m.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					out[verb+" "+resource] = true
				}
			}
		}
	}
	return out
}

// The source uses every right of the manifests, and no other.
func TestManifests_GiveTheRightsThatTheSourceNeeds(t *testing.T) {
	for _, finalizer := range []bool{false, true} {
		s := newSite(t)
		s.server.Rights = rights(t, "rbac.yaml")
		if finalizer {
			maps.Copy(s.server.Rights, rights(t, "finalizer.yaml"))
		}
		p := claiming("a", "a-gpu-x", true, kube.Running, running(0, 1))
		putSlice(s)
		s.server.PutClaim(allocated("a-gpu-x", []kube.Allocated{gpu("gpu-0")}, "a"))
		p.Metadata.OwnerReferences = []kube.Owner{{Kind: "Job", Name: "j", UID: "uid-j", Controller: true}}
		s.server.PutJob(kube.Job{Metadata: kube.Meta{Namespace: "phys", Name: "j", UID: "uid-j", OwnerReferences: []kube.Owner{{Kind: "CronJob", Name: "nightly", Controller: true}}}})
		s.server.Put(p)
		s.start(sdk.Node{Name: "finalizer", Value: sdk.Bool(finalizer)})
		s.seen()
		if got := s.value(runName("a", "main", 1), "cron_job").Str(); got != "nightly" {
			t.Errorf("cron job %q", got)
		}
		if got := s.value(runName("a", "main", 1), "gpus"); got.IsNull() || got.Int() != 1 {
			t.Errorf("GPUs of a claim: %v", got)
		}
		s.kill()
		s.server.Forget("phys", "a")
		s.server.Compact()
		s.start(sdk.Node{Name: "finalizer", Value: sdk.Bool(finalizer)})
		s.await("the end of a pod that vanished", func() bool { return s.jobs[runName("a", "main", 1)].Ended })
		s.await("the capacity", func() bool { return len(s.capacity) > 0 })
		if finalizer {
			s.server.Put(pod("phys", "b", kube.Running, running(0, 2)))
			s.await("a finalizer", func() bool { b := s.server.Pod("phys", "b"); return len(b.Metadata.Finalizers) == 1 })
		}
		asked := s.server.Verbs()
		if want := slices.Sorted(maps.Keys(s.server.Rights)); !slices.Equal(asked, want) {
			t.Errorf("finalizer %t: the source asks for %q, the manifests give %q", finalizer, asked, want)
		}
	}
}

func TestManifests_OfTheAgent_FitTogether(t *testing.T) {
	accounts, files := map[string]bool{}, ""
	for _, m := range append(manifests(t, "rbac.yaml"), manifests(t, "agent.yaml")...) {
		if m.Kind == "ServiceAccount" {
			accounts[m.Metadata.Name] = true
		}
		if m.Kind == "StatefulSet" && !accounts[m.Spec.Template.Spec.ServiceAccountName] {
			t.Errorf("the service account %q is not in rbac.yaml", m.Spec.Template.Spec.ServiceAccountName)
		}
		for _, c := range m.Spec.Template.Spec.Containers {
			for i, p := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				if len(p.Exec.Command) < 2 || p.Exec.Command[0] != c.Command[0] || p.Exec.Command[1] != "status" { // images have no shell
					t.Errorf("probe %d runs %q", i, p.Exec.Command)
				}
			}
		}
		files += m.Data["agent.hcl"]
	}
	if !strings.Contains(files, `source "kubernetes"`) {
		t.Error("agent.yaml has no configuration with the source")
	}
}
