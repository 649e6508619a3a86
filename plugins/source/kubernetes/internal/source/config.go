package source

import (
	"cmp"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// settings are those of the config block.
type settings struct {
	Kubeconfig   string        `hcl:"kubeconfig,optional" unset:"KUBECONFIG, or the service account of the agent's pod" doc:"file that says how the API server is reached; it is read again when the connection begins anew"`
	Context      string        `hcl:"context,optional" unset:"the current one" doc:"context of the kubeconfig"`
	Timeout      time.Duration `hcl:"timeout,optional" default:"1m" min:"1s" max:"1h" doc:"how long one answer may take"`
	PageSize     int           `hcl:"page_size,optional" default:"500" min:"1" max:"10000" doc:"objects of a listing in one answer"`
	ListInterval time.Duration `hcl:"list_interval,optional" default:"10m" min:"100ms" max:"24h" doc:"how often all pods are listed beside the watch, as a second route"`

	filter

	Runs     string            `hcl:"runs,optional" default:"containers" allowed:"containers pods" doc:"what a run is: each start of each container, or the pod from when its node took it until its last container ended"`
	User     []string          `hcl:"user,optional" unset:"accounting/user, user, owner, and those of JupyterHub and Argo" doc:"keys of annotations or labels with the user, the best first: of the pod, or else of its namespace"`
	Project  []string          `hcl:"project,optional" unset:"accounting/project, project" doc:"keys of annotations or labels with the project"`
	GPUs     hcl.List[pattern] `hcl:"gpus,optional" unset:"those of NVIDIA, AMD and Intel" doc:"patterns of the resources that are whole GPUs, for example [\"nvidia.com/gpu\"]"`
	Drivers  hcl.List[pattern] `hcl:"gpu_drivers,optional" unset:"gpu.nvidia.com, gpu.amd.com and gpu.intel.com" doc:"patterns of the drivers whose devices in resource claims (DRA) are GPUs"`
	GPUModel []string          `hcl:"gpu_model,optional" unset:"those of the makers' device plugins and of clouds" doc:"labels of nodes with the model of their GPUs, the best first"`

	Running   bool          `hcl:"running,optional" default:"true" doc:"send what runs as open records"`
	Earliest  hcl.Time      `hcl:"earliest,optional" unset:"all that there is" doc:"only runs that end at this time or later"`
	Lag       time.Duration `hcl:"lag,optional" default:"1m" max:"24h" doc:"how long a node may take to tell the API server; the source says that it is complete up to so long before its last answer"`
	Remember  time.Duration `hcl:"remember,optional" default:"31d" min:"1h" max:"366d" doc:"how long the source keeps pods that were deleted, some 2 kB each, for collecting a window again and for the comparison of past days: longer than the agent's retain"`
	Finalizer bool          `hcl:"finalizer,optional" default:"false" doc:"hold each pod by a finalizer until its end has been recorded, so that none vanishes while the agent is away; see the risk below"`

	Prometheus *prometheus `hcl:"prometheus,block" unset:"none" doc:"a Prometheus that has what containers used"`

	Capacity         bool          `hcl:"capacity,optional" default:"true" doc:"tell what the nodes have"`
	CapacityInterval time.Duration `hcl:"capacity_interval,optional" default:"10m" max:"24h" doc:"how often"`
	Census           bool          `hcl:"census,optional" default:"true" doc:"tell how many pods of whom run and wait"`
	CensusInterval   time.Duration `hcl:"census_interval,optional" default:"1m" max:"24h" doc:"how often"`
}

// config is the evaluated config block.
type config struct {
	settings

	server kube.Config
	rules  run.Rules
	labels labels.Selector
	facts  map[string]time.Duration // that are told, with how often at most
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	c := config{facts: map[string]time.Duration{}}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.server = kube.Config{Kubeconfig: cmp.Or(c.Kubeconfig, os.Getenv("KUBECONFIG")), Context: c.Context, Timeout: c.Timeout, PageSize: c.PageSize}
	c.Prometheus.checkSettings(cfg.Block("prometheus"))
	var err error
	if c.labels, err = labels.Parse(c.Labels); err != nil {
		cfg.Errorf("labels", "%v; expected something like \"tier=batch,!internal\"", err)
	}
	c.rules = run.Rules{User: c.User, Project: c.Project, Model: c.GPUModel, GPU: func(name string) bool { return matchesAny(c.GPUs, name) },
		Driver: func(name string) bool { return matchesAny(c.Drivers, name) }}
	if !cfg.Has("user") {
		c.rules.User = []string{"accounting/user", "user", "owner", "hub.jupyter.org/username",
			"workflows.argoproj.io/creator-preferred-username", "workflows.argoproj.io/creator"}
	}
	if !cfg.Has("project") {
		c.rules.Project = []string{"accounting/project", "project"}
	}
	if !cfg.Has("gpus") {
		c.rules.GPU = func(name string) bool {
			return slices.Contains([]string{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"}, name)
		}
	}
	if !cfg.Has("gpu_drivers") {
		c.rules.Driver = func(name string) bool {
			return slices.Contains([]string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"}, name)
		}
	}
	if !cfg.Has("gpu_model") {
		c.rules.Model = []string{"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product",
			"cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name"}
	}
	if c.Capacity {
		c.facts[facts.Capacity] = c.CapacityInterval
	}
	if c.Census {
		c.facts[facts.Census] = c.CensusInterval
	}
	return c
}

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	Namespaces    []string          `hcl:"namespaces,optional" unset:"all" doc:"only these namespaces are asked for, each by itself, so that rights in them are enough"`
	NotNamespaces hcl.List[pattern] `hcl:"exclude_namespaces,optional" unset:"none" doc:"no runs in namespaces that match one of these patterns, in which * stands for any text and ? for any character"`
	Labels        string            `hcl:"labels,optional" unset:"all" doc:"only pods whose labels match this selector, for example \"tier=batch,!internal\""`
}

// wantsPod reports whether the filters let a pod through.
func (c *config) wantsPod(m *kube.Meta) bool {
	return (len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, m.Namespace)) && !matchesAny(c.NotNamespaces, m.Namespace) && c.labels.Matches(labels.Set(m.Labels))
}

// pattern is a text in which * stands for any text and ? for any character.
type pattern struct{ *regexp.Regexp }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *pattern) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		return errors.New("a name cannot be empty")
	}
	p.Regexp, err = regexp.Compile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(string(text))) + "$")
	return err
}

func matchesAny(list []pattern, s string) bool {
	return slices.ContainsFunc(list, func(r pattern) bool { return r.MatchString(s) })
}
