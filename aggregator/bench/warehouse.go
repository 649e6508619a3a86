package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The sites of the warehouse, of which every shard keeps some, and the years of their records.
const (
	warehouseSites  = 5
	warehouseShards = 2
	warehouseYears  = 10
	firstYear       = 2025 - warehouseYears
)

// bytesOfWarehouse is what a record of a site may take on disk at the height of the measurement: in
// the agent's buffer, on a node, in ClickHouse while it merges, and on the node of all sites.
const bytesOfWarehouse = 800

// measureWarehouse measures how the records of several sites, one site after the other, come to
// two shards of ClickHouse by the action; and three questions in SQL, beside the same on one node.
func (b *bench) measureWarehouse(ctx context.Context) (err error) {
	line := Line{Name: "warehouse", What: "node → ClickHouse", Unit: "rec/s"}
	if len(b.only) == 0 {
		line.Skipped = fmt.Sprintf("it has %d sites of %d records: ask for it by -only", warehouseSites, b.n)
		b.addLine(line)
		return nil
	}
	if room, err := freeBytes(b.dir); err != nil {
		return err
	} else if need := int64(warehouseSites*b.n) * bytesOfWarehouse; room < need {
		line.Skipped = fmt.Sprintf("%d MiB are free, and %d sites of %d records may need %d", room>>20, warehouseSites, b.n, need>>20)
		b.addLine(line)
		return nil
	}
	servers, err := b.startClickHouses(ctx, warehouseShards+1, warehouseShards)
	defer func() {
		for _, c := range servers {
			if c.process != nil {
				err = errors.Join(err, c.process.stopProcess())
			}
		}
	}()
	if errors.Is(err, errNoClickHouse) {
		line.Skipped = err.Error()
		b.addLine(line)
		return nil
	}
	if err != nil {
		return err
	}
	w := &warehouse{bench: b, shards: servers[:warehouseShards], whole: servers[warehouseShards]}
	defer func() { err = errors.Join(err, w.stopAgents()) }()
	for i := range warehouseSites {
		if err := w.copySite(ctx, i); err != nil {
			return fmt.Errorf("site %d: %w", i+1, err)
		}
	}
	w.addFlowLines()
	for _, measure := range []func(context.Context) error{w.measureDisk, w.copyToOne, w.measureQuestions} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// warehouse is two shards and a server that has the rows of both.
type warehouse struct {
	*bench

	shards []*clickhouse
	whole  *clickhouse
	agents []*agentSite // of all sites, with their buffers
	flows  []flow
}

// flow is how a site came to ClickHouse.
type flow struct {
	seconds                  float64
	node, plugin, clickhouse float64 // CPU in seconds
}

func (w *warehouse) stopAgents() error {
	var errs []error
	for _, a := range w.agents {
		errs = append(errs, a.stopAgent())
	}
	return errors.Join(errs...)
}

// copySite makes the records of a site, has a node pull them, and then has its action copy them.
func (w *warehouse) copySite(ctx context.Context, i int) (err error) {
	s := &set{ids: w.measuredKinds()[0], n: w.n}
	if s.agent, err = w.newAgent(fmt.Sprint("warehouse-site", i+1)); err != nil {
		return err
	}
	w.agents = append(w.agents, s.agent)
	w.progress.beginPiece("filling the buffer of site %d with %d records", i+1, w.n)
	_, err = w.runFill(ctx, nil, func(r fillReport) { w.progress.showDone(float64(r.Frames), float64(s.n)) },
		"buffer", "-path", s.agent.bufferFolder(), "-n", strconv.Itoa(s.n), "-ids", s.ids, "-site", fmt.Sprint("site", i+1),
		"-years", strconv.Itoa(warehouseYears), "-seed", strconv.Itoa(100*i+1))
	if err != nil {
		return err
	}
	if _, err := w.pullInto(ctx, s, fmt.Sprint("warehouse-node", i+1)); err != nil {
		return err
	}
	if err := errors.Join(s.agent.stopAgent(), s.node.awaitIndexed(ctx)); err != nil {
		return err
	}
	shard := w.shards[i%len(w.shards)]
	w.progress.beginPiece("site %d → ClickHouse", i+1)
	if err := s.node.addAction(ctx, shard); err != nil {
		return err
	}
	f, err := w.awaitCopied(ctx, s.node, shard)
	if err != nil {
		return err
	}
	w.flows = append(w.flows, f)
	if err := s.node.awaitAgreement(ctx); err != nil {
		return err
	}
	return errors.Join(s.node.stopNode(), os.RemoveAll(s.node.dir))
}

// addAction adds the action to the configuration of a node that runs.
func (n *nodeSite) addAction(ctx context.Context, shard *clickhouse) error {
	text, err := os.ReadFile(n.configText())
	if err != nil {
		return err
	}
	action := fmt.Sprintf(`action "warehouse" "bench" {
  schedule = "@change 1s"
  config {
    url     = %q
    cluster = "shards"
  }
}
`, shard.url)
	if err := os.WriteFile(n.configText(), append(text, action...), 0o600); err != nil {
		return err
	}
	commit := exec.CommandContext(ctx, n.bench.programPath("bursar"), "config", "commit", "-config", n.configText())
	commit.Env = append(os.Environ(), "BURSAR_ADDR=unix:"+filepath.Join(n.dir, "api.sock"))
	if out, err := commit.CombinedOutput(); err != nil {
		return fmt.Errorf("config commit: %w: %s", err, out)
	}
	return nil
}

// awaitCopied waits until the shard has all records of the node. The clock starts with the first
// position of the cluster there, which is written before the first change is read.
func (w *warehouse) awaitCopied(ctx context.Context, n *nodeSite, shard *clickhouse) (f flow, err error) {
	var begun time.Time
	var before flow
	for end := time.Now().Add(patience); ; {
		if err := errors.Join(n.process.checkAlive(), shard.process.checkAlive()); err != nil {
			return f, err
		}
		now := flow{node: n.cpuSeconds(), plugin: n.process.childrenSeconds(), clickhouse: shard.process.cpuSeconds()}
		at, err := shard.queryOne(ctx, fmt.Sprintf("SELECT last, state FROM bursar.cursors WHERE cluster = '%s' ORDER BY number DESC LIMIT 1", n.cluster))
		switch {
		case begun.IsZero() && (err != nil || at == nil): // the tables are created by the action
			before = now
			if time.Now().After(end) {
				return f, fmt.Errorf("%w; the node said last: %s", errPatience, n.process.log.lastLines())
			}
		case err != nil:
			return f, err
		case begun.IsZero():
			begun = time.Now()
		default:
			last, err := n.lastChange(ctx)
			if err != nil {
				return f, err
			}
			w.progress.showDone(numberOf(at[0]), last)
			if at[1] == "written" && numberOf(at[0]) == last {
				return flow{time.Since(begun).Seconds(), now.node - before.node, now.plugin - before.plugin, now.clickhouse - before.clickhouse}, nil
			}
		}
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// numberOf is a number in digits; 0 of any other text.
func numberOf(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// lastChange is the last change of the node.
func (n *nodeSite) lastChange(ctx context.Context) (float64, error) {
	var status struct {
		Last float64 `json:"last_change"`
	}
	text, err := getText(ctx, n.baseURL()+"/v1/status")
	if err == nil {
		err = json.Unmarshal([]byte(text), &status)
	}
	return status.Last, err
}

// awaitAgreement waits until the action has compared its tables with the digest of the node.
func (n *nodeSite) awaitAgreement(ctx context.Context) error {
	runs, said := n.baseURL()+"/v1/actions/warehouse/bench/runs", ""
	return pollUntil(ctx, n.process, func() bool {
		var list struct{ Runs []struct{ Run int } }
		text, err := getText(ctx, runs+"?limit=3")
		if err != nil || json.Unmarshal([]byte(text), &list) != nil {
			return false
		}
		for _, r := range list.Runs {
			said, _ = getText(ctx, fmt.Sprint(runs, "/", r.Run))
			if strings.Contains(said, "agree at change") {
				return true
			}
		}
		return false
	})
}

// addFlowLines says how the sites came to ClickHouse.
func (w *warehouse) addFlowLines() {
	var rates, node, plugin, server []float64
	each := 1e6 / float64(w.n)
	for _, f := range w.flows {
		rates = append(rates, float64(w.n)/f.seconds)
		node, plugin, server = append(node, each*f.node), append(plugin, each*f.plugin), append(server, each*f.clickhouse)
	}
	w.addLine(overRuns("warehouse", fmt.Sprintf("node → ClickHouse, %d sites of %d records, one after the other", warehouseSites, w.n), "rec/s", atLeast(200_000), rates).
		addNote("CPU: node %.2f, plugin %.2f, ClickHouse %.2f µs a record; sums compared with each node's digest", medianOf(node), medianOf(plugin), medianOf(server)))
}

// measureDisk waits until ClickHouse does not merge, and says what its tables take.
func (w *warehouse) measureDisk(ctx context.Context) error {
	w.progress.beginPiece("ClickHouse merges")
	for _, table := range []string{"ledger", "daily", "monthly"} {
		var rows, size float64
		for _, c := range w.shards {
			if err := c.awaitMerges(ctx); err != nil {
				return err
			}
			has, err := c.queryOne(ctx, "SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bursar' AND table = '"+table+"'")
			if err != nil {
				return err
			}
			rows, size = rows+numberOf(has[0]), size+numberOf(has[1])
		}
		records := float64(warehouseSites * w.n)
		w.addLine(overRuns("warehouse_disk_"+table, "disk of the table "+table+", when ClickHouse has merged", "B/rec", goal{}, []float64{size / records}).
			addNote("%.2f rows a record", rows/records))
	}
	return nil
}

// awaitMerges waits until the server has not merged for a second.
func (c *clickhouse) awaitMerges(ctx context.Context) error {
	quiet := 0
	return pollUntil(ctx, c.process, func() bool {
		at, err := c.queryOne(ctx, "SELECT count() FROM system.merges")
		if quiet++; err != nil || at == nil || at[0] != "0" {
			quiet = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		return quiet > 10
	})
}

// copyToOne copies the sums of both shards to the server that is none of them.
func (w *warehouse) copyToOne(ctx context.Context) error {
	w.progress.beginPiece("the sums of all shards on one server")
	statements := []string{"CREATE DATABASE bursar"}
	for _, table := range []string{"daily", "monthly"} {
		created, err := w.shards[0].queryOne(ctx, fmt.Sprintf("SELECT create_table_query FROM system.tables WHERE database = 'bursar' AND name = '%s'", table))
		if err != nil {
			return err
		}
		statements = append(statements,
			strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(strings.Join(created, "")),
			fmt.Sprintf("CREATE TABLE bursar.%s_all AS bursar.%[1]s ENGINE = Distributed(shards, bursar, %[1]s)", table),
			fmt.Sprintf("INSERT INTO bursar.%s SELECT * FROM bursar.%[1]s_all", table))
	}
	for _, statement := range statements {
		if _, err := w.whole.queryRows(ctx, statement); err != nil {
			return err
		}
	}
	return w.whole.awaitMerges(ctx)
}

// warehouseQuestion is put to ClickHouse and to a node.
type warehouseQuestion struct {
	name, what string
	table      string
	key        string // of a row in SQL
	where      string
	query      url.Values // to a node
	bucket     bool
	top        int
}

const warehouseMiddle = firstYear + warehouseYears/2

func warehouseQuestions() []warehouseQuestion {
	year := func(y int) string { return fmt.Sprint(y, "-01-01") }
	return []warehouseQuestion{
		{
			name: "warehouse_year", what: "a year by site and day", table: "daily", key: "site, day", bucket: true,
			where: fmt.Sprintf("month >= %d01 AND month <= %[1]d12", warehouseMiddle),
			query: url.Values{"from": {year(warehouseMiddle)}, "to": {year(warehouseMiddle + 1)}, "by": {"site_id"}, "bucket": {"day"}},
		}, {
			name: "warehouse_month", what: "a month by user", table: "monthly", key: "user_id",
			where: fmt.Sprintf("year = %d AND month = %[1]d03", warehouseMiddle),
			query: url.Values{"from": {fmt.Sprint(warehouseMiddle, "-03-01")}, "to": {fmt.Sprint(warehouseMiddle, "-04-01")}, "by": {"user_id"}},
		}, {
			name: "warehouse_top", what: "the 20 users with most in ten years", table: "monthly", key: "user_id", top: 20,
			where: fmt.Sprintf("year >= %d AND year <= %d", firstYear, firstYear+warehouseYears-1),
			query: url.Values{"from": {year(firstYear)}, "to": {year(firstYear + warehouseYears)}, "by": {"user_id"}, "top": {"20"}},
		},
	}
}

// statement is the question in SQL. Suffix is what the table's name ends with.
func (q *warehouseQuestion) statement(suffix string) string {
	text := fmt.Sprintf("SELECT %s, sum(Cores) AS used, sum(TotalCPU), sum(started) FROM bursar.%s WHERE batch = 0 AND %s GROUP BY %[1]s", q.key, q.table+suffix, q.where)
	if q.top > 0 {
		return text + fmt.Sprintf(" ORDER BY used DESC LIMIT %d", q.top)
	}
	return text + " ORDER BY " + q.key
}

// address is the question to a node.
func (q *warehouseQuestion) address(n *nodeSite) string {
	v := maps.Clone(q.query)
	maps.Copy(v, url.Values{"zone": {"UTC"}, "measure": {"Cores,TotalCPU,started"}, "unit": {"second"}, "format": {"ndjson"}})
	return n.baseURL() + "/v1/usage?" + v.Encode()
}

// On a machine that has other work a question is put less often: for as long, and at least so often.
const (
	questionTime   = time.Minute
	questionsLeast = 20
)

// measureQuestions puts each question often to the shards, to one server and to a node that has
// pulled all sites, and compares what they answer.
func (w *warehouse) measureQuestions(ctx context.Context) (err error) {
	n, err := w.nodeOfAll(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.stopNode(), os.RemoveAll(n.dir)) }()
	for _, q := range warehouseQuestions() {
		want, err := q.askNode(ctx, n)
		if err != nil {
			return err
		}
		for _, way := range []struct {
			name, what string
			ask        func() (map[string]string, error)
		}{
			{"", "two shards of ClickHouse", func() (map[string]string, error) { return q.askSQL(ctx, w.shards[0], "_all") }},
			{"_one", "one ClickHouse", func() (map[string]string, error) { return q.askSQL(ctx, w.whole, "") }},
			{"_node", "one node", func() (map[string]string, error) { return q.askNode(ctx, n) }},
		} {
			w.progress.beginPiece("%s: %s", q.what, way.what)
			var times []float64
			for end := time.Now().Add(questionTime); len(times) < questions && (len(times) < questionsLeast || time.Now().Before(end)); {
				begun := time.Now()
				got, err := way.ask()
				times = append(times, millisecondsSince(begun))
				if err == nil {
					err = compareAnswers(want, got)
				}
				if err != nil {
					return fmt.Errorf("%s: %s: %w", q.what, way.what, err)
				}
			}
			line := Line{
				Name: q.name + way.name, What: q.what + ", " + way.what + ": p99", Unit: "ms", Runs: 1,
				Measured: percentileOf(times, 99), Low: percentileOf(times, 50), High: percentileOf(times, 100), Spread: "p50–max",
			}
			if way.name != "_node" {
				line = line.compareTo(goalUnder(1000))
			}
			w.addLine(line.addNote("%d by HTTP, one after the other; %d rows, equal to the digit", len(times), len(want)))
		}
	}
	return nil
}

// nodeOfAll starts a node that pulls the records of all sites.
func (w *warehouse) nodeOfAll(ctx context.Context) (*nodeSite, error) {
	w.progress.beginPiece("all sites → one node")
	n, err := w.newNode("warehouse-all", nil)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(n.configText())
	if err != nil {
		return nil, err
	}
	for _, a := range w.agents {
		text = fmt.Appendf(text, "agent %q { address = %q }\n", a.name, a.listen)
		if err := a.ensureRunning(ctx); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(n.configText(), text, 0o600); err != nil {
		return nil, err
	}
	if err := n.ensureRunning(ctx); err != nil {
		return nil, err
	}
	for _, a := range w.agents {
		if err := w.awaitAcknowledged(ctx, &set{n: w.n, agent: a, node: n}); err != nil {
			return n, err
		}
		if err := errors.Join(a.stopAgent(), os.RemoveAll(a.dir)); err != nil {
			return n, err
		}
	}
	return n, n.awaitIndexed(ctx)
}

// askSQL puts the question to a server. The answer is what was used, by group and day.
func (q *warehouseQuestion) askSQL(ctx context.Context, c *clickhouse, suffix string) (map[string]string, error) {
	rows, err := c.queryRows(ctx, q.statement(suffix))
	answer := map[string]string{}
	for _, r := range rows {
		at := len(r) - 3
		answer[strings.Join(r[:at], " ")] = withoutZeros(r[at]) + " " + withoutZeros(r[at+1]) + " " + r[at+2]
	}
	return answer, err
}

// askNode puts the question to a node.
func (q *warehouseQuestion) askNode(ctx context.Context, n *nodeSite) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.address(n), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	answer, in := map[string]string{}, json.NewDecoder(resp.Body)
	for first := true; ; first = false {
		var line struct {
			Group    map[string]string
			Others   int
			Bucket   string
			Measures map[string]json.Number
		}
		err := in.Decode(&line)
		if errors.Is(err, io.EOF) {
			return answer, nil
		}
		if err != nil {
			return nil, err
		}
		if first || line.Others > 0 {
			continue
		}
		key := strings.Join(slices.Collect(maps.Values(line.Group)), " ")
		if q.bucket {
			key += " " + line.Bucket
		}
		m := line.Measures
		answer[key] = withoutZeros(m["Cores"].String()) + " " + withoutZeros(m["TotalCPU"].String()) + " " + m["started"].String()
	}
}

// withoutZeros is a decimal without the zeros behind its last digit.
func withoutZeros(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// compareAnswers names a row that differs.
func compareAnswers(want, got map[string]string) error {
	if len(want) == 0 || len(want) != len(got) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	for key, value := range want {
		if got[key] != value {
			return fmt.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	return nil
}

// childrenSeconds returns the seconds that the children of the process have computed, those
// that have ended included.
func (p *process) childrenSeconds() (seconds float64) {
	own, err := os.ReadFile(p.procFile("stat"))
	if err != nil {
		return 0
	}
	fields := statFields(own)
	seconds = (numberOf(fields[13]) + numberOf(fields[14])) / tick
	others, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range others {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if f := statFields(text); f[1] == strconv.Itoa(p.cmd.Process.Pid) {
			seconds += (numberOf(f[11]) + numberOf(f[12])) / tick
		}
	}
	return seconds
}
