package nomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Config says how a server is reached.
type Config struct {
	Address string // http://host:4646, https://…, or unix://path
	Region  string
	Token   string
	Files   Files
	Timeout time.Duration // for a single answer
	PerPage int32         // objects of a listing in one answer
}

// ErrGone says that Nomad does not know the object, or no longer.
var ErrGone = errors.New("not known to Nomad")

// Client asks a server. It may be used by several goroutines.
type Client struct {
	config Config

	mu   sync.Mutex
	keys keys
	api  *api.Client
}

// NewClient makes a client. Its files need not be there yet.
func NewClient(c Config) *Client { return &Client{config: c} }

// Ready reads the files, and says what is wrong with them.
func (c *Client) Ready() error {
	_, _, err := c.currentClient()
	return err
}

// currentClient is the client for the certificates of now, and the token of now.
func (c *Client) currentClient() (*api.Client, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := c.keys.refreshFiles(c.config.Files)
	if err != nil && c.api == nil {
		return nil, "", err
	}
	if c.api == nil || changed {
		if err := c.renewClient(); err != nil {
			return nil, "", err
		}
	}
	if c.config.Files.Token != "" {
		return c.api, c.keys.token, nil
	}
	return c.api, c.config.Token, nil
}

// renewClient makes the client again. c.mu is held.
func (c *Client) renewClient() error {
	conf := &api.Config{Address: c.config.Address, Region: c.config.Region}
	if !strings.HasPrefix(c.config.Address, "unix:") {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = c.keys.tls
		conf.HttpClient = &http.Client{Transport: transport}
	}
	next, err := api.NewClient(conf)
	if err != nil {
		return err
	}
	if c.api != nil {
		c.api.Close()
	}
	c.api = next
	return nil
}

// queryOnce asks for one answer.
func (c *Client) queryOnce(ctx context.Context, path string, q api.QueryOptions, into any) (*api.QueryMeta, error) {
	client, token, err := c.currentClient()
	if err != nil {
		return nil, err
	}
	defer sdk.Idle(ctx)()
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	q.AuthToken = token
	meta, err := client.Raw().Query(path, into, q.WithContext(ctx))
	return meta, explainError(path, err)
}

// explainError makes an error tell what to do.
func explainError(path string, err error) error {
	if err == nil {
		return nil
	}
	if answer, ok := errors.AsType[api.UnexpectedResponseError](err); ok {
		body := strings.TrimSpace(answer.Body())
		switch answer.StatusCode() {
		case http.StatusNotFound:
			return fmt.Errorf("%s: %w", path, ErrGone)
		case http.StatusForbidden, http.StatusUnauthorized:
			return &Denied{Path: path, Text: body}
		}
		return fmt.Errorf("%s: status %d: %s", path, answer.StatusCode(), text.Cut(body, maxText))
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Denied says that the token may not ask that.
type Denied struct{ Path, Text string }

// Error tells what the token needs.
func (d *Denied) Error() string {
	return fmt.Sprintf("%s: %s; the token needs namespace \"*\" { capabilities = [\"read-job\"] } and node { policy = \"read\" }", d.Path, text.Cut(d.Text, maxText))
}

// listPages asks for all pages of a listing and returns the index of the first one:
// every change up to it is in the listing.
func listPages[T any](ctx context.Context, c *Client, path string, params map[string]string, yield func([]T) error) (uint64, error) {
	q := api.QueryOptions{Namespace: "*", PerPage: c.config.PerPage, Params: params}
	var first uint64
	for page := 0; ; page++ {
		var objects []T
		meta, err := c.queryOnce(ctx, path, q, &objects)
		if err != nil {
			return 0, err
		}
		if page == 0 {
			first = meta.LastIndex
		}
		if err := yield(objects); err != nil {
			return 0, err
		}
		if meta.NextToken == "" || len(objects) == 0 {
			return first, nil
		}
		q.NextToken = meta.NextToken
	}
}

// Allocations lists all allocations, a page at a time, and returns the index up to
// which every change is in what was listed.
func (c *Client) Allocations(ctx context.Context, yield func([]*Allocation) error) (uint64, error) {
	return listPages(ctx, c, "/v1/allocations", map[string]string{"resources": "true", "task_states": "true"}, yield)
}

// Jobs lists all jobs with their meta, a page at a time.
func (c *Client) Jobs(ctx context.Context, yield func([]*JobStub) error) error {
	_, err := listPages(ctx, c, "/v1/jobs", map[string]string{"meta": "true"}, yield)
	return err
}

// Nodes lists all nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var all []Node
	_, err := listPages(ctx, c, "/v1/nodes", map[string]string{"resources": "true"}, func(page []Node) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// Allocation returns an allocation with its job; ErrGone when there is none.
func (c *Client) Allocation(ctx context.Context, namespace, id string) (*Allocation, error) {
	var a Allocation
	if _, err := c.queryOnce(ctx, "/v1/allocation/"+url.PathEscape(id), api.QueryOptions{Namespace: namespace}, &a); err != nil {
		return nil, err
	}
	return &a, nil
}

// Job returns the newest version of a job; ErrGone when there is none.
func (c *Client) Job(ctx context.Context, namespace, id string) (*Job, error) {
	var j Job
	if _, err := c.queryOnce(ctx, "/v1/job/"+url.PathEscape(id), api.QueryOptions{Namespace: namespace}, &j); err != nil {
		return nil, err
	}
	return &j, nil
}

// openStream opens the event stream at an index.
func (c *Client) openStream(ctx context.Context, index uint64) (io.ReadCloser, error) {
	client, token, err := c.currentClient()
	if err != nil {
		return nil, err
	}
	const path = "/v1/event/stream"
	q := &api.QueryOptions{Namespace: "*", AuthToken: token, Params: map[string]string{"index": strconv.FormatUint(index, 10)}}
	body, err := client.Raw().Response(path+"?topic=Allocation&topic=Job&topic=Evaluation", q.WithContext(ctx))
	return body, explainError(path, err)
}
