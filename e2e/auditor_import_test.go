//go:build e2e

package e2e_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var auditorRecords = flag.Int("auditor", 1_000_000, "records in AUDITOR's table")

// auditorTable is AUDITOR's table behind its second migration, and records as its
// collectors make them: some open, some without meta, one of ten thousand negative.
const auditorTable = `CREATE TABLE auditor_accounting (
	id INT GENERATED ALWAYS AS IDENTITY, record_id TEXT NOT NULL UNIQUE, meta JSONB, components JSONB,
	start_time TIMESTAMPTZ NOT NULL, stop_time TIMESTAMPTZ, runtime BIGINT, updated_at TIMESTAMPTZ NOT NULL);
WITH drawn AS (
	SELECT i, '2025-01-01'::timestamptz + (i * 31.1234567 || ' s')::interval AS began, (hashint4(i) & 1048575) AS chance FROM generate_series(1, %d) i),
runs AS (
	SELECT *, CASE WHEN i %% 1000 = 7 THEN NULL WHEN i %% 10000 = 8 THEN began - interval '5.5 s' ELSE began + (chance * 0.31 || ' s')::interval END AS ended FROM drawn)
INSERT INTO auditor_accounting (record_id, meta, components, start_time, stop_time, runtime, updated_at)
	SELECT CASE i %% 7 WHEN 0 THEN 'ce' || i %% 3 || '.example.org#' || i || '.0#1700000000' WHEN 1 THEN 'slurm-' || i / 7 || '_' || i ELSE 'slurm-' || i END,
		CASE i %% 11 WHEN 0 THEN 'null'::jsonb ELSE jsonb_build_object('site_id', jsonb_build_array('site' || i %% 5), 'group_id', jsonb_build_array('g' || chance %% 60),
			'user_id', jsonb_build_array('u' || chance %% 1500), 'voms', jsonb_build_array('/atlas/Role=' || i %% 4, 'second')) END,
		jsonb_build_array(
			jsonb_build_object('name', 'Cores', 'amount', 1 + chance %% 64, 'scores', jsonb_build_array(jsonb_build_object('name', 'HEPscore23', 'value', 10 + i %% 7 * 0.1))),
			jsonb_build_object('name', 'TotalCPU', 'amount', chance * 17, 'scores', '[]'::jsonb),
			jsonb_build_object('name', 'Memory', 'amount', (chance + 1)::bigint * 1000000007, 'scores', '[]'::jsonb)),
		began, ended, trunc(extract(epoch FROM ended - began)), began + interval '8 h' FROM runs;
ANALYZE`

// auditorSums are AUDITOR's own figures, exact.
const auditorSums = `SELECT count(*) FILTER (WHERE stop_time IS NOT NULL)::text, count(*) FILTER (WHERE stop_time IS NULL)::text, sum(runtime)::text,
	sum((components->0->>'amount')::numeric * coalesce(runtime, 0))::text, sum((components->2->>'amount')::numeric * coalesce(runtime, 0))::text,
	sum((components->1->>'amount')::numeric)::text FROM auditor_accounting`

// compared is what bursar import -format json says.
type compared struct {
	Committed struct {
		Added     int64 `json:"added"`
		Unchanged int64 `json:"unchanged"`
	} `json:"committed"`
	Compared struct {
		Equal   bool  `json:"equal"`
		Counted int64 `json:"counted"`
		Lines   []struct{ What, Read, Cluster string }
	} `json:"compared"`
	Seconds float64 `json:"seconds"`
}

func importAuditor(t *testing.T, s *site.Site, g *site.Aggregator, from ...string) (out compared) {
	t.Helper()
	text, err := g.Bursar(append([]string{"import", "-dev", "-plugin-dir", filepath.Join(s.Bin, "plugins"), "-format", "json", "auditor"}, from...)...)
	if err == nil {
		err = json.Unmarshal([]byte(text), &out)
	}
	if err != nil {
		t.Fatal(err, text)
	}
	return out
}

func TestImportAuditor_Table_SumsAreEqualToTheUnit(t *testing.T) { importTable(t, 20_000) }

func TestImportMillion_OfAuditorsTable_SumsAreEqualToTheUnit(t *testing.T) {
	importTable(t, *auditorRecords)
}

