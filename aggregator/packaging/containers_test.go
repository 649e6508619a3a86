package packaging_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/proto/commandline"
)

// nodeConfig loads the configuration of three containers as the one of that host name does.
func nodeConfig(t *testing.T, text, host string) *config.Aggregator {
	t.Helper()
	file := filepath.Join(t.TempDir(), "aggregator.hcl")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "hostname()", `"`+host+`"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, diags := config.Load(file)
	if len(diags) != 0 {
		t.Fatalf("%s: %v", host, diags)
	}
	if cfg.Aggregator.Name.Value != host {
		t.Errorf("%s has the name %s", host, cfg.Aggregator.Name.Value)
	}
	return &cfg.Aggregator
}

// checkMounts says which paths of a configuration are not mounted in a container whose root
// filesystem is read-only.
func checkMounts(t *testing.T, node string, a *config.Aggregator, mounted []string) {
	t.Helper()
	for _, path := range []string{a.DataDir.Path, a.DataDir.Path + "-progress", a.Backup.Path.Path, "/etc/bursar/aggregator.hcl", filepath.Dir(a.TLS.Key.Path), "/tmp"} {
		if !slices.Contains(mounted, path) {
			t.Errorf("%s: %s is not mounted: %v", node, path, mounted)
		}
	}
	if filepath.Base(a.TLS.Key.Path) != node+".key" || filepath.Base(a.TLS.Cert.Path) != node+".pem" {
		t.Errorf("%s has the certificate %s", node, a.TLS.Cert.Path)
	}
}

// readManifest reads a file of this folder's containers.
func readManifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("containers", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCompose_EachNode_HasWhatItsConfigurationNames(t *testing.T) {
	type service struct {
		Image, Hostname, Command, Entrypoint string
		ReadOnly                             bool `yaml:"read_only"`
		Ports, Tmpfs, Volumes                []string
		Healthcheck                          struct {
			Test              []string
			Interval, Timeout string
			Retries           int
			StartPeriod       string `yaml:"start_period"`
			StartInterval     string `yaml:"start_interval"`
		}
	}
	var file struct {
		Node     any `yaml:"x-node"`
		Services map[string]struct {
			service `yaml:",inline"`

			Restart  string
			CapDrop  []string `yaml:"cap_drop"`
			Security []string `yaml:"security_opt"`
			Stop     string   `yaml:"stop_grace_period"`
		}
		Volumes map[string]any
	}
	decoder := yaml.NewDecoder(strings.NewReader(readManifest(t, "compose.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	text := readManifest(t, "aggregator.hcl")
	used := map[string]string{}
	for name, s := range file.Services {
		if s.Command != "" || s.Entrypoint != "" || !s.ReadOnly || s.Hostname != name || s.Image != "${BURSAR_IMAGE:-bursar:latest}" {
			t.Errorf("%s: %+v", name, s)
		}
		if test := s.Healthcheck.Test; len(test) < 3 || test[0] != "CMD" || test[1] != "/usr/bin/bursar" { // images have no shell
			t.Errorf("%s: the health check is %q", name, test)
		} else if err := checkCall(test[2:]); err != nil {
			t.Errorf("%s: the health check is %q: %v", name, test, err)
		}
		a := nodeConfig(t, text, name)
		if len(a.Raft.Peers) != len(file.Services) {
			t.Errorf("%s: raft.peers has %d nodes of %d", name, len(a.Raft.Peers), len(file.Services))
		}
		for peer, address := range a.Raft.Peers {
			if _, there := file.Services[peer]; !there || address.String() != peer+":"+port(a.Raft.Listen.String()) {
				t.Errorf("%s: %s is at %s", name, peer, address)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasSuffix(p, ":"+port(a.API.TLSListen[0].String())) || !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: the port %s is not the one of tls_listen, on this machine alone", name, p)
			}
		}
		mounted := slices.Clone(s.Tmpfs)
		for _, v := range s.Volumes {
			part := strings.Split(v, ":")
			mounted = append(mounted, part[1])
			_, declared := file.Volumes[part[0]]
			switch file := strings.HasPrefix(part[0], "./"); {
			case file && (len(part) != 3 || part[2] != "ro"):
				t.Errorf("%s may write to %s", name, v)
			case file || declared && used[part[0]] == "":
				used[part[0]] = name
			default:
				t.Errorf("%s: the volume %s is not declared, or %s has it too", name, v, used[part[0]])
			}
		}
		checkMounts(t, name, a, mounted)
	}
	if used["./aggregator.hcl"] == "" || used["./tls"] == "" || len(used) != len(file.Volumes)+2 {
		t.Errorf("used: %v, declared: %v", used, file.Volumes)
	}
}

// port is that of an address.
func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// probe is a probe of Kubernetes that connects to a port.
type probe struct {
	TCPSocket struct{ Port string } `yaml:"tcpSocket"`
}

// object is what the tests read of an object of Kubernetes.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Data     map[string]string
	Spec     struct {
		Replicas    int
		ServiceName string         `yaml:"serviceName"`
		Selector    map[string]any `yaml:"selector"`
		Ports       []struct{ Port int }
		Template    struct {
			Metadata struct{ Labels map[string]any }
			Spec     struct {
				Containers []struct {
					Command, Args []string
					Ports         []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					StartupProbe   probe `yaml:"startupProbe"`
					ReadinessProbe probe `yaml:"readinessProbe"`
					LivenessProbe  probe `yaml:"livenessProbe"`
					VolumeMounts   []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
		Claims []object `yaml:"volumeClaimTemplates"`
	}
}

func TestKubernetesManifest_EachPod_HasWhatItsConfigurationNames(t *testing.T) {
	all := map[string]object{}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(readManifest(t, "kubernetes.yaml"))))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all[o.Kind+" "+o.Metadata.Name] = o
	}
	set := all["StatefulSet bursar"].Spec
	if len(set.Template.Spec.Containers) != 1 || set.Replicas != 3 {
		t.Fatalf("%+v", set)
	}
	c := set.Template.Spec.Containers[0]
	if len(c.Command)+len(c.Args) != 0 { // those of the image
		t.Errorf("command %v, arguments %v", c.Command, c.Args)
	}
	volumes := map[string]bool{}
	for _, v := range set.Template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for i := range set.Claims {
		volumes[set.Claims[i].Metadata.Name] = true
	}
	var mounted []string
	for _, m := range c.VolumeMounts {
		if mounted = append(mounted, m.MountPath); !volumes[m.Name] {
			t.Errorf("the volume %s at %s is not declared", m.Name, m.MountPath)
		}
	}
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for i, p := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if ports[p.TCPSocket.Port] == 0 {
			t.Errorf("probe %d connects to the port %q of %v", i, p.TCPSocket.Port, ports)
		}
	}
	nodes := all["Service "+set.ServiceName].Spec
	for i := range set.Replicas {
		name := fmt.Sprintf("bursar-%d", i)
		a := nodeConfig(t, all["ConfigMap bursar"].Data["aggregator.hcl"], name)
		checkMounts(t, name, a, mounted)
		if len(a.Raft.Peers) != set.Replicas {
			t.Errorf("raft.peers has %d nodes of %d", len(a.Raft.Peers), set.Replicas)
		}
		if got, want := a.Raft.Peers[name].String(), fmt.Sprintf("%s.%s:%d", name, set.ServiceName, ports["raft"]); got != want {
			t.Errorf("%s is at %s, want %s", name, got, want)
		}
		if port(a.Raft.Listen.String()) != fmt.Sprint(ports["raft"]) || port(a.API.TLSListen[0].String()) != fmt.Sprint(ports["https"]) {
			t.Errorf("the container's ports are %v; it listens on %s and %s", ports, a.Raft.Listen, a.API.TLSListen[0])
		}
	}
	for service, want := range map[string]int{"Service bursar": ports["https"], "Service " + set.ServiceName: ports["raft"]} {
		s := all[service].Spec
		if len(s.Ports) != 1 || s.Ports[0].Port != want || s.Selector["app"] != set.Template.Metadata.Labels["app"] {
			t.Errorf("%s: %+v", service, s)
		}
	}
	if len(nodes.Ports) == 0 {
		t.Errorf("no service %s", set.ServiceName)
	}
}

// checkCall returns why the program would refuse arguments.
func checkCall(args []string) error {
	root := (&cli.Program{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }}).Commands()
	cmd, rest, err := root.Find(commandline.TwoDashes(root, args))
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && !cmd.Runnable() {
		err = fmt.Errorf("%s does nothing", cmd.CommandPath())
	}
	return err
}

func TestContainersReadme_EachCommand_IsAcceptedByTheProgram(t *testing.T) {
	calls := regexp.MustCompile(`(?m)(?:^\s*|do |exec agg1 /usr/bin/|-- /usr/bin/)(?:bursar |make-tls )([a-z][^;\n]*)`)
	found := 0
	for block := range strings.SplitSeq(readManifest(t, "README.md"), "```") {
		for _, call := range calls.FindAllStringSubmatch(block, -1) {
			if strings.HasPrefix(call[0], "\n") && !strings.Contains(block, "docker compose") && !strings.Contains(block, "kubectl") {
				continue // prose
			}
			args := strings.Fields(call[1])
			if strings.Contains(call[0], "make-tls") {
				args = append([]string{"tls"}, args...)
			}
			if err := checkCall(args); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(call[0]), err)
			}
			found++
		}
	}
	if found != 6 {
		t.Errorf("%d commands", found)
	}
}
