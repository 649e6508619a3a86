// Package prom asks a Prometheus what a container used.
package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bursar-accounting/bursar/proto/text"
)

// Config says how a Prometheus is reached.
type Config struct {
	Address   string // http:// or https://
	Token     string
	TokenFile string
	CA        string // path; "" for the machine's
	Timeout   time.Duration
}

// Client asks a Prometheus. It may be used by several goroutines.
type Client struct {
	address string
	http    *http.Client
}

// New makes a client.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.Address)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return nil, fmt.Errorf("invalid address %q: use something like \"https://prometheus.example.org:9090\"", c.Address)
	}
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: c.Address, BearerToken: c.Token, BearerTokenFile: c.TokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: c.CA}, Timeout: c.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	return &Client{address: strings.TrimSuffix(c.Address, "/"), http: client}, nil
}

// Target is a run that is asked for.
type Target struct {
	Namespace, Pod, Container string // no Container: the pod, for queries that are not [OfContainers]
	From, To                  time.Time
}

var placeholder = regexp.MustCompile(`\$[a-z]+`)

// Check says what is wrong with a query.
func Check(query string) error {
	for _, name := range placeholder.FindAllString(query, -1) {
		if !slices.Contains([]string{"$selector", "$namespace", "$pod", "$container", "$range"}, name) {
			return fmt.Errorf("unknown %s: use $selector, $namespace, $pod, $container or $range", name)
		}
	}
	return nil
}

// OfContainers reports whether a query asks for one container, and not for a pod.
func OfContainers(query string) bool {
	names := placeholder.FindAllString(query, -1)
	return slices.Contains(names, "$selector") || slices.Contains(names, "$container")
}

// expandQuery puts a target into a query.
func (t *Target) expandQuery(query string) string {
	return placeholder.ReplaceAllStringFunc(query, func(name string) string {
		switch name {
		case "$selector":
			return fmt.Sprintf("namespace=%q,pod=%q,container=%q", t.Namespace, t.Pod, t.Container)
		case "$namespace":
			return t.Namespace
		case "$pod":
			return t.Pod
		case "$container":
			return t.Container
		}
		return strconv.FormatInt(int64(t.To.Sub(t.From).Seconds())+1, 10) + "s"
	})
}

// QueryError says that Prometheus has answered, and that the same question has no number at
// any other time either.
type QueryError struct{ problem string }

func (e *QueryError) Error() string { return "prometheus: " + e.problem }

// Query asks for one number at the end of a target; nil when Prometheus has none. The error is
// a [QueryError] where Prometheus refuses the query or finds several numbers.
func (c *Client) Query(ctx context.Context, query string, t Target) (*float64, error) {
	form := url.Values{"query": {t.expandQuery(query)}, "time": {strconv.FormatInt(t.To.Unix(), 10)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+"/api/v1/query", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		why := answer.Error
		if why == "" {
			why = strings.TrimSpace(string(body))
		}
		why = fmt.Sprintf("status %d: %s", res.StatusCode, text.Cut(why, 300))
		if res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusUnprocessableEntity {
			return nil, &QueryError{why}
		}
		return nil, errors.New("prometheus: " + why)
	}
	return resultNumber(answer.Data.ResultType, answer.Data.Result)
}

// resultNumber is the one number of a result.
func resultNumber(typ string, result json.RawMessage) (*float64, error) {
	var series []struct{ Value [2]any }
	if typ != "vector" || json.Unmarshal(result, &series) != nil || len(series) > 1 {
		return nil, &QueryError{fmt.Sprintf("a query must give one number, not a %s of %d", typ, len(series))}
	}
	if len(series) == 0 {
		return nil, nil //nolint:nilnil // Prometheus has none
	}
	digits, _ := series[0].Value[1].(string)
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 || n > 1e15 {
		return nil, nil //nolint:nilnil,nilerr // what is no amount is none
	}
	return &n, nil
}