// importTable imports a table of AUDITOR's by imports that are killed ten times on the way. The
// sums are then equal, a second import changes nothing, and planted differences are found.
func importTable(t *testing.T, n int) {
	t.Helper()
	dsn := rig.Postgres(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(auditorTable, n), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	want := make([]string, 6)
	if err := conn.QueryRow(t.Context(), auditorSums).Scan(&want[0], &want[1], &want[2], &want[3], &want[4], &want[5]); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := site.New(t)
	address := fmt.Sprintf("postgres:///postgres?host=%s&user=postgres", conn.Config().Host)
	ended, err := strconv.ParseInt(want[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	agg := killedImport(t, s, address, 10, ended)
	for repeat := range 2 {
		got := importAuditor(t, s, agg, address)
		lines := map[string][2]string{}
		for _, l := range got.Compared.Lines {
			lines[l.What] = [2]string{l.Read, l.Cluster}
		}
		twice := func(i int) [2]string { return [2]string{want[i], want[i]} }
		if diff := cmp.Diff(map[string][2]string{
			"records that ended": twice(0), "open records": twice(1), "runtime in s": twice(2), "Cores × s": twice(3), "Memory × s": twice(4), "TotalCPU, total": twice(5),
		}, lines); diff != "" || !got.Compared.Equal || fmt.Sprint(got.Compared.Counted) != want[0] {
			t.Errorf("time %d: %+v %s", repeat, got.Compared, diff)
		}
		if got.Committed.Added != 0 {
			t.Errorf("a repeated import added %d records", got.Committed.Added)
		}
		t.Logf("time %d: %d records in %.1f s, %.0f/s; %d were new", repeat, n, got.Seconds, float64(n)/got.Seconds, got.Committed.Added)
	}
	coreSeconds(t, agg, conn)
	checkConserved(t, agg)
	checkComparison(t, s, agg, conn, n, address)
}

// planted are 30 differences in AUDITOR's table: rows that are gone, that have another stop, that
// are new, that go on and go on no more.
const planted = `DELETE FROM auditor_accounting WHERE id % 100 = 50 AND id < 800;
	UPDATE auditor_accounting SET stop_time = stop_time + interval '1 s', runtime = runtime + 1 WHERE id % 100 = 51 AND id < 700;
	INSERT INTO auditor_accounting (record_id, meta, components, start_time, stop_time, runtime, updated_at)
		SELECT 'new-' || id, meta, components, start_time, stop_time, runtime, updated_at FROM auditor_accounting WHERE id % 100 = 52 AND id < 300;
	UPDATE auditor_accounting SET stop_time = NULL, runtime = NULL WHERE id % 100 = 53 AND id < 300;
	UPDATE auditor_accounting SET stop_time = start_time + interval '1 h', runtime = 3600 WHERE id IN (1007, 2007, 3007)`

// plantHere makes the differences that are in bursar: records that are deleted, and second runs of
// requeued jobs, of which AUDITOR keeps one.
func plantHere(t *testing.T, g *site.Aggregator, conn *pgx.Conn) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT record_id, start_time, stop_time FROM auditor_accounting WHERE id % 100 IN (54, 55) AND id < 400 AND record_id LIKE 'slurm-%' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	type run struct {
		ID          string
		Start, Stop time.Time
	}
	runs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[run])
	if err != nil || len(runs) < 6 {
		t.Fatal(len(runs), err)
	}
	operator, err := client.New(client.Options{Address: g.Admin()})
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	for i, r := range runs[:6] {
		if i < 3 {
			if err := operator.DeleteRecord(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			continue
		}
		again := r.Stop.Add(time.Hour).Truncate(time.Second)
		g.Post("/record", fmt.Sprintf(`{"record_id":"%s-%d","meta":{"site_id":["x"]},"components":[{"name":"Cores","amount":4,"scores":[]}],"start_time":%q,"stop_time":%q}`,
			r.ID, again.Unix(), again.UTC().Format(time.RFC3339), again.Add(time.Hour).UTC().Format(time.RFC3339)))
	}
}

// checkComparison checks that bursar compare finds all records equal, and then each of the
// 30 differences that are made, with the causes of those that have one.
func checkComparison(t *testing.T, s *site.Site, g *site.Aggregator, conn *pgx.Conn, all int, address string) {
	t.Helper()
	began := time.Now()
	compare := func(more ...string) (results, causes map[string]string, notes string, code int) {
		text, err := g.Bursar(append([]string{"compare", "auditor", "-dev", "-plugin-dir", filepath.Join(s.Bin, "plugins"), "-format", "json", address}, more...)...)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code, err = exit.ExitCode(), nil
		}
		var d v1.Document
		if err == nil {
			err = json.Unmarshal([]byte(text), &d)
		}
		if err != nil || len(d.Tables) == 0 {
			t.Fatal(text, err)
		}
		results, causes = map[string]string{}, map[string]string{}
		for _, table := range d.Tables {
			for _, row := range table.Rows {
				switch table.Name {
				case "results":
					results[row[0].String()] = row[1].String()
				case "causes":
					causes[row[0].String()+", "+row[1].String()] = row[2].String()
				}
			}
		}
		return results, causes, strings.Join(d.Notes, " "), code
	}
	want := map[string]string{"equal": fmt.Sprint(all), "missing here": "0", "missing there": "0", "different": "0", "invalid there": "0"}
	got, causes, _, code := compare()
	if diff := cmp.Diff(want, got); diff != "" || code != 0 || len(causes) > 0 {
		t.Errorf("compare of what was imported: exit code %d, %s %v", code, diff, causes)
	}
	t.Logf("%d records were compared in %.1f s", all, time.Since(began).Seconds())
	if _, err := conn.Exec(t.Context(), planted, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	plantHere(t, g, conn)
	maps.Copy(want, map[string]string{"equal": fmt.Sprint(all - 8 - 7 - 3 - 3 - 3), "missing here": "6", "missing there": "11", "different": "13"})
	wantCauses := map[string]string{
		"missing here, ": "3", "missing here, deleted here": "3", "missing there, ": "8", "missing there, another run of the job": "3",
		"different, ": "7", "different, still running there": "3", "different, still running here": "3",
	}
	got, causes, _, code = compare()
	if diff := cmp.Diff(want, got) + cmp.Diff(wantCauses, causes); diff != "" || code != 2 {
		t.Errorf("compare with what was changed: exit code %d, %s", code, diff)
	}
	// A filter and a mapping of -config leave records out on the other side.
	for block, cause := range map[string]string{
		"config { running = false }": "missing there, left out by the mapping of -config", "record { when = !startswith(job.id, \"new-\") }": "",
	} {
		file := s.Write("agent-compare.hcl", "source \"auditor\" \"site\" {\n  "+block+"\n}\n")
		_, causes, notes, code := compare("-config", file, "-window", "2025-01")
		if code != 2 || cause != "" && causes[cause] == "" || !strings.Contains(notes, "leaves out") {
			t.Errorf("%s: exit code %d, %v, notes %q", block, code, causes, notes)
		}
		if _, there := causes["missing here, "]; there == (cause == "") {
			t.Errorf("%s: %v", block, causes)
		}
	}
}

// coreSeconds checks what bursar usage says against SQL: to the microsecond, and without
// negative runs.
func coreSeconds(t *testing.T, g *site.Aggregator, conn *pgx.Conn) {
	t.Helper()
	var want string
	if err := conn.QueryRow(t.Context(), `SELECT sum((components->0->>'amount')::numeric * greatest(extract(epoch FROM stop_time - start_time), 0))::text
		FROM auditor_accounting WHERE stop_time IS NOT NULL`).Scan(&want); err != nil {
		t.Fatal(err)
	}
	var answer json.RawMessage
	if err := g.Get("/v1/usage?from=2024-12-01&to=2040-01-01&measure=Cores&unit=second&open=false", &answer); err != nil {
		t.Fatal(err)
	}
	out := string(answer)
	exact, ok := new(big.Rat).SetString(want)
	if !ok {
		t.Fatal(want)
	}
	if text := exact.FloatString(6); !containsNumber(out, exact) {
		t.Errorf("usage is %s, SQL says %s", out, text)
	}
}

// A running AUDITOR is followed through kills of everything, until both have the same.
func TestAuditor_FollowedThroughKills_EachRecordIsThereOnce(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	from := s.Node(site.NodeSpec{Name: "auditor"})
	agent := s.Agent(site.AgentSpec{Name: "mover", Sources: fmt.Sprintf("source \"auditor\" \"old\" {\n  interval = \"300ms\"\n  config {\n    url  = %q\n    page = 50\n  }\n}\n", from.URL)})
	agg := s.Aggregator(agent)
	for _, d := range []*site.Daemon{from.Daemon, agent.Daemon, agg.Daemon} {
		d.Start()
	}
	from.AwaitReady()
	n := 0
	began := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	killing{
		victims: []func(){from.Restart, agent.Restart, agg.Restart, agent.KillChildren, agent.KillChildren},
		alive:   []*site.Daemon{from.Daemon, agent.Daemon, agg.Daemon},
		pause:   500 * time.Millisecond,
		before: func(chance *rand.Rand, _ int) {
			from.AwaitReady()
			for range 1 + chance.IntN(80) {
				n++
				id := fmt.Sprintf("run-%04d", n)
				from.Post("/record", fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":["x"]},"components":[{"name":"Cores","amount":%d,"scores":[{"name":"S","value":1.5}]}],"start_time":%q}`,
					id, n, began.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano)))
				if chance.IntN(3) > 0 {
					stop := began.Add(time.Duration(n+chance.IntN(4000))*time.Second + 123456*time.Microsecond)
					must(t, "PUT", from.URL+"/record", stopOf(id, stop.Format(time.RFC3339Nano)), 200, "")
				}
			}
		},
	}.run(t)
	from.AwaitReady()
	want := from.ByID()
	if len(want) != n {
		t.Fatalf("%d of %d records were pushed", len(want), n)
	}
	s.Eventually("both have the same", func() (bool, string) {
		diff := cmp.Diff(want, agg.ByID())
		return diff == "", diff[:min(len(diff), 2000)]
	})
	checkConserved(t, agg)
}

// containsNumber reports whether JSON has the number.
func containsNumber(text string, want *big.Rat) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`,"[]{}: `, r) }) {
		if n, ok := new(big.Rat).SetString(word); ok && n.Cmp(want) == 0 {
			return true
		}
	}
	return false
}
