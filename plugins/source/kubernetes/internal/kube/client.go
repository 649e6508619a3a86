package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Config says how a cluster is reached.
type Config struct {
	Kubeconfig string // path; "": as the pod that this is
	Context    string // of the kubeconfig; "": its current one
	Account    string // folder with the service account of the pod that this is; "": where a pod has it
	Timeout    time.Duration
	PageSize   int
}

// Client asks an API server. It may be used by several goroutines.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
}

// serviceAccount is where a pod finds how to ask its API server.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// NewClient reads the kubeconfig and the files that it names.
func NewClient(c Config) (*Client, error) {
	conf, err := c.restConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.accessName(), err)
	}
	conf.UserAgent = "bursar-source-kubernetes"
	base, _, err := rest.DefaultServerUrlFor(conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.accessName(), err)
	}
	client, err := rest.HTTPClientFor(conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.accessName(), err)
	}
	return &Client{config: c, base: base, http: client}, nil
}

func (c *Config) restConfig() (*rest.Config, error) {
	if c.Kubeconfig != "" {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	}
	account := c.accountFolder()
	token := filepath.Join(account, "token")
	if _, err := os.Stat(token); err != nil {
		return nil, fmt.Errorf("%w: set kubeconfig, or run the agent as a pod with a service account", err)
	}
	host := cmp.Or(os.Getenv("KUBERNETES_SERVICE_HOST"), "kubernetes.default.svc")
	return &rest.Config{ // what a plugin's environment lacks, the cluster's DNS has
		Host:            "https://" + host + ":" + cmp.Or(os.Getenv("KUBERNETES_SERVICE_PORT"), "443"),
		BearerTokenFile: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(account, "ca.crt")},
	}, nil
}

// accessName is what says how the cluster is reached.
func (c *Config) accessName() string {
	if c.accountFolder() != "" {
		return "service account"
	}
	return "kubeconfig"
}

// accountFolder is the folder with the service account that is asked with; "" with a kubeconfig.
func (c *Config) accountFolder() string {
	if c.Kubeconfig != "" {
		return ""
	}
	return cmp.Or(c.Account, serviceAccount)
}

// Close drops the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Refusal is an answer of the API server that is an error.
type Refusal struct {
	Path    string
	Code    int
	Reason  string
	Message string
	account string // folder with the service account that was asked with; "" with a kubeconfig
}

// Error says what to do, where that is known.
func (r *Refusal) Error() string {
	remedy := ""
	switch r.Code {
	case http.StatusUnauthorized:
		remedy = "; the token or certificate of the kubeconfig is not valid or has expired: renew it, the source reads it again"
		if r.account != "" {
			remedy = fmt.Sprintf("; the token of the pod's service account, %s, is not valid or has expired: the kubelet renews it, and the source reads it again; "+
				"where it stays so, check that the service account exists, and delete the pod, so that it gets another token", filepath.Join(r.account, "token"))
		}
	case http.StatusForbidden:
		remedy = "; grant the user of the kubeconfig the rights in deploy/rbac.yaml"
		if r.account != "" {
			remedy = "; apply the RBAC manifest in deploy/rbac.yaml, which grants the pod's service account its rights"
		}
	}
	return fmt.Sprintf("%s: status %d: %s%s", r.Path, r.Code, text.Cut(cmp.Or(r.Message, r.Reason), 500), remedy)
}

// Expired reports whether the API server no longer has what an error's resource version
// or continuation asked for, so that everything has to be listed again.
func Expired(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && (r.Code == http.StatusGone || r.Reason == "Expired")
}

// Denied reports whether an error says that a right is missing.
func Denied(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && (r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized)
}

// Unauthorized reports whether an error says that the API server does not know who asks.
func Unauthorized(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Code == http.StatusUnauthorized
}

// Missing reports whether an error says that the object does not exist.
func Missing(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Code == http.StatusNotFound
}

// sendRequest sends a request. The answer's status is 2xx.
func (c *Client) sendRequest(ctx context.Context, method, path string, query url.Values, body io.Reader, kind string) (*http.Response, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what there is of it
	r := readRefusal(path, res.StatusCode, answer)
	r.account = c.config.accountFolder()
	return nil, r
}

