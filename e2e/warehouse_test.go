//go:build e2e

package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var warehoused = flag.Int("warehoused", 20000, "records of the tests of the warehouse")

const warehouseAction = `
action "warehouse" %q {
  schedule = "@change 1s"
  config {
    url           = %q
    password_file = %q
    components    = ["Cores", "TotalCPU"]
    %s
  }
}
`

// warehouse is a ClickHouse, and an aggregator that writes to it.
type warehouse struct {
	*testing.T

	site  *site.Site
	agg   *site.Aggregator
	ch    *rig.ClickHouse
	label string // of the action
	zone  string // of the days; "" is UTC
	rng   *rand.Rand
}

func newWarehouse(t *testing.T, seed uint64, settings string) *warehouse {
	t.Helper()
	w := makeWarehouse(t, seed)
	w.begin(w.ch.URL(), settings)
	return w
}

// makeWarehouse starts a ClickHouse, and not yet the aggregator.
func makeWarehouse(t *testing.T, seed uint64) *warehouse {
	t.Helper()
	s := site.New(t)
	w := &warehouse{T: t, site: s, agg: s.Aggregator(), ch: rig.NewClickHouse(t, s.Address(), s.Address()), label: "national", rng: rand.New(rand.NewPCG(seed, 34))}
	w.ch.Start()
	return w
}

// begin starts the aggregator with the action.
func (w *warehouse) begin(url, settings string) {
	w.Helper()
	w.agg.Add(fmt.Sprintf(warehouseAction, w.label, url, w.ch.PasswordFile(), settings))
	w.agg.Start()
	w.agg.AwaitReady()
}

