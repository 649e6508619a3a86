//go:build e2e

package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/record"
)

// oldRecords are records of a month in which no job ended, which an action archives and removes
// from the store while jobs go on. They have no components, so they are in no usage.
type oldRecords struct {
	month time.Time

	mu   sync.Mutex
	sent map[string]Register
}

// archiveAction is the action that writes the month of old records and removes it, again and again with
// those that came since.
func archiveAction(dir string) (*Armed, *oldRecords) {
	now := time.Now().UTC()
	old := &oldRecords{month: time.Date(now.Year(), now.Month()-2, 1, 0, 0, 0, 0, time.UTC), sent: map[string]Register{}}
	a := &Armed{Type: "archive", Label: "old", Class: Keyed, Rejects: true}
	a.Block = fmt.Sprintf("directory = %q\n write_after = \"0s\"\n remove_after_months = 1", dir)
	a.Judge = func(node *Member, _ Truth, _ []Run) error { return old.judgeArchived(node) }
	return a, old
}

// len is how many there are; none of nil.
func (o *oldRecords) len() int {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sent)
}

// sendRecords adds records by any node that takes them. Each that was sent is there, whoever was killed.
func (o *oldRecords) sendRecords(g *Siege, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range n {
		id := fmt.Sprintf("%sold-%d", Pushed, len(o.sent))
		start := record.FromStd(o.month.Add(time.Duration(len(o.sent)) * time.Minute))
		r := Register{Start: start, Stop: start + record.Hour}
		next := 0
		g.await("a node takes "+id, func() error {
			node := g.site.Nodes[next%len(g.site.Nodes)]
			next++
			return postRecord(node, id, r)
		})
		o.sent[id] = r
	}
}

func postRecord(node *Member, id string, r Register) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	body := fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[],"start_time":%q,"stop_time":%q}`, id, r.Start, r.Stop)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, node.URL+"/record", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode == http.StatusOK || string(text) == auditor.Exists) {
		return nil
	}
	return fmt.Errorf("%w: %s: %s %s, %w", ErrNotYet, node.Name, resp.Status, text, err)
}

// judgeArchived asks that no old record has its details in the store any more, and that each is, once and
// as it was sent, in the files, as a node reads them.
func (o *oldRecords) judgeArchived(node *Member) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	left, read := NewHolding(), NewHolding()
	query := "/v1/records?format=ndjson&stop_time%5Blt%5D=" + o.month.AddDate(0, 1, 0).Format(time.RFC3339)
	if err := node.fetch(query, time.Minute, left.readRecords); err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	if err := node.fetch(query+"&archived=true", Recovery, read.readRecords); err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	if len(read.Doubled) > 0 || len(read.Pushed)+len(read.Jobs) != len(o.sent) {
		return fmt.Errorf("%d records are in the store and the archives, %d were sent; twice: %v", len(read.Pushed)+len(read.Jobs), len(o.sent), read.Doubled)
	}
	if err := read.Keeps(o.sent); err != nil {
		return err
	}
	if n := len(left.Pushed); n > 0 {
		return fmt.Errorf("%w: %d old records are in the store", ErrNotYet, n)
	}
	return nil
}
