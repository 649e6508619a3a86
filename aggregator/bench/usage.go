package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// benchDay is a day of the year of the benchmark records, at midnight.
func benchDay(month time.Month, day int) time.Time {
	return time.Date(2024, month, day, 0, 0, 0, 0, time.UTC)
}

// questions is how often each question about usage is asked.
const questions = 200

// question is one about usage, which is put to the node, to PostgreSQL and to a client
// that downloads records. All three say how many seconds of cores there were.
type question struct {
	name, what string
	by         string
	daily      bool
	from, to   time.Time
	goal       goal
}

// queryOf is the question to a node.
func (q *question) queryOf() string {
	v := url.Values{"from": {q.from.Format(time.RFC3339Nano)}, "to": {q.to.Format(time.RFC3339Nano)}, "by": {q.by}, "measure": {"Cores"}}
	if q.daily {
		v.Set("bucket", "day")
	}
	return v.Encode()
}

// askedQuestions are the questions.
func askedQuestions() []question {
	year := question{name: "usage_year", what: "usage of a year by user and day, as columns of JSON", by: "user_id", daily: true, goal: goalUnder(50)}
	year.from, year.to = benchDay(time.January, 1), benchDay(time.December, 32)
	month := question{name: "usage_month", what: "usage of a month by user", by: "user_id"}
	month.from, month.to = benchDay(time.March, 1), benchDay(time.April, 1)
	window := question{name: "usage_window", what: "usage of any window to the microsecond, by group", by: "group_id", goal: goalUnder(50)}
	window.from, window.to = benchDay(time.April, 11).Add(25_954_567_891*time.Microsecond), benchDay(time.August, 20).Add(60_201_987_654*time.Microsecond)
	return []question{year, month, window}
}

// moveWindow is the question about another window of between two days and half a year,
// unless it is about whole days.
func (q question) moveWindow(rng *rand.Rand) question {
	if q.name != "usage_window" {
		return q
	}
	q.from = benchDay(time.January, 1).Add(time.Duration(rng.Int64N(int64(180 * 24 * time.Hour))).Truncate(time.Microsecond))
	q.to = q.from.Add((48*time.Hour + time.Duration(rng.Int64N(int64(180*24*time.Hour)))).Truncate(time.Microsecond))
	return q
}

// told is what is known of a question's answer.
type told struct {
	total float64 // seconds of cores
	ms    float64 // that it takes, in the median
}

// measureUsage measures GET /v1/usage, one question after the other, from a node that has just
// started and has its sums by day, and then AUDITOR's way: the records are downloaded
// and added up by the client.
func (b *bench) measureUsage(ctx context.Context) error {
	s, err := b.firstSet(ctx)
	if err != nil {
		return err
	}
	if err := b.measureCold(ctx, s.node); err != nil {
		return err
	}
	for _, q := range askedQuestions() {
		if err := b.askOften(ctx, s.node, q); err != nil {
			return err
		}
	}
	for _, q := range askedQuestions() {
		if err := b.measureDownload(ctx, s.node, q); err != nil {
			return err
		}
	}
	return nil
}

// measureCold restarts the node, waits for its sums by day, and puts each question for the
// first time.
func (b *bench) measureCold(ctx context.Context, n *nodeSite) error {
	if err := n.stopNode(); err != nil {
		return err
	}
	b.progress.beginPiece("restart, until the sums by day are made")
	begun := time.Now()
	if err := n.ensureRunning(ctx); err != nil {
		return err
	}
	if err := n.awaitIndexed(ctx); err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	size, err := n.readMetric(ctx, "bursar_usage_bytes")
	if err != nil {
		return err
	}
	b.addLine(overRuns("usage_ready", "usage: from the start of the program until sums by day answer", "s", goal{}, []float64{took}).
		addNote("the sums take about %.0f MiB; until then questions are answered from the records", size/(1<<20)))
	for _, q := range askedQuestions() {
		begun := time.Now()
		if _, err := n.totalOf(ctx, q); err != nil {
			return err
		}
		b.addLine(overRuns(q.name+"_cold", q.what+": the first time after a start", "ms", goal{}, []float64{millisecondsSince(begun)}))
	}
	return nil
}