// ask asks the node by its socket.
func (w *warehouse) ask(method, path, body string) (status int, text string) {
	w.Helper()
	q, err := http.NewRequestWithContext(w.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := site.Local(w.agg.DataDir).Do(q)
	if err != nil {
		return 0, err.Error() // it was killed
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(out)
}

// shake opens, closes, deletes and undeletes records of some ids at random, n times.
func (w *warehouse) shake(n int) {
	w.Helper()
	for range n {
		id := fmt.Sprint("shaken/r'", w.rng.IntN(40), `\`)
		start := time.Date(2025, 12, 29+w.rng.IntN(6), w.rng.IntN(24), w.rng.IntN(60), 0, w.rng.IntN(1e6)*1000, time.UTC)
		stop := start.Add(time.Duration(w.rng.Int64N(4*86400*1e6)) * time.Microsecond)
		if w.rng.IntN(8) == 0 {
			stop = start.Add(-time.Hour)
		}
		closing := fmt.Sprintf(`,"stop_time":%q`, stop.Format(time.RFC3339Nano))
		encoded, _ := json.Marshal(id)
		switch w.rng.IntN(6) {
		case 0:
			w.ask("PUT", "/record", fmt.Sprintf(`{"record_id":%s,"meta":{},"components":[],"start_time":%q%s}`, encoded, start.Format(time.RFC3339Nano), closing))
			continue
		case 1, 2:
			w.ask("DELETE", "/v1/records/"+strings.NewReplacer("'", "%27", `\`, "%5C").Replace(id), "")
			continue
		case 3:
			closing = ""
		}
		w.ask("POST", "/record", fmt.Sprintf(`{"record_id":%s,"meta":{"site_id":["s%d"],"group_id":["g%d\t'"],"user_id":["ü"]},"components":[{"name":"Cores","amount":%d,"scores":[]},{"name":"TotalCPU","amount":%d,"scores":[]}],"start_time":%q%s}`,
			encoded, w.rng.IntN(3), w.rng.IntN(2), w.rng.IntN(1e6), w.rng.IntN(1e9), start.Format(time.RFC3339Nano), closing))
	}
}

// rest deletes what goes on, which usage counts and the ledger does not.
func (w *warehouse) rest() {
	w.Helper()
	var open struct {
		Records []struct {
			RecordID string `json:"record_id"`
		}
	}
	_, text := w.ask("GET", "/v1/records?open=true&limit=1000", "")
	if err := json.Unmarshal([]byte(text), &open); err != nil {
		w.Fatal(err, text)
	}
	for _, r := range open.Records {
		w.ask("DELETE", "/v1/records/"+strings.NewReplacer("'", "%27", `\`, "%5C").Replace(r.RecordID), "")
	}
}

// arrive waits until the tables have the last change.
func (w *warehouse) arrive() {
	w.Helper()
	w.site.Eventually("the warehouse has all changes", func() (bool, string) {
		var status v1.Status
		if err := w.agg.Get("/v1/status", &status); err != nil || status.LastChange == nil {
			return false, fmt.Sprint(err)
		}
		at, err := w.ch.Query("SELECT last, state FROM bursar.cursors ORDER BY number DESC LIMIT 1")
		return err == nil && at == fmt.Sprintf("%d\twritten", *status.LastChange), fmt.Sprint(at, " of ", *status.LastChange, err)
	})
}

// rows are lines of SQL as texts, without zeros behind the point.
func (w *warehouse) rows(statement string) map[string]string {
	w.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.ch.MustQuery(statement + " FORMAT JSONEachRow")) {
		var row map[string]any
		in := json.NewDecoder(strings.NewReader(line))
		in.UseNumber()
		if err := in.Decode(&row); err != nil {
			w.Fatal(err, line)
		}
		var key, values []string
		for _, name := range slices.Sorted(maps.Keys(row)) {
			text := fmt.Sprint(row[name])
			if row[name] == nil { // no record has the component
				text = "0"
			}
			if k, isKey := strings.CutPrefix(name, "k_"); isKey {
				key = append(key, k+"="+text)
				continue
			}
			values = append(values, name+"="+withoutZeros(text))
		}
		out[strings.Join(key, " ")] = strings.Join(values, " ")
	}
	return out
}

func withoutZeros(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// agree compares the tables with the digest and with the usage of each day.
func (w *warehouse) agree() {
	w.Helper()
	w.arrive()
	var digest v1.ChangesDigest
	if err := w.agg.Get("/v1/changes/digest", &digest); err != nil {
		w.Fatal(err)
	}
	want := map[string]string{}
	for _, d := range digest.Digests {
		if d.Month != "" {
			want[fmt.Sprintf("month=%s site=%s", strings.ReplaceAll(string(d.Month), "-", ""), d.Site)] = fmt.Sprintf("Cores=%s records=%d", d.CoreSeconds, d.Records)
		}
	}
	w.same("the digest", want, w.rows("SELECT site AS k_site, month AS k_month, sum(sign) AS records, sum(sign * Cores) AS Cores FROM bursar.ledger GROUP BY site, month HAVING records != 0"))
	months := map[string]string{}
	w.addUsage(months, "2023-12-01", "2027-01-01", "month")
	for _, sums := range []struct {
		table, bucket string
		want          map[string]string
	}{{"daily", "toString(day)", w.usage()}, {"monthly", "substring(toString(day), 1, 7)", months}} {
		w.same("usage of "+sums.table, sums.want, w.rows(`SELECT site AS k_site, group_id AS k_group, user_id AS k_user, `+sums.bucket+` AS k_day, sum(records) AS records_, sum(started) AS started_, sum(stopped) AS stopped_, sum(Cores) AS Cores_, sum(TotalCPU) AS TotalCPU_
		FROM bursar.`+sums.table+` WHERE batch = 0 GROUP BY site, group_id, user_id, day HAVING records_ != 0 OR stopped_ != 0`))
	}
}

func (w *warehouse) same(what string, want, got map[string]string) {
	w.Helper()
	if maps.Equal(want, got) {
		w.Logf("%s: %d rows are the same", what, len(want))
		return
	}
	n := 0
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] != got[key] && n < 10 {
			n++
			w.Errorf("%s: %s: the cluster has %s, the warehouse %s", what, key, want[key], got[key])
		}
	}
	for key, v := range got {
		if _, there := want[key]; !there && n < 10 {
			n++
			w.Errorf("%s: the warehouse has %s: %s", what, key, v)
		}
	}
}

// usage is that of each day, as rows has it.
func (w *warehouse) usage() map[string]string {
	w.Helper()
	out := map[string]string{}
	for from := time.Date(2023, 12, 1, 0, 0, 0, 0, time.UTC); from.Year() < 2027; from = from.AddDate(0, 2, 0) { // an answer has at most a million cells
		w.addUsage(out, from.Format(time.DateOnly), from.AddDate(0, 2, 0).Format(time.DateOnly), "day")
	}
	return out
}

// addUsage adds that of the buckets of a window.
func (w *warehouse) addUsage(out map[string]string, from, to, bucket string) {
	w.Helper()
	w.addMeasures(out, "from="+from+"&to="+to+"&bucket="+bucket, "Cores", "TotalCPU", "records", "started", "stopped")
}

// addMeasures adds the measures of a window by site, group and user. Where one of them is the
// number of records, those that touch nothing are left out.
func (w *warehouse) addMeasures(out map[string]string, window string, measures ...string) {
	w.Helper()
	answer, err := http.Get(w.agg.URL + "/v1/usage?" + window + "&zone=" + cmp.Or(w.zone, "UTC") + "&by=site_id,group_id,user_id&measure=" + strings.Join(measures, ",") + "&unit=second&format=ndjson")
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	in := json.NewDecoder(answer.Body)
	for first := true; ; first = false {
		var line v1.UsageLine
		if err := in.Decode(&line); err == io.EOF {
			return
		} else if err != nil || answer.StatusCode != http.StatusOK {
			w.Fatal(err, answer.Status)
		}
		if first {
			continue
		}
		m := func(name string) string {
			if line.Measures[name] == nil {
				return "0"
			}
			return line.Measures[name].String()
		}
		g := func(key string) string {
			if line.Group[key] == nil {
				return ""
			}
			return *line.Group[key]
		}
		if slices.Contains(measures, "records") && m("records") == "0" && m("stopped") == "0" {
			continue
		}
		var values []string
		for _, name := range measures {
			values = append(values, name+"_="+m(name))
		}
		out[fmt.Sprintf("day=%s group=%s site=%s user=%s", line.Bucket, g("group_id"), g("site_id"), g("user_id"))] = strings.Join(values, " ")
	}
}

// fill imports benchmark records.
func (w *warehouse) fill(n int) {
	w.Helper()
	a := &archive{T: w.T, folder: w.TempDir()}
	a.write(n)
	name := "import-" + strings.ToLower(filepath.Base(filepath.Dir(a.folder))) // imports of one name wait for each other
	if out, err := w.agg.Bursar("import", "auditor", "-name", name, "-label", "lake", filepath.Join(a.folder, "year=*/month=*/*.parquet")); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
}

func TestWarehouse_CorrectionsAndDeletions_SumsAreThoseOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t, 1, fmt.Sprintf("batch = %d", max(7000, *warehoused/20)))
	w.fill(*warehoused)
	w.agree()
	w.order("replace=all", "agree at change") // for the figures: all at once
	for _, table := range []string{"ledger", "daily", "monthly"} {
		t.Logf("%s: %s", table, w.ch.MustQuery("SELECT sum(rows) AS r, sum(bytes_on_disk) AS b, b / r FROM system.parts WHERE active AND database = 'bursar' AND table = '"+table+"'"))
	}
	t.Log(w.ch.MustQuery("SELECT sum(rows), max(written) - min(written) FROM bursar.cursors WHERE number > (SELECT max(number) FROM bursar.cursors WHERE state = 'replacing')"))
	for range 4 {
		w.shake(60)
		w.arrive()
	}
	w.shake(100)
	w.rest()
	w.agree()
	if n := w.ch.MustQuery("SELECT count() FROM bursar.ledger WHERE sign = -1"); n == "0" {
		t.Error("no row was taken back, so nothing was tested")
	}
	w.order("check=all", "agree at change")
}

func TestWarehouse_TablesOfTheFormerVersion_AreFilledAnew(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t, 16, "")
	w.fill(500)
	w.rest()
	w.agree()
	layout := w.ch.MustQuery("SELECT layout FROM bursar.schema")
	for _, statement := range []string{
		"DROP TABLE bursar.monthly", "DROP TABLE bursar.schema", "CREATE TABLE bursar.schema (version UInt32, layout String) ENGINE = MergeTree ORDER BY version",
		fmt.Sprintf("INSERT INTO bursar.schema (version, layout) VALUES (1, '%s')", layout),
	} {
		w.ch.MustQuery(statement)
	}
	w.order("check=all", "monthly` is new")
	w.order("check=all", "agree at change")
	w.agree()
	if got := w.ch.MustQuery("SELECT max(version) FROM bursar.schema"); got != "2" {
		t.Errorf("the tables have version %s", got)
	}
}

// The clocks of Chile skip midnight in September, and go back over it in April.
func TestWarehouse_ZoneThatSkipsMidnight_SumsAreThoseOfTheCluster(t *testing.T) {
	t.Parallel()
	w := makeWarehouse(t, 15)
	w.zone = "America/Santiago"
	w.begin(w.ch.URL(), fmt.Sprintf("zone = %q", w.zone))
	w.fill(3000)
	for id, span := range map[string][2]string{"skipped": {"2024-09-07T20:00:00Z", "2024-09-08T10:00:00Z"}, "back": {"2024-04-06T20:00:00Z", "2024-04-07T10:00:00Z"}} {
		w.ask("POST", "/record", fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":["s0"]},"components":[{"name":"Cores","amount":7,"scores":[]}],"start_time":%q,"stop_time":%q}`, id, span[0], span[1]))
	}
	w.shake(60)
	w.rest()
	w.agree()
	w.order("check=all", "agree at change")
}

// order runs the action with an argument and waits until the history has a text.
func (w *warehouse) order(argument, text string) {
	w.Helper()
	before := w.lastRun()
	if out, err := w.agg.Bursar("actions", "run", "warehouse/"+w.label, argument); err != nil {
		w.Fatal(out, err)
	}
	w.saysSince(before, text)
}

// lastRun is the number of the newest run of the action.
func (w *warehouse) lastRun() (last uint64) {
	w.Helper()
	var list v1.ActionRuns
	if err := w.agg.Get("/v1/actions/warehouse/"+w.label+"/runs?limit=3", &list); err != nil {
		w.Fatal(err)
	}
	for _, r := range list.Runs {
		last = max(last, r.Run)
	}
	return last
}

// says waits until the last runs of the action have a text.
func (w *warehouse) says(text string) {
	w.Helper()
	w.saysSince(0, text)
}

// saysSince waits until one of the last runs, which is newer than a run, has a text.
func (w *warehouse) saysSince(run uint64, text string) {
	w.Helper()
	w.site.Eventually("the action says "+text, func() (bool, string) {
		all := w.said(run)
		return strings.Contains(all, text), all
	})
}

// said is what the last runs of the action have that are newer than a run.
func (w *warehouse) said(since uint64) (all string) {
	var list v1.ActionRuns
	if err := w.agg.Get("/v1/actions/warehouse/"+w.label+"/runs?limit=3", &list); err != nil {
		return err.Error()
	}
	for _, r := range list.Runs {
		if r.Run <= since {
			continue
		}
		var one json.RawMessage
		if w.agg.Get(fmt.Sprint("/v1/actions/warehouse/", w.label, "/runs/", r.Run), &one) == nil {
			all += string(one) + "\n"
		}
	}
	return all
}

// breaker lies between the action and ClickHouse, and breaks requests.
type breaker struct {
	*warehouse

	mu     sync.Mutex
	chance *rand.Rand
	broken map[string]int
	left   int              // faults that are to come
	kinds  []string         // of faults
	deaths map[string]death // of servers, by the kind
}

// death is how a server ends during a request, and comes back after it.
type death struct{ end, revive func() }

// newBreaker returns a breaker without faults.
func newBreaker(w *warehouse) *breaker {
	return &breaker{
		warehouse: w, chance: rand.New(rand.NewPCG(*seed, 35)), broken: map[string]int{},
		kinds:  []string{"lose the request", "cut the request", "cut the request", "lose the answer", "lose the answer", "kill the plugin first", "kill the plugin", "kill the plugin", "kill the aggregator", "kill ClickHouse"},
		deaths: map[string]death{"kill ClickHouse": {w.ch.Kill, w.ch.Start}},
	}
}

// ServeHTTP forwards a request, or breaks it: before it arrives, before its answer arrives,
// or with the death of who takes part.
func (b *breaker) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the plugin was killed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := ""
	insert := strings.HasPrefix(r.URL.Query().Get("query"), "INSERT") || strings.HasPrefix(string(body), "INSERT") || strings.HasPrefix(string(body), "ALTER")
	if b.left > 0 && (insert && b.chance.IntN(3) == 0 || b.chance.IntN(20) == 0) {
		fault = b.kinds[b.chance.IntN(len(b.kinds))]
		b.broken[fault]++
		b.left--
	}
	if fault == "lose the request" {
		hangUp(out)
		return
	}
	if fault == "cut the request" {
		b.cut(r, body)
		hangUp(out)
		return
	}
	if fault == "kill the plugin first" {
		b.agg.KillChildren()
	}
	var deaths sync.WaitGroup
	death, dies := b.deaths[fault]
	if dies {
		pause := time.Duration(b.chance.IntN(8)) * time.Millisecond
		deaths.Go(func() {
			time.Sleep(pause)
			death.end()
		})
	}
	q, _ := http.NewRequest(r.Method, b.ch.URL()+r.URL.String(), bytes.NewReader(body))
	q.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(q)
	deaths.Wait()
	switch {
	case dies:
		death.revive()
	case fault == "kill the plugin":
		b.agg.KillChildren()
	case fault == "kill the aggregator":
		b.agg.Restart()
	}
	if err != nil || fault != "" {
		hangUp(out)
	}
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if fault == "" {
		maps.Copy(out.Header(), answer.Header)
		out.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(out, answer.Body) // the plugin may have been killed
	}
}

// cut sends a part of a request, as when its sender is killed.
func (b *breaker) cut(r *http.Request, body []byte) {
	conn, err := net.Dial("tcp", b.ch.Address)
	if err != nil {
		return // it is just being started
	}
	defer conn.Close()
	var q bytes.Buffer
	fmt.Fprintf(&q, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.URL.RequestURI(), b.ch.Address, len(body))
	header := r.Header.Clone()
	header.Del("Content-Length")
	_ = header.Write(&q) // to memory
	q.WriteString("\r\n")
	q.Write(body[:b.chance.IntN(len(body))])
	_, _ = conn.Write(q.Bytes()) // it is lost anyway
}

// hangUp closes the connection of a request.
func hangUp(out http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(out).Hijack(); err == nil {
		conn.Close()
	}
}

// faults are how many are to come.
func (b *breaker) faults() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

func TestWarehouse_KilledAtAnyPoint_SumsStayRight(t *testing.T) {
	t.Parallel()
	b := newBreaker(makeWarehouse(t, *seed))
	b.endure(*kills, "")
}

// endure has faults happen while records change, and then waits until the check is content.
func (b *breaker) endure(faults int, settings string) {
	b.Helper()
	w := b.warehouse
	proxy := httptest.NewServer(b)
	w.Cleanup(proxy.Close)
	w.begin(proxy.URL, "batch = 30\n timeout = \"10s\"\n"+settings)
	if out, err := w.agg.Bursar("actions", "pause", "warehouse/national"); err != nil {
		w.Fatal(out, err)
	}
	w.fill(1000)
	b.mu.Lock()
	b.left = faults
	b.mu.Unlock()
	for b.faults() > 0 {
		w.agg.AwaitReady()
		w.shake(10)
		_, _ = w.agg.Bursar("actions", "resume", "warehouse/national")           // it is disabled after some crashes
		_, _ = w.agg.Bursar("actions", "run", "warehouse/national", "check=all") // it waits for minutes after some failures
		before := b.faults()
		for range 20 { // a fault, or the next changes
			if time.Sleep(100 * time.Millisecond); b.faults() < before {
				break
			}
		}
	}
	w.Log(b.broken)
	w.agg.AwaitReady()
	w.rest()
	w.shake(1)
	w.rest()
	_, _ = w.agg.Bursar("actions", "resume", "warehouse/national")
	w.order("check=all", "agree at change")
	w.agree()
	if n := w.ch.MustQuery("SELECT count() FROM bursar.cursors WHERE state = 'replacing'"); n != "1" {
		w.Errorf("the rows were replaced %s times, want once at the beginning", n)
	}
}

func TestWarehouse_ClusterRestored_RowsAreReplacedAndNotDoubled(t *testing.T) {
	t.Parallel()
	w := makeWarehouse(t, 4)
	backups := t.TempDir()
	w.agg.Settings = fmt.Sprintf("min_free = \"1MiB\"\nbackup { path = %q }", backups)
	w.begin(w.ch.URL(), "")
	w.fill(300)
	w.arrive()
	path := filepath.Join(backups, "mine.snapshot")
	if out, err := w.agg.Bursar("snapshot", "save", path); err != nil {
		t.Fatal(out, err)
	}
	w.shake(80)
	w.arrive()
	if out, err := w.agg.Bursar("snapshot", "restore", "-yes", path); err != nil {
		t.Fatal(out, err)
	}
	if out, err := w.agg.Bursar("actions", "resume", "warehouse/national"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := w.agg.Bursar("actions", "run", "warehouse/national", "check=all"); err != nil {
		t.Fatal(out, err)
	}
	// A run that went on as the snapshot was saved may have done it before the ordered run.
	w.says("all rows of the cluster are written anew: the cluster is in the epoch")
	w.shake(30)
	w.rest()
	w.agree()
}

func TestWarehouse_ClickHouseInTrouble_IsSaidAndNothingIsSkipped(t *testing.T) {
	t.Parallel()
	w := makeWarehouse(t, 3)
	w.ch.MustQuery("CREATE DATABASE bursar")
	w.ch.MustQuery("CREATE TABLE bursar.ledger (x UInt8) ENGINE = MergeTree ORDER BY x")
	w.begin(w.ch.URL(), `timeout = "2s"`)
	w.shake(20)
	w.says("exists and is not of this action: use another database")
	w.ch.MustQuery("DROP TABLE bursar.ledger")
	w.shake(20)
	w.arrive()

	w.ch.Freeze()
	w.shake(20)
	w.says("Client.Timeout exceeded")
	w.ch.Thaw()
	w.shake(20)
	w.arrive()

	w.ch.Kill()
	w.shake(20)
	w.says("connection refused")
	w.ch.Start()
	w.shake(20)
	w.arrive()

	blocks := w.agg.Blocks
	w.configure(strings.Replace(blocks, "config {", "config {\n user = \"reader\"", 1))
	w.saysAfterAll("the user may only read")
	w.configure(strings.Replace(blocks, "config {", "config {\n user = \"nobody\"", 1))
	w.saysAfterAll("Code: 192")
	w.configure(strings.Replace(blocks, "config {", "config {\n dimensions = [\"user_id\"]", 1))
	w.saysAfterAll("use the same, or another database")
	w.configure(blocks)
	w.shake(20)
	w.rest()
	w.agree()

	w.ch.MustQuery("INSERT INTO bursar.ledger SELECT * FROM bursar.ledger LIMIT 1")
	w.order("check=all", "the sums differ in ")
	w.order("replace=all", "agree at change")
	w.agree()
}

// saysAfterAll waits until runs have a text, each of which may still have the former
// configuration.
func (w *warehouse) saysAfterAll(text string) {
	w.Helper()
	w.site.Eventually("the action says "+text, func() (bool, string) {
		out, err := w.agg.Bursar("actions", "run", "warehouse/national", "check=all")
		said := w.said(0)
		return err == nil && strings.Contains(said, text), out + said
	})
}

// configure has the cluster use other blocks.
func (w *warehouse) configure(blocks string) {
	w.Helper()
	w.agg.Blocks = blocks
	w.agg.Configure()
	if out, err := w.agg.Bursar("config", "commit", "-config", w.agg.Config); err != nil {
		w.Fatal(out, err)
	}
}
