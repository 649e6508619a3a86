package source_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"

	"google.golang.org/protobuf/proto"
)

// programs is a folder with the plugins and bursar-epilog, built once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bursar-pairs-")
	if err != nil {
		return "", err
	}
	return dir, programtest.Build(dir, map[string]string{
		"bursar-source-auditor":      "plugins/source/auditor",
		"bursar-source-slurm":        "plugins/source/slurm",
		"bursar-source-slurm-epilog": "plugins/source/slurm-epilog",
		"bursar-source-gridengine":   "plugins/source/gridengine",
		"bursar-source-htcondor":     "plugins/source/htcondor",
		"bursar-source-kubernetes":   "plugins/source/kubernetes",
		"bursar-source-receiver":     "plugins/source/receiver",
		"bursar-epilog":              "plugins/source/slurm-epilog/cmd/bursar-epilog",
	})
})

// patience is how long a program may take to do what a test waits for.
const patience = time.Minute

// lab lets real sources tell of worlds, by their default mappings.
type lab struct{ t *testing.T }

// program is the path of a built program.
func (l *lab) program(name string) string {
	l.t.Helper()
	dir, err := programs()
	if err != nil {
		l.t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// source starts a source's plugin and returns what it says until it ends, or until all
// reports that this is all.
func (l *lab) source(origin record.Origin, rank record.Rank, config *bursarv1.Node, meanwhile func(context.Context) error, all func([]record.Write) bool) (said []record.Write) {
	l.t.Helper()
	path := l.program("bursar-source-" + origin.Type) // built here for the first source
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	process, err := host.Launch(ctx, host.Spec{Kind: "source", Type: origin.Type, Path: path, Dev: true})
	if err != nil {
		l.t.Fatal(err)
	}
	defer process.Close()
	s, diags, err := host.NewSession(ctx, process, process.Source(), host.SessionSpec{Agent: origin.Agent, Type: origin.Type, Label: label, DataDir: l.t.TempDir(), Config: config})
	if err != nil || diags.HasErrors() {
		l.t.Fatal(err, diags)
	}
	other := make(chan error, 1)
	go func() {
		err := meanwhile(ctx)
		if err != nil {
			cancel() // nothing more comes
		}
		other <- err
	}()
	enough := errors.New("all was said")
	err = s.Stream(ctx, &bursarv1.CollectRequest_Start{}, func(batch *bursarv1.CollectResponse) error {
		if n := len(batch.GetRefused()); n > 0 {
			return fmt.Errorf("%s refuses %v", origin.Type, batch.GetRefused())
		}
		for _, job := range batch.GetJobs() {
			r, keep, err := s.Mapper.Map(job)
			if err != nil || !keep {
				return fmt.Errorf("%s: run %s: kept %t: %w", origin.Type, job.GetRun(), keep, err)
			}
			said = append(said, record.Write{ID: r.ID, Op: record.OpPut, Origin: origin, Rank: rank, Version: record.Version{Ended: !r.Open()}, Record: &r})
		}
		for _, message := range batch.GetRecords() {
			w, err := pushed(message)
			if err != nil {
				return err
			}
			said = append(said, w)
		}
		if all(said) {
			return enough
		}
		return nil
	})
	cancel()
	if errors.Is(err, enough) {
		err = nil
	}
	if err := errors.Join(<-other, err); err != nil {
		l.t.Fatalf("%s, after %d runs: %v", origin, len(said), err)
	}
	return said
}

func nothing(context.Context) error { return nil }

func never([]record.Write) bool { return false }

// pushed is what the agent makes of a record that a client pushed.
func pushed(message *bursarv1.Record) (record.Write, error) {
	text, err := proto.Marshal(message)
	if err != nil {
		return record.Write{}, err
	}
	var r record.Record
	if err := wire.DecodeRecord(text, &r); err != nil {
		return record.Write{}, err
	}
	return record.Write{ID: r.ID, Op: record.OpPut, Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: !r.Open()}, Record: &r}, nil
}

// push lets a client push records to a receiver, one by one as AUDITOR's collectors do.
// An id that is known is refused, and the client goes on.
func (l *lab) push(records []*record.Record) []record.Write {
	l.t.Helper()
	ids := map[string]bool{}
	for _, r := range records {
		ids[r.ID] = true
	}
	path := filepath.Join(l.t.TempDir(), "s")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return local.Dial(ctx, path) }}}
	defer client.CloseIdleConnections()
	return l.source(record.Origin{Agent: "head1", Type: "receiver", Label: label}, record.RankPush, plugintest.Block("config", plugintest.Attr("socket", path)), func(ctx context.Context) error {
		for _, r := range records {
			if err := post(ctx, client, path, r); err != nil {
				return err
			}
		}
		return nil
	}, func(said []record.Write) bool { return len(said) == len(ids) })
}

