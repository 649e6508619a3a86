package api

import (
	"errors"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Config is what the server needs of the configuration that the cluster shares.
type Config interface {
	// Acceptable returns why the daemons cannot do what a configuration wants.
	Acceptable(d *clusterconfig.Document) error
	// Files says what the files of the nodes say, as far as is known.
	Files() []ConfigFiles
}

// ConfigFiles says how the files of a node stand to the cluster's configuration.
type ConfigFiles struct {
	Node    string
	Digest  clusterconfig.Digest
	Differs bool
}

// v1Config is GET /v1/config: the active configuration, and whose files differ.
func (s *Server) v1Config(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	if !view.Principal().Rows.All() {
		return access.ErrRows // it has names and addresses of people
	}
	committed, err := clusterconfig.Read(view)
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, s.configJSON(committed))
	return nil
}

func (s *Server) configJSON(c *clusterconfig.Committed) v1.Config {
	out := v1.Config{Document: (&clusterconfig.Document{}).Encode(), Nodes: []v1.ConfigFiles{}}
	if c != nil {
		out.Digest, out.CommittedBy, out.CommittedAt = v1.Text(c.Digest.String()), v1.Text(c.By), v1.Time{Time: c.At}
		out.Document = c.Document.Encode()
	}
	if s.opt.Config != nil {
		for _, f := range s.opt.Config.Files() {
			out.Nodes = append(out.Nodes, v1.ConfigFiles{Node: f.Node, Digest: f.Digest.String(), Differs: f.Differs})
		}
	}
	return out
}

// v1ConfigCommit is PUT /v1/config: the body becomes the cluster's configuration,
// if what it replaces is what the caller has seen.
func (s *Server) v1ConfigCommit(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := decodeQuery[v1.CommitConfigQuery](r)
	if err != nil {
		return err
	}
	before, err := clusterconfig.Read(view)
	if err != nil {
		return err
	}
	seen := ""
	if before != nil {
		seen = before.Digest.String()
	}
	if got := q.Replaces; got != seen {
		return newRefusal(http.StatusConflict, "the cluster's configuration is another one than you have seen: its digest is %q, not %q; look at it again (bursar config diff)", seen, got)
	}
	var refused error
	s.readBody(w, r, func(body []byte) {
		d, err := clusterconfig.Decode(body)
		if err == nil && s.opt.Config != nil {
			err = s.opt.Config.Acceptable(d)
		}
		if err != nil {
			refused = newRefusal(http.StatusBadRequest, "%v", err)
			return
		}
		refused = s.commitConfig(w, r, view, d, before)
	})
	return refused
}

func (s *Server) commitConfig(w http.ResponseWriter, r *http.Request, view *access.View, d *clusterconfig.Document, before *clusterconfig.Committed) error {
	steps, err := clusterconfig.Plan(view, d, before, callerName(r), calendar.Now())
	if errors.Is(err, clusterconfig.ErrTooLarge) {
		return newRefusal(http.StatusRequestEntityTooLarge, "%v", err)
	}
	done := false
	if err == nil {
		done, err = clusterconfig.Execute(r.Context(), s.tryCommit, steps)
	}
	switch {
	case errors.Is(err, ErrNotNow):
		return newRetryableRefusal("nothing was done: %v", err)
	case err != nil:
		return newRefusal(http.StatusServiceUnavailable, "outcome unknown; check before retrying: %v", err)
	}
	if !done {
		return newRefusal(http.StatusConflict, "something else was committed at the same moment; look at it again (bursar config diff)")
	}
	answerJSON(w, http.StatusOK, v1.ConfigDigest{Digest: d.Digest().String()})
	return nil
}