// readRefusal reads a Status object.
func readRefusal(path string, code int, answer []byte) *Refusal {
	var status struct {
		Code            int
		Reason, Message string
	}
	if json.Unmarshal(answer, &status) != nil {
		status.Message = strings.TrimSpace(string(answer))
	}
	return &Refusal{Path: path, Code: cmp.Or(status.Code, code), Reason: status.Reason, Message: status.Message}
}

// roundTrip sends a request and reads the whole answer.
func (c *Client) roundTrip(ctx context.Context, method, path string, query url.Values, body, kind string, into any) error {
	defer sdk.Idle(ctx)()
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	res, err := c.sendRequest(ctx, method, path, query, strings.NewReader(body), kind)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = answer
	} else if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// The listings that a source needs.
const (
	Pods       = "/api/v1/pods"
	Nodes      = "/api/v1/nodes"
	Namespaces = "/api/v1/namespaces"
	Jobs       = "/apis/batch/v1/jobs"
	Claims     = "/apis/resource.k8s.io/v1/resourceclaims"
	Slices     = "/apis/resource.k8s.io/v1/resourceslices"
)

// In is a listing of one namespace; "" is that of all.
func In(listing, namespace string) string {
	if namespace == "" {
		return listing
	}
	at := strings.LastIndex(listing, "/")
	return listing[:at] + "/namespaces/" + url.PathEscape(namespace) + listing[at:]
}

// List lists objects, a page at a time, and returns the resource version of the listing:
// a watch from there misses nothing. Objects that cannot be decoded are in bad. When the
// server forgets the listing in its middle, all is listed again in one page; yield then
// gets objects again.
func List[T any](ctx context.Context, c *Client, path string, yield func(page []*T, bad []*BadObject) error) (version string, err error) {
	version, err = listPages(ctx, c, path, c.config.PageSize, yield)
	if Expired(err) {
		return listPages(ctx, c, path, 0, yield)
	}
	return version, err
}

// ListAll returns the objects of a listing that are wanted, each once, without those that
// cannot be decoded.
func ListAll[T any](ctx context.Context, c *Client, path string, wanted func(*T) bool) (all []*T, err error) {
	add := func(page []*T, _ []*BadObject) error {
		all = append(all, slices.DeleteFunc(page, func(object *T) bool { return !wanted(object) })...)
		return nil
	}
	_, err = listPages(ctx, c, path, c.config.PageSize, add)
	if Expired(err) {
		all = nil
		_, err = listPages(ctx, c, path, 0, add)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func listPages[T any](ctx context.Context, c *Client, path string, size int, yield func([]*T, []*BadObject) error) (string, error) {
	query := url.Values{}
	if size > 0 {
		query.Set("limit", strconv.Itoa(size))
	}
	for {
		var answer json.RawMessage
		if err := c.roundTrip(ctx, http.MethodGet, path, query, "", "", &answer); err != nil {
			return "", err
		}
		list, bad, err := decodeList[T](answer)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if err := yield(list.Items, bad); err != nil {
			return "", err
		}
		if list.Metadata.Continue == "" {
			return list.Metadata.ResourceVersion, nil
		}
		query.Set("continue", list.Metadata.Continue)
	}
}

// Get returns one object of a namespace. An object that cannot be decoded counts as missing.
func Get[T any](ctx context.Context, c *Client, listing, namespace, name string) (*T, error) {
	path := In(listing, namespace) + "/" + url.PathEscape(name)
	var raw json.RawMessage
	if err := c.roundTrip(ctx, http.MethodGet, path, nil, "", "", &raw); err != nil {
		return nil, err
	}
	out, bad := decodeObject[T](raw)
	if bad != nil {
		return nil, &Refusal{Path: path, Code: http.StatusNotFound, Message: bad.Error()}
	}
	return out, nil
}

// Patch changes the metadata of a pod, as a JSON merge patch says.
func (c *Client) Patch(ctx context.Context, namespace, name, patch string) (*Pod, error) {
	out := new(Pod)
	err := c.roundTrip(ctx, http.MethodPatch, In(Pods, namespace)+"/"+url.PathEscape(name), nil, patch, "application/merge-patch+json", out)
	return out, err
}

// Conflict reports whether an error says that the object has changed meanwhile.
func Conflict(err error) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Code == http.StatusConflict
}
