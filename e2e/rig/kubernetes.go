//go:build e2e

package rig

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/porttest"
)

// kubernetesVersion is what e2e/setup.sh builds.
const kubernetesVersion = "1.35.4"

// KubeCluster is an API server of Kubernetes with its etcd, and a kwok that plays the
// kubelet of every node: three processes on loopback, with their data on disk. Pods are
// bound to nodes by those who make them.
type KubeCluster struct {
	t         testing.TB
	dir, home string
	URL       string // of the API server
	etcdURL   string
	client    *http.Client
	etcd, api *server
	kwok      *server
}

// kubeTokens are the users of the API server: an administrator, and the agent as its service account.
const kubeTokens = `admintoken,admin,admin,system:masters
agenttoken,system:serviceaccount:bursar:bursar-agent,agent,system:serviceaccounts
`

// Kubernetes starts a control plane with a node n1 and waits until the node is ready. It
// is stopped and removed at the end of the test.
func Kubernetes(t testing.TB) *KubeCluster {
	t.Helper()
	home := filepath.Join(Cache(), "kubernetes-"+kubernetesVersion)
	requireInstalled(t, filepath.Join(home, "kube-apiserver"))
	c := &KubeCluster{t: t, dir: tempDir(t, "kubernetes"), home: home}
	c.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{ //nolint:gosec // its own certificate, on loopback
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	c.etcdURL, c.URL = "http://"+porttest.Free(t), "https://"+porttest.Free(t)
	t.Cleanup(func() {
		for _, s := range []*server{c.kwok, c.api, c.etcd} {
			if s != nil {
				s.stop(syscall.SIGKILL, 10*time.Second)
			}
		}
		c.client.CloseIdleConnections()
		if t.Failed() {
			for _, name := range []string{"etcd", "kube-apiserver", "kwok"} {
				text, _ := os.ReadFile(filepath.Join(c.dir, name+".log"))
				t.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-3000):])
			}
		}
	})
	c.writeFile("tokens.csv", kubeTokens)
	c.writeFile("stages.yaml", kubeStages)
	c.makeSigningKey()
	peer := "http://" + porttest.Free(t)
	c.etcd = c.startServer("etcd", "--data-dir", "etcd-data", "--listen-client-urls", c.etcdURL, "--advertise-client-urls", c.etcdURL,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	c.StartAPI()
	c.AwaitAPI()
	c.kwok = c.startServer("kwok", "--kubeconfig", c.Kubeconfig("admintoken"), "--manage-all-nodes=true", "--config", "stages.yaml", "--server-address", "")
	c.Do(http.MethodPost, "/api/v1/nodes", map[string]any{"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": "n1", "labels": map[string]any{"nvidia.com/gpu.product": "NVIDIA-H200"}},
		"status":   map[string]any{"capacity": kubeNode, "allocatable": kubeNode}}, nil)
	waitFor(t, "a ready node of Kubernetes", 2*time.Minute, c.checkReady)
	return c
}

// kubeNode is what the node has.
var kubeNode = map[string]any{"cpu": "6400", "memory": "51200Gi", "nvidia.com/gpu": "800", "nvidia.com/mig-1g.5gb": "700", "pods": "20000"}

func (c *KubeCluster) writeFile(name, text string) string {
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	return path
}

// makeSigningKey makes the key that tokens of service accounts are signed with.
func (c *KubeCluster) makeSigningKey() {
	for _, args := range [][]string{{"genrsa", "-out", "sa.key", "2048"}, {"rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"}} {
		cmd := exec.Command("openssl", args...)
		cmd.Dir = c.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("rig: openssl: %v: %s", err, out)
		}
	}
}

func (c *KubeCluster) startServer(name string, args ...string) *server {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.home, name), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = log, log, []string{"PATH=" + searchPath, "HOME=" + c.dir}, c.dir
	s, err := startTied(cmd)
	if err != nil {
		c.t.Fatalf("rig: start %s: %v", name, err)
	}
	return s
}

// StartAPI starts the API server; it need not be ready when StartAPI returns.
func (c *KubeCluster) StartAPI() {
	c.t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(c.URL, "https://"))
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	c.api = c.startServer("kube-apiserver", "--etcd-servers="+c.etcdURL, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir=certs",
		"--service-account-issuer=https://127.0.0.1", "--service-account-key-file=sa.pub", "--service-account-signing-key-file=sa.key",
		"--token-auth-file=tokens.csv", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount", "--allow-privileged=true", "--feature-gates=MutatingAdmissionPolicy=true",
		"--runtime-config=admissionregistration.k8s.io/v1beta1=true")
}