// awaitIndexed waits until the node has its sums by day.
func (n *nodeSite) awaitIndexed(ctx context.Context) error {
	for {
		is, err := n.readMetric(ctx, "bursar_usage_indexes")
		if err != nil || is > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readMetric is one of the node's metrics that has no labels.
func (n *nodeSite) readMetric(ctx context.Context, name string) (float64, error) {
	text, err := getText(ctx, n.baseURL()+"/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", n.baseURL(), name)
}

// askOften puts a question often.
func (b *bench) askOften(ctx context.Context, n *nodeSite, q question) error {
	b.progress.beginPiece("%s", q.what)
	times, err := n.timeQuestion(ctx, q, questions)
	if err != nil {
		return err
	}
	total, err := n.totalOf(ctx, q)
	if err != nil {
		return err
	}
	b.told[q.name] = told{total: total, ms: medianOf(times)}
	line := Line{
		Name: q.name, What: q.what + ": p99", Unit: "ms", Runs: 1,
		Measured: percentileOf(times, 99), Low: percentileOf(times, 50), High: percentileOf(times, 100), Spread: "p50–max",
	}
	b.addLine(line.compareTo(q.goal).addNote("%d by HTTP, one after the other", questions))
	return nil
}

// timeQuestion are the milliseconds that a question takes, some times. Answers are read to their
// end and not kept: the client is on the same processors.
func (n *nodeSite) timeQuestion(ctx context.Context, q question, count int) (times []float64, err error) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range count {
		one := q.moveWindow(rng)
		begun := time.Now()
		if _, err := sweepAnswer(ctx, n.baseURL()+"/v1/usage?"+one.queryOf(), func(int) {}); err != nil {
			return nil, err
		}
		times = append(times, millisecondsSince(begun))
	}
	return times, nil
}

// totalOf is the answer to a question, all groups and buckets together.
func (n *nodeSite) totalOf(ctx context.Context, q question) (float64, error) {
	text, err := getText(ctx, n.baseURL()+"/v1/usage?"+q.queryOf())
	if err != nil {
		return 0, err
	}
	var answer struct{ Measures []struct{ Total float64 } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return 0, err
	}
	if len(answer.Measures) != 1 {
		return 0, fmt.Errorf("%s: %d measures came, want one", q.what, len(answer.Measures))
	}
	return answer.Measures[0].Total, nil
}

// addComparison adds the ratio of another way to answer a question, and says when the
// answers differ by more than what floating point loses.
func (b *bench) addComparison(q question, way string, ms, total float64, note string) error {
	ours, ok := b.told[q.name]
	if !ok {
		return nil
	}
	if math.Abs(total-ours.total) > 1e-6*ours.total {
		return fmt.Errorf("%s: %s says %f, and bursar %f", q.what, way, total, ours.total)
	}
	ratio := ms / ours.ms
	b.addLine(Line{
		Name: q.name + "_" + way, What: q.what + ", against " + way, Unit: "×", Runs: 1, Measured: ratio, Low: ratio, High: ratio,
		Note: fmt.Sprintf("%.0f ms against %.1f%s", ms, ours.ms, note),
	})
	return nil
}

// measureDownload puts a question AUDITOR's way: the records that were running are fetched,
// and the client adds up.
func (b *bench) measureDownload(ctx context.Context, n *nodeSite, q question) error {
	b.progress.beginPiece("%s, by downloading records", q.what)
	v := url.Values{"start_time[lt]": {q.to.Format(time.RFC3339Nano)}, "stop_time[gt]": {q.from.Format(time.RFC3339Nano)}}
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.baseURL()+"/records?"+v.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	total, records, err := q.addUp(resp.Body)
	if err != nil {
		return err
	}
	return b.addComparison(q, "download", millisecondsSince(begun), total, fmt.Sprintf(" for %d records and a client in Go", records))
}

// addUp reads records and adds up, by the question's key and day.
func (q *question) addUp(in io.Reader) (total float64, records int, err error) {
	type cell struct {
		who string
		day int64
	}
	sums := map[cell]float64{}
	decoder := json.NewDecoder(in)
	for {
		var r struct {
			Meta       map[string][]string `json:"meta"`
			Components []struct {
				Name   string `json:"name"`
				Amount int64  `json:"amount"`
			} `json:"components"`
			Start time.Time `json:"start_time"`
			Stop  time.Time `json:"stop_time"`
		}
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		records++
		cores := 0.0
		for _, c := range r.Components {
			if c.Name == "Cores" {
				cores += float64(c.Amount)
			}
		}
		for from := laterOf(r.Start, q.from); from.Before(r.Stop) && from.Before(q.to); {
			to, at := soonerOf(r.Stop, q.to), cell{who: firstOf(r.Meta[q.by])}
			if q.daily {
				begin := from.Truncate(24 * time.Hour)
				to, at.day = soonerOf(to, begin.Add(24*time.Hour)), begin.Unix()
			}
			sums[at] += cores * to.Sub(from).Seconds()
			from = to
		}
	}
	for _, v := range sums {
		total += v
	}
	return total, records, nil
}

func firstOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func soonerOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
