package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
)

// draft is what there is to send of a site's month.
type draft struct {
	counts  *monthCounts
	batches []batch
	digest  string            // of all messages, also of those that need not be sent again
	rows    []string          // digests of summaries
	days    map[string]string // digests of jobs by day
	size    int               // of all messages, with what surrounds them
	cut     bool              // there are jobs that do not fit into the run
}

// batch is messages of one kind, of which those in [from, to) are sent.
type batch struct {
	what     string // sync, summary, jobs day=2026-10-01
	text     [][]byte
	from, to int
}

func wholeBatch(what string, text [][]byte) batch { return batch{what, text, 0, len(text)} }

// around is about what a signature and an effect add to a message.
const around = 8 << 10

func sizeOf(texts ...[]byte) (n int) {
	for _, text := range texts {
		n += len(text) + around
	}
	return n
}

// summaries is a batch of them.
const summaries = "summary"

// most is how many records a message has at most, as is customary.
const most = 1000

// sentAfter is what the receiver will have when all is sent.
func (d *draft) sentAfter(before *sent) *sent {
	total := d.counts.sums.Total()
	rows := append(slices.Clone(d.rows), d.vanishedRows(before)...)
	slices.Sort(rows)
	return &sent{Digest: d.digest, Jobs: total.Jobs, Wall: total.Wall, CPU: total.CPU, Rows: rows, Days: d.days}
}

// vanishedRows are rows that were sent and have no job any more.
func (d *draft) vanishedRows(before *sent) []string {
	if before == nil {
		return nil
	}
	there := map[string]bool{}
	for _, row := range d.rows {
		there[keyOf(row)] = true
	}
	return slices.DeleteFunc(slices.Clone(before.Rows), func(row string) bool { return there[keyOf(row)] })
}

// syncMessage is the message of how many jobs there are, which is sent first, as APEL's own
// client does.
func (p *planner) syncMessage(s site, m month.Month, t *monthCounts) (batch, error) {
	var rows [][]byte
	for _, row := range t.sums.Syncs() {
		if err := row.Check(p.now); err != nil {
			return batch{}, fmt.Errorf("sync of %s %s: %w", s.name, m, err)
		}
		rows = append(rows, row.Record())
	}
	return wholeBatch("sync", message.Pack(message.Syncs, rows, p.config.maxMessage, most)), nil
}

// monthSummaries are a sync and the summaries of the whole month.
func (p *planner) monthSummaries(ctx context.Context, s site, m month.Month, _ *sent) (*draft, error) {
	d := &draft{counts: &monthCounts{sums: month.New(s.name, m)}}
	if err := p.collectRecords(ctx, s, monthSpan(m), d.counts, func(*month.Job) {}); err != nil {
		return nil, err
	}
	sync, err := p.syncMessage(s, m, d.counts)
	if err != nil {
		return nil, err
	}
	var rows [][]byte
	for _, row := range d.counts.sums.Summaries() {
		if err := row.Check(p.now); err != nil {
			return nil, fmt.Errorf("summary of %s %s: %w", s.name, m, err)
		}
		rows = append(rows, row.Record())
		d.rows = append(d.rows, rowOf(row.Record()))
	}
	d.batches = []batch{sync, wholeBatch(summaries, message.Pack(message.Summaries, rows, p.config.maxMessage, most))}
	d.size = sizeOf(sync.text...) + sizeOf(d.batches[1].text...)
	d.digest = digestOf(append(slices.Clone(sync.text), d.batches[1].text...))
	return d, nil
}

// monthJobs are a sync, and all jobs of the days that are not what was sent, as far as
// they fit. The jobs of one day are in memory at a time, beside those that are sent.
func (p *planner) monthJobs(ctx context.Context, s site, m month.Month, before *sent) (*draft, error) {
	d := &draft{counts: &monthCounts{sums: month.New(s.name, m)}, days: map[string]string{}, batches: make([]batch, 1)}
	for _, day := range daySpans(m, p.now) {
		texts, err := p.dayOf(ctx, s, day, d.counts)
		if err != nil {
			return nil, err
		}
		if len(texts) > 0 {
			p.addDay(d, day.from.Format(time.DateOnly), texts, before)
		}
	}
	var err error
	if d.batches[0], err = p.syncMessage(s, m, d.counts); err != nil {
		return nil, err
	}
	all := slices.Clone(d.batches[0].text)
	for _, day := range slices.Sorted(maps.Keys(d.days)) {
		all = append(all, []byte(day+" "+d.days[day]))
	}
	if !d.cut {
		d.digest = digestOf(all)
	}
	return d, nil
}

// addDay adds the messages of a day that were not sent, as many as fit, and notes how
// far that is.
func (p *planner) addDay(d *draft, name string, texts [][]byte, before *sent) {
	had, digest := before.dayDigest(name), digestOf(texts)
	if p.day != "" && p.day != name {
		if had != "" {
			d.days[name] = had
		}
		return
	}
	from := 0
	if !p.again {
		from = partsOf(had, digest, len(texts))
	}
	to := from
	for ; to < len(texts) && (p.size+d.size == 0 || p.size+d.size+sizeOf(texts[to]) <= p.room); to++ {
		d.size += sizeOf(texts[to])
	}
	switch {
	case to == len(texts):
		d.days[name] = digest
	case to > 0:
		d.days[name] = fmt.Sprintf("%s@%d", digest, to)
	case had != "":
		d.days[name] = had
	}
	if d.cut = d.cut || to < len(texts); to > from {
		d.batches = append(d.batches, batch{"jobs day=" + name, texts, from, to})
	}
}

// partsOf is how many of the messages of a day were sent when it had that digest: all,
// the first of them – DIGEST@COUNT –, or none since it was another.
func partsOf(had, digest string, all int) int {
	if had == digest {
		return all
	}
	if text, ok := strings.CutPrefix(had, digest+"@"); ok {
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n < all {
			return n
		}
	}
	return 0
}

// dayOf gives the messages of the jobs that stopped on a day, ordered by their text.
func (p *planner) dayOf(ctx context.Context, s site, day span, t *monthCounts) ([][]byte, error) {
	var rows [][]byte
	t.seen = map[string]bool{} // jobs that the receiver takes for one end in the same second
	if err := p.collectRecords(ctx, s, day, t, func(j *month.Job) { rows = append(rows, j.Record(p.config.jobs)) }); err != nil {
		return nil, err
	}
	slices.SortFunc(rows, slices.Compare)
	return message.Pack(p.config.jobs, rows, p.config.maxMessage, most), nil
}

func digestOf(texts [][]byte) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d ", len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