// KillAPI ends the API server as a power cut would. Etcd and kwok go on.
func (c *KubeCluster) KillAPI() { c.api.stop(syscall.SIGKILL, 10*time.Second) }

// AwaitAPI waits until the API server answers.
func (c *KubeCluster) AwaitAPI() {
	c.t.Helper()
	waitFor(c.t, "the API server", 2*time.Minute, func() error {
		select {
		case <-c.api.done:
			c.t.Fatal("rig: the API server has ended")
		default:
		}
		return c.Ask(http.MethodGet, "/readyz", nil, nil)
	})
}

// Compact has etcd forget all changes until now.
func (c *KubeCluster) Compact() {
	c.t.Helper()
	waitFor(c.t, "a compaction", time.Minute, func() error {
		var now struct{ Header struct{ Revision string } }
		if err := c.sendJSON(http.MethodPost, c.etcdURL+"/v3/kv/range", map[string]any{"key": "eA=="}, &now); err != nil {
			return err
		}
		return c.sendJSON(http.MethodPost, c.etcdURL+"/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
	})
}

func (c *KubeCluster) checkReady() error {
	var n struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := c.Ask(http.MethodGet, "/api/v1/nodes/n1", nil, &n); err != nil {
		return err
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("node %+v", n)
}

// Kubeconfig writes a kubeconfig with a token: admintoken, or agenttoken for the service
// account bursar-agent in the namespace bursar.
func (c *KubeCluster) Kubeconfig(token string) string {
	c.t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "rig",
		"clusters": []any{map[string]any{"name": "rig", "cluster": map[string]any{"server": c.URL, "certificate-authority": filepath.Join(c.dir, "certs/apiserver.crt")}}},
		"users":    []any{map[string]any{"name": "rig", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "rig", "context": map[string]any{"cluster": "rig", "user": "rig"}}}})
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	return c.writeFile("kubeconfig-"+token, string(text))
}

// Ask asks the API server as an administrator. Body may be nil; text is YAML or a patch.
func (c *KubeCluster) Ask(method, path string, body, into any) error {
	return c.sendJSON(method, c.URL+path, body, into)
}

// Do is Ask that fails the test when it is not answered within a minute. What is there
// already counts as made.
func (c *KubeCluster) Do(method, path string, body, into any) {
	c.t.Helper()
	waitFor(c.t, method+" "+path, time.Minute, func() error {
		err := c.Ask(method, path, body, into)
		if method == http.MethodPost && errors.Is(err, ErrExists) {
			return nil
		}
		return err
	})
}

// What an API server answers, as errors.
var (
	ErrExists  = errors.New("already exists")
	ErrMissing = errors.New("not found")
)

func (c *KubeCluster) sendJSON(method, url string, body, into any) error {
	var text []byte
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		text, kind = []byte(b), "application/yaml"
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			return err
		}
	}
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer admintoken")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: %.500s", ErrExists, answer)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %.500s", ErrMissing, answer)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s: %.1000s", resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// Apply makes the objects of a file of manifests. An unknown field is an error.
func (c *KubeCluster) Apply(path string) {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	listings := map[string]string{
		"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/bursar/serviceaccounts", "ConfigMap": "/api/v1/namespaces/bursar/configmaps",
		"Service": "/api/v1/namespaces/bursar/services", "StatefulSet": "/apis/apps/v1/namespaces/bursar/statefulsets",
		"PodDisruptionBudget": "/apis/policy/v1/namespaces/bursar/poddisruptionbudgets",
		"ClusterRole":         "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		"MutatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies",
		"MutatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings",
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		kind := ""
		for line := range strings.Lines(part) {
			if after, found := strings.CutPrefix(line, "kind: "); found {
				kind = strings.TrimSpace(after)
			}
		}
		if listings[kind] == "" {
			c.t.Fatalf("rig: %s: no listing for the kind %q", path, kind)
		}
		c.Do(http.MethodPost, listings[kind]+"?fieldValidation=Strict", part, nil)
	}
}