// post pushes one record, once the receiver listens.
func post(ctx context.Context, client *http.Client, path string, r *record.Record) error {
	body, err := json.Marshal(map[string]any{"record_id": r.ID, "start_time": r.Start.String(), "stop_time": stopOf(r),
		"meta": metaOf(r), "components": componentsOf(r)})
	if err != nil {
		return err
	}
	await(ctx, path)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/record", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil // all that can come came
		}
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil || resp.StatusCode != http.StatusOK && string(text) != "RECORD_EXISTS" {
		return fmt.Errorf("push of %s: %s %s %w", r.ID, resp.Status, text, err)
	}
	return nil
}

// await waits until a process listens on the socket at path.
func await(ctx context.Context, path string) {
	for ctx.Err() == nil {
		if conn, err := local.Dial(ctx, path); err == nil {
			conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func stopOf(r *record.Record) any {
	if r.Open() {
		return nil
	}
	return r.Stop.String()
}

func metaOf(r *record.Record) map[string][]string {
	out := map[string][]string{}
	for _, m := range r.Meta {
		out[m.Key] = m.Values
	}
	return out
}

func componentsOf(r *record.Record) []map[string]any {
	out := []map[string]any{}
	for _, c := range r.Components {
		out = append(out, map[string]any{"name": c.Name, "amount": c.Amount, "scores": []any{}})
	}
	return out
}

// slurm is the source slurm on the world's sacct.
func (l *lab) slurm(w *world) []record.Write {
	path := l.sacct(w)
	return l.source(record.Origin{Agent: "head1", Type: "slurm", Label: label}, record.RankScheduler, plugintest.Block("config", plugintest.Attr("sacct", path),
		plugintest.Attr("earliest", w.order[0].submit.String()), plugintest.Attr("capacity", false), plugintest.Attr("census", false), plugintest.Attr("directory", false)), nothing, never)
}

// epilog is the source of epilogs, with bursar-epilog as slurmctld runs it.
func (l *lab) epilog(w *world) []record.Write {
	dir, sacct := l.t.TempDir(), l.sacct(w)
	socket, spool, settings := filepath.Join(dir, "s"), filepath.Join(dir, "spool"), filepath.Join(dir, "epilog.hcl")
	if err := os.WriteFile(settings, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	ids := map[string]bool{}
	return l.source(record.Origin{Agent: "head1", Type: "slurm-epilog", Label: label}, record.RankEpilog, plugintest.Block("config", plugintest.Attr("sacct", sacct),
		plugintest.Attr("socket", socket), plugintest.Attr("delay", "0s")), func(ctx context.Context) error {
		for _, r := range w.order {
			if !r.last {
				continue // a later epilog of the job tells of this run too
			}
			cmd := exec.CommandContext(ctx, l.program("bursar-epilog"), "-config", settings, "-socket", socket, "-spool", spool, "-timeout", "30s")
			cmd.Env = []string{"SLURM_JOB_ID=" + r.raw, "SLURM_SCRIPT_CONTEXT=epilog_slurmctld", "SLURM_CLUSTER_NAME=c1", "SLURM_JOB_START_TIME=" + seconds(r.start)}
			await(ctx, socket)
			if out, err := cmd.CombinedOutput(); ctx.Err() == nil && (err != nil || len(out) > 0) {
				return fmt.Errorf("bursar-epilog: %w: %s", err, out)
			}
		}
		return nil
	}, func(said []record.Write) bool {
		for i := range said {
			ids[said[i].ID] = true
		}
		return len(ids) == len(w.order)
	})
}

// sacct installs the world's sacct.
func (l *lab) sacct(w *world) string {
	l.t.Helper()
	db := fakesacct.DB{Columns: []string{"JobIDRaw", "JobID", "State", "Submit", "Eligible", "Start", "End", "Cluster", "User", "UID", "Group", "GID",
		"Account", "Partition", "AllocNodes", "AllocTRES", "AllocCPUS", "TotalCPU", "ReqMem", "ExitCode", "ElapsedRaw"}}
	for _, r := range w.order {
		state := "REQUEUED"
		if r.last {
			state = "COMPLETED"
		}
		cores := fmt.Sprint(r.cores)
		db.Rows = append(db.Rows, fakesacct.Row{"JobIDRaw": r.raw, "JobID": r.job, "State": state, "Submit": seconds(r.submit), "Eligible": seconds(r.submit),
			"Start": seconds(r.start), "End": seconds(r.stop), "Cluster": "c1", "User": r.user, "UID": "1001", "Group": "phys", "GID": "1001", "Account": "physics",
			"Partition": "cpu", "AllocNodes": "1", "AllocTRES": "cpu=" + cores + ",mem=1G", "AllocCPUS": cores, "TotalCPU": "00:01.000", "ReqMem": "1G", "ExitCode": "0:0"})
	}
	return fakesacct.Install(l.t, l.t.TempDir(), &db)
}

// auditorSlurm is AUDITOR's Slurm collector: it asks sacct without duplicates, which
// gives the last run of each job, and its id has the JobID.
func (l *lab) auditorSlurm(w *world) []record.Write {
	var out []*record.Record
	for _, r := range w.order {
		if r.last {
			out = append(out, r.record(label+"-"+r.job))
		}
	}
	return l.push(out)
}

// auditorEpilog is AUDITOR's Slurm epilog collector: its id has the number by which
// Slurm counts, and it speaks at the end of each run.
func (l *lab) auditorEpilog(w *world) []record.Write {
	var out []*record.Record
	for _, r := range w.order {
		out = append(out, r.record(label+"-"+r.raw))
	}
	return l.push(out)
}

// auditorCondor and auditorKubernetes give what the scheduler calls the job.
func (l *lab) auditorCondor(w *world) []record.Write     { return l.auditorSlurm(w) }
func (l *lab) auditorKubernetes(w *world) []record.Write { return l.auditorSlurm(w) }

// gridengine is the source gridengine that follows the world's accounting file.
func (l *lab) gridengine(w *world) []record.Write {
	return l.source(record.Origin{Agent: "head1", Type: "gridengine", Label: label}, record.RankScheduler, plugintest.Block("config", plugintest.Attr("path", l.accounting(w)),
		plugintest.Attr("capacity", false), plugintest.Attr("census", false)), nothing, never)
}

// gridengineImport is what bursar import makes of the accounting file.
func (l *lab) gridengineImport(w *world, name string) []record.Write {
	return l.source(record.Origin{Agent: name, Type: "gridengine", Label: label}, record.RankImport, plugintest.Block("config", plugintest.Attr("import", []string{l.accounting(w)})), nothing, never)
}

// accounting writes the world's accounting file.
func (l *lab) accounting(w *world) string {
	l.t.Helper()
	text := "# Version: 8.1.9\n"
	for _, r := range w.order {
		failed := "25" // rescheduled
		if r.last {
			failed = "0"
		}
		job, task, _ := strings.Cut(r.job, ".")
		if task == "" {
			task = "0"
		}
		text += fmt.Sprintf("all.q:vm:%[1]s:%[1]s:ok:%[2]s:sge:0:%[3]s:%[4]s:%[5]s:%[6]s:0:2:0.002789:0.005119:4500.000000:0:0:0:0:553:0:0:296.000000:48:0:0:0:18:10:astro:defaultdepartment:NONE:%[7]d:%[8]s:0.007908:0.000000:0.000038:NONE:0.000000:NONE:3629056.000000:0:0\n",
			r.user, job, seconds(r.submit), seconds(r.start), seconds(r.stop), failed, r.cores, task)
	}
	path := filepath.Join(l.t.TempDir(), "accounting")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// condor is the source htcondor that reads the world's history and epochs.
func (l *lab) condor(w *world) []record.Write {
	history, epochs := l.histories(w)
	return l.source(record.Origin{Agent: "head1", Type: "htcondor", Label: label}, record.RankScheduler, plugintest.Block("config",
		plugintest.Attr("history", history), plugintest.Attr("epochs", epochs), plugintest.Attr("capacity", false), plugintest.Attr("census", false)), nothing, never)
}

// condorImport is what bursar import makes of the same files.
func (l *lab) condorImport(w *world) []record.Write {
	history, epochs := l.histories(w)
	return l.source(record.Origin{Agent: "import", Type: "htcondor", Label: label}, record.RankImport,
		plugintest.Block("config", plugintest.Attr("import", []string{history, epochs})), nothing, never)
}

// histories writes the world's history, with the last run of each job, and its epochs,
// with all runs.
func (l *lab) histories(w *world) (history, epochs string) {
	l.t.Helper()
	var jobs, runs strings.Builder
	starts, first := map[string]int{}, map[string]string{}
	for _, r := range w.order {
		if starts[r.job]++; starts[r.job] == 1 {
			first[r.job] = seconds(r.start)
		}
		ad := fmt.Sprintf("CpusProvisioned = %d\nClusterId = 1\nGlobalJobId = %q\nJobCurrentStartDate = %s\nJobStartDate = %s\nJobUniverse = 5\n"+
			"NumShadowStarts = %d\nOwner = %q\nProcId = 0\nQDate = %s\n",
			r.cores, r.job, seconds(r.start), first[r.job], starts[r.job], r.user, seconds(r.submit))
		fmt.Fprintf(&runs, "%sJobStatus = 2\nEpochWriteDate = %s\n*** EPOCH ClusterId=1 ProcId=0\n", ad, seconds(r.stop))
		if r.last {
			fmt.Fprintf(&jobs, "%sJobStatus = 4\nExitCode = 0\nCompletionDate = %s\nEnteredCurrentStatus = %[2]s\n*** Offset = %d ClusterId = 1\n", ad, seconds(r.stop), jobs.Len())
		}
	}
	history, epochs = filepath.Join(l.t.TempDir(), "history"), filepath.Join(l.t.TempDir(), "epoch_history")
	for path, text := range map[string]string{history: jobs.String(), epochs: runs.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	return history, epochs
}

// condorClient pushes with the ids that the README of the source has.
func (l *lab) condorClient(w *world) []record.Write {
	var out []*record.Record
	again := map[string]bool{}
	for _, r := range w.order {
		id := label + "-" + r.job
		if again[r.job] {
			id += "-" + seconds(r.start)
		}
		again[r.job] = true
		out = append(out, r.record(id))
	}
	return l.push(out)
}

// gridengineClient pushes with the ids that the README of the source has.
func (l *lab) gridengineClient(w *world) []record.Write { return l.push(gridengineRecords(w)) }

func gridengineRecords(w *world) (out []*record.Record) {
	for _, r := range w.order {
		out = append(out, r.record(fmt.Sprintf("%s-%s-%s", label, r.job, seconds(r.start))))
	}
	return out
}

// gridengineAuditor is an AUDITOR to which that client pushed, moved by bursar import.
func (l *lab) gridengineAuditor(w *world) []record.Write {
	records := gridengineRecords(w)
	slices.SortStableFunc(records, func(a, b *record.Record) int { return cmp.Compare(a.Stop, b.Stop) })
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		query := in.URL.Query()
		from, _ := record.ParseTime(query.Get("stop_time[gte]"))
		if to := query.Get("stop_time[lt]"); in.URL.Path == "/v1/records" || to != "" {
			http.NotFound(out, in) // a bursar's, or a question that an import does not ask
			return
		}
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil {
			limit = len(records)
		}
		for _, r := range records {
			if r.Stop >= from && limit > 0 {
				limit--
				_, _ = out.Write(wire.AppendJSON(nil, r)) // to a client that may be gone
			}
		}
	}))
	defer server.Close()
	return l.source(record.Origin{Agent: "import", Type: "auditor", Label: label}, record.RankImport,
		plugintest.Block("config", plugintest.Attr("import", []string{server.URL})), nothing, never)
}

// recorded is what a source's own test keeps as its records of a recorded world.
func recorded(path, typ string, rank record.Rank) func(*lab, *world) []record.Write {
	return func(l *lab, _ *world) (out []record.Write) {
		l.t.Helper()
		for _, r := range readRecords(l.t, path) {
			out = append(out, record.Write{ID: r.ID, Op: record.OpPut, Origin: record.Origin{Agent: typ, Type: typ, Label: "cloud"}, Rank: rank,
				Version: record.Version{Ended: !r.Open()}, Record: &r})
		}
		return out
	}
}

// nomadClient pushes with the ids of the source nomad.
func (l *lab) nomadClient(w *world) []record.Write {
	var out []*record.Record
	for i := range w.records {
		out = append(out, &w.records[i])
	}
	return l.push(out)
}
