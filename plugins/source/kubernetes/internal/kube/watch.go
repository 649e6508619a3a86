package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Event is a change of a pod.
type Event struct {
	Pod     *Pod       // as it is now; where it is deleted, the last that was known
	Deleted bool       // the pod is gone
	Bad     *BadObject // in place of Pod: it cannot be decoded
	// Version is the resource version up to which there are no more events. An event
	// without Pod and Bad says only that.
	Version string
}

const (
	maxLine = 64 << 20
	// silence is how long a watch may say nothing: the server sends a bookmark once a
	// minute.
	silence = 5 * time.Minute
)

// Watch follows the pods of a namespace, "" for all, from a resource version, and passes
// each change to yield, until ctx ends, yield returns an error, or the server ends the
// watch: the error says why. A yield that takes its time loses nothing: the server ends the
// watch of a reader that is too slow, and the next one begins where it ended.
func (c *Client) Watch(ctx context.Context, namespace, version string, yield func(Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	res, err := c.sendRequest(ctx, http.MethodGet, In(Pods, namespace),
		url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}}, nil, "")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		quiet.Reset(silence)
		e, err := parseEvent(lines.Bytes())
		if err != nil {
			return err
		}
		if err := yield(e); err != nil {
			return err
		}
	}
	return fmt.Errorf("watch of pods: %w", errors.Join(lines.Err(), io.EOF))
}

// parseEvent reads a line of a watch. An event that is an error becomes one.
func parseEvent(line []byte) (Event, error) {
	var in struct {
		Type   string `json:"type"`
		Object *Pod   `json:"object"`
	}
	if json.Unmarshal(line, &in) != nil || in.Object == nil || in.Type == "ERROR" {
		return readBadEvent(line)
	}
	e := Event{Version: in.Object.Metadata.ResourceVersion, Deleted: in.Type == "DELETED"}
	if in.Type != "BOOKMARK" {
		e.Pod = in.Object
	}
	return e, nil
}

// readBadEvent reads a line whose object is no pod that can be decoded.
func readBadEvent(line []byte) (Event, error) {
	var in struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return Event{}, fmt.Errorf("watch of pods: %w", err)
	}
	if in.Type == "ERROR" {
		return Event{}, readRefusal("watch of pods", http.StatusInternalServerError, in.Object)
	}
	_, bad := decodeObject[Pod](in.Object)
	if bad == nil {
		return Event{}, fmt.Errorf("watch of pods: an event without an object: %.100s", line)
	}
	var version struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal(in.Object, &version) // "" keeps the version of before
	return Event{Bad: bad, Version: version.Metadata.ResourceVersion}, nil
}
