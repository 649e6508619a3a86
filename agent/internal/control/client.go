package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/bursar-accounting/bursar/proto/local"
)

// ErrNotRunning says that no one answers on the socket.
var ErrNotRunning = errors.New("the agent is not running")

// Unreachable is wrapped by the error of a socket that does not answer, or not this user.
type Unreachable struct {
	Path string
	Err  error
}

// Error says why.
func (u Unreachable) Error() string { return u.Err.Error() }

// Unwrap returns why.
func (u Unreachable) Unwrap() error { return u.Err }

// Client speaks with an agent.
type Client struct {
	path string
	http *http.Client
}

// NewClient makes a client of the agent with that socket.
func NewClient(path string) *Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return local.Dial(ctx, path) }}
	return &Client{path: path, http: &http.Client{Transport: transport}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns how the agent is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var out Status
	body, err := c.sendRequest(ctx, http.MethodGet, "/v1/status", nil)
	if err != nil {
		return out, err
	}
	defer body.Close()
	return out, json.NewDecoder(body).Decode(&out)
}

// Reload makes the agent read its configuration again. The error holds the
// diagnostics of one that was refused.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	var out Reloaded
	body, err := c.sendRequest(ctx, http.MethodPost, "/v1/reload", nil)
	if err != nil {
		return out, err
	}
	defer body.Close()
	return out, json.NewDecoder(body).Decode(&out)
}

// Forget makes the agent forget a cluster. The error says which clusters it knows
// when it does not know that one.
func (c *Client) Forget(ctx context.Context, f Forget) (Forgotten, error) {
	var out Forgotten
	body, err := c.sendRequest(ctx, http.MethodPost, "/v1/forget", f)
	if err != nil {
		return out, err
	}
	defer body.Close()
	return out, json.NewDecoder(body).Decode(&out)
}

// Recollect asks for a recollection and calls show with every step of it.
func (c *Client) Recollect(ctx context.Context, r Recollect, show func(Step)) (Counts, error) {
	body, err := c.sendRequest(ctx, http.MethodPost, "/v1/recollect", r)
	if err != nil {
		return Counts{}, err
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for {
		var s Step
		if err := lines.Decode(&s); err != nil {
			return s.Counts, fmt.Errorf("the agent went away before the end: %w", err)
		}
		if !s.Done {
			show(s)
			continue
		}
		if s.Error != "" {
			return s.Counts, errors.New(s.Error)
		}
		return s.Counts, nil
	}
}

func (c *Client) sendRequest(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explainFailure(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var refusal Refusal
	if err := json.NewDecoder(resp.Body).Decode(&refusal); err != nil || refusal.Message == "" {
		return nil, fmt.Errorf("the agent answered %s", resp.Status)
	}
	return nil, errors.New(refusal.Message)
}

// explainFailure says what to do about a socket that does not answer.
func (c *Client) explainFailure(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return Unreachable{c.path, fmt.Errorf("%w (no process listens on %s)", ErrNotRunning, c.path)}
	case errors.Is(err, os.ErrPermission):
		return Unreachable{c.path, fmt.Errorf("%s may be used by root and the agent's user only: %w", c.path, os.ErrPermission)}
	}
	return err
}
