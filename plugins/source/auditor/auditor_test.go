package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func newSource() sdk.Source { return &source{now: time.Now} }

func checkMapping(d *bursarv1.DescribeResponse) error {
	_, diags := mapping.Compile(mapping.Options{Type: "auditor", Label: "x", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	return diags.Err()
}

func TestServer_KeepsThePromisesOfEverySource(t *testing.T) {
	f := newFake(t)
	f.fill(2500)
	f.add("drone-1", 1000, -1)
	plugintest.Run(t, plugintest.Options{Source: newSource, CheckMapping: checkMapping, Config: plugintest.Block("config",
		plugintest.Attr("url", f.URL), plugintest.Attr("page", 700), plugintest.Attr("overlap", "0s"), plugintest.Attr("deep_overlap", "0s"))})
}

func TestArchives_KeepThePromisesOfEverySource(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	f.fill(2500)
	writeArchive(t, filepath.Join(dir, "auditor_2026_03.parquet"), f, 1000, &parquet.Gzip)
	f = newFake(t)
	f.add("april", 1, float64(month.Unix())+3e6)
	writeArchive(t, filepath.Join(dir, "auditor_2026_04.parquet"), f, 1000, &parquet.Snappy)
	plugintest.Run(t, plugintest.Options{Source: newSource, CheckMapping: checkMapping,
		Config: plugintest.Block("config", plugintest.Attr("import", []any{dir}))})
}

// archivedRow has the columns of AUDITOR's archives.
type archivedRow struct {
	RecordID   string `parquet:"record_id"`
	Meta       string `parquet:"meta"`
	Components string `parquet:"components"`
	Start      int64  `parquet:"start_time,timestamp(millisecond)"`
	Stop       int64  `parquet:"stop_time,timestamp(millisecond)"`
	Runtime    int64  `parquet:"runtime"`
}

// writeArchive writes what the server has that has ended, group rows to a row group.
func writeArchive(t testing.TB, path string, f *fake, group int64, codec compress.Codec) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := parquet.NewGenericWriter[archivedRow](out, parquet.Compression(codec), parquet.MaxRowsPerRowGroup(group))
	for _, id := range slices.Sorted(maps.Keys(f.records)) {
		r := f.records[id]
		if r.Open() {
			continue
		}
		var parts struct{ Meta, Components json.RawMessage }
		if err := json.Unmarshal(wire.AppendJSON(nil, &r), &parts); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]archivedRow{{id, string(parts.Meta), string(parts.Components), int64(r.Start) / 1000, int64(r.Stop) / 1000, 3600}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSettings_BadOnes_NameTheirPlace(t *testing.T) {
	str := func(name, v string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(v)} }
	for want, nodes := range map[string][]sdk.Node{
		"url or database must be set": nil,
		"nor an absolute path":        {{Name: "import", Value: sdk.Strings("/x", "y")}},
		"not an address such as":      {str("url", "auditor:8000")},
		"is not an address of Post":   {str("database", "postgres://x:y:z/")},
		"certificate":                 {str("url", "https://x"), {Name: "tls", IsBlock: true, Children: []sdk.Node{str("ca", "/none")}}},
		"between 2 and 1000000":       {str("url", "http://x"), {Name: "page", Value: sdk.Int(1)}},
		`did you mean "database"`:     {str("databse", "x")},
		`"sum" is not allowed here`:   {str("url", "http://x"), {Name: "component", Labels: []string{"x"}, IsBlock: true, Children: []sdk.Node{str("kind", "sum")}}},
	} {
		err := newSource().Configure(t.Context(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestReadme_HasSettingsMappingAndAttributes(t *testing.T) {
	plugintest.Settings(t, new(settings))
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```hcl"+defaultMapping+"```") {
		t.Error("the default mapping is another one")
	}
	for _, a := range recordAttributes() {
		if line := fmt.Sprintf("| `%s` | %s | %s |", a.Name, a.Type, a.Doc); !strings.Contains(string(readme), line) {
			t.Errorf("no line %s", line)
		}
	}
}

// reader is a source with the daemon behind it.
type reader struct {
	t       *testing.T
	source  *source
	at      []byte
	runs    map[string]sdk.Job
	refused []sdk.Refused
	sent    int
	fail    int // batches until sending fails; 0: never
}

func newReader(t *testing.T, nodes ...sdk.Node) *reader {
	t.Helper()
	r := &reader{t: t, source: &source{now: time.Now}, runs: map[string]sdk.Job{}}
	if err := r.source.Configure(t.Context(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes})); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reader) take(_ context.Context, b sdk.Batch) error {
	if r.fail > 0 {
		if r.fail--; r.fail == 0 {
			return context.Canceled
		}
	}
	for _, j := range b.Jobs {
		r.runs[j.Run] = j
	}
	r.sent += len(b.Jobs)
	r.refused = append(r.refused, b.Refused...)
	if b.Checkpoint != nil {
		r.at = slices.Clone(b.Checkpoint)
	}
	return nil
}

func (r *reader) collect() error {
	return r.source.Collect(r.t.Context(), sdk.Start{Checkpoint: r.at}, sdk.NewStream(recordAttributes(), r.take))
}

func (r *reader) must() {
	r.t.Helper()
	if err := r.collect(); err != nil {
		r.t.Fatal(err)
	}
}

func from(f *fake, more ...sdk.Node) []sdk.Node {
	return append(more, sdk.Node{Name: "url", Value: sdk.String(f.URL)})
}

// zero sets a duration to none.
func zero(name string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String("0s")} }

func page(n int64) sdk.Node { return sdk.Node{Name: "page", Value: sdk.Int(n)} }

func TestServer_RecordsOfOneStopBeyondAPage_AreAllRead(t *testing.T) {
	f := newFake(t)
	f.fill(10)
	for i := range 100 {
		f.add(fmt.Sprint("same-", i), 1000, float64(month.Unix()))
	}
	r := newReader(t, from(f, page(7))...)
	r.must()
	if len(r.runs) != 110 {
		t.Error(len(r.runs))
	}
}

func TestServer_LateRecord_IsFoundByTheOverlap(t *testing.T) {
	f := newFake(t)
	f.fill(300)
	r := newReader(t, from(f, page(50))...)
	r.must()
	f.add("late", 1000, float64(month.Unix())+4000)
	f.add("very late", 1000, float64(month.Unix())-100_000)
	f.add("new", 1000, float64(month.Unix())+100_000)
	r.must()
	if len(r.runs) != 302 || r.runs["very late"].Ended {
		t.Error(len(r.runs))
	}
	r.source.now = func() time.Time { return time.Now().Add(7 * time.Hour) }
	r.must()
	if len(r.runs) != 303 {
		t.Error(len(r.runs))
	}
}

func TestServer_OpenRecord_IsClosedWheneverItsStopIs(t *testing.T) {
	f := newFake(t)
	f.fill(30)
	for i := range 20 {
		f.add(fmt.Sprint("drone-", i), float64(month.Unix())+float64(i), -1)
	}
	r := newReader(t, from(f, page(5), zero("deep_overlap"), zero("overlap"))...)
	r.must()
	if j := r.runs["drone-7"]; j.Ended || len(r.runs) != 50 {
		t.Error(j, len(r.runs))
	}
	f.add("drone-7", float64(month.Unix()), float64(month.Unix())+1) // behind all that was read
	r.must()
	if j := r.runs["drone-7"]; !j.Ended || r.runs["drone-8"].Ended {
		t.Error(j)
	}
}

func TestServer_DatabaseFails_IsAnErrorAndLosesNothing(t *testing.T) {
	f := newFake(t)
	f.fill(300)
	f.cut = 1
	r := newReader(t, from(f, page(50))...)
	if err := r.collect(); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Error(err)
	}
	f.down = true
	if err := r.collect(); err == nil || !strings.Contains(err.Error(), "health check") {
		t.Error(err)
	}
	f.down = false
	r.must()
	if len(r.runs) != 300 {
		t.Error(len(r.runs))
	}
}

func TestInputs_SomeFail_AreNamedAndTheOthersAreRead(t *testing.T) {
	rng, dir := rand.New(rand.NewPCG(1, 31)), t.TempDir()
	gone := "http://" + porttest.Free(t) // a closed server's port may be that of the next one
	for range 20 {
		var inputs, named, unnamed []string
		var mended []*fake
		whole := 0
		for i := range 2 + rng.IntN(4) {
			f := newFake(t)
			f.prefix = fmt.Sprintf("cluster%d-", i)
			f.fill(100)
			address, fails := f.URL, true
			switch rng.IntN(5) {
			case 0:
				f.down, mended = true, append(mended, f)
			case 1:
				f.cut, mended = 1, append(mended, f)
			case 2:
				address = filepath.Join(dir, fmt.Sprintf("missing%d.parquet", i))
			case 3:
				address = gone
			default:
				fails = false
			}
			inputs = append(inputs, address)
			if fails {
				named = append(named, address)
				continue
			}
			unnamed = append(unnamed, address)
			whole += 100
		}
		r := newReader(t, sdk.Node{Name: "import", Value: sdk.Strings(inputs...)}, page(40), zero("overlap"), zero("deep_overlap"))
		err := r.collect()
		if (err != nil) != (len(named) > 0) {
			t.Fatal(inputs, err)
		}
		for _, one := range named {
			if !strings.Contains(err.Error(), one+": ") {
				t.Errorf("%s is not named: %v", one, err)
			}
		}
		for _, one := range unnamed {
			if err != nil && strings.Contains(err.Error(), one) {
				t.Errorf("%s is named, and was read: %v", one, err)
			}
		}
		if len(r.runs) < whole {
			t.Errorf("%d of %d records: %v", len(r.runs), whole, err)
		}
		sent := r.sent
		for _, f := range mended {
			f.down = false
		}
		_ = r.collect() // what is gone stays gone
		if len(r.runs) != whole+100*len(mended) {
			t.Errorf("%d of %d records when it is repeated", len(r.runs), whole+100*len(mended))
		}
		if again := r.sent - sent - 100*len(mended); again > 6*len(inputs) { // those of the latest stop
			t.Errorf("%d records were sent again", again)
		}
	}
}

func TestServer_BrokenOffAnywhere_GoesOn(t *testing.T) {
	f := newFake(t)
	f.fill(9000)
	for fail := 1; fail < 12; fail++ {
		r := newReader(t, from(f, page(1700))...)
		r.fail = fail
		_ = r.collect()
		r.fail = 0
		r.must()
		if len(r.runs) != 9000 {
			t.Error(fail, len(r.runs))
		}
	}
}

func TestServer_BadRecord_IsRefusedByName(t *testing.T) {
	f := newFake(t)
	f.fill(3)
	f.odd = []string{
		`{"record_id":"blank","meta":{"k":[" "]},"components":[],"start_time":"2026-03-01T00:00:00Z","stop_time":"2026-03-01T00:00:01Z","runtime":1}`,
		`{"record_id":"amount","meta":null,"components":[{"name":"Cores","amount":-1,"scores":[]}],"start_time":"2026-03-01T00:00:00Z","stop_time":"2026-03-01T00:00:01Z","runtime":1}`,
	}
	r := newReader(t, from(f)...)
	r.must()
	var named []string
	for _, x := range r.refused {
		named = append(named, x.Run)
		if !strings.Contains(x.Message, x.Run) || len(x.Raw) == 0 {
			t.Errorf("%+v", x)
		}
	}
	slices.Sort(named)
	if len(r.runs) != 3 || !slices.Equal(slices.Compact(named), []string{"amount", "blank"}) {
		t.Error(len(r.runs), named)
	}
}

func TestDefaultMapping_KeepsTheRecord(t *testing.T) {
	f := newFake(t)
	f.fill(1)
	r := newReader(t, from(f)...)
	r.must()
	client := plugintest.Serve(t, newSource)
	if _, err := client.Configure(t.Context(), &bursarv1.ConfigureRequest{Label: "x", Config: plugintest.Block("config", plugintest.Attr("url", f.URL)), DataDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	d, err := client.Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m, diags := mapping.Compile(mapping.Options{Type: "auditor", Label: "x", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got, err := (&plugintest.Daemon{Client: client}).Collect(t.Context(), sdk.Start{})
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := m.Map(got.Jobs()[0])
	want := f.records["slurm-0"]
	want.Components = slices.Clone(want.Components)
	want.Components[1].Kind = record.Total
	if diff := cmp.Diff(want, rec); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestArchives_RowGroupDamaged_IsNamedAndTheOthersAreRead(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	f.fill(20)
	whole := filepath.Join(dir, "whole.parquet")
	writeArchive(t, whole, f, 7, &parquet.Gzip)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	groups := file.Metadata().RowGroups
	begin := func(group int) int64 { return groups[group].Columns[0].MetaData.DataPageOffset }
	for i := begin(1); i < begin(2); i++ {
		text[i] ^= 0x55
	}
	path := filepath.Join(dir, "middle.parquet")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newReader(t, sdk.Node{Name: "import", Value: sdk.Strings(path)})
	r.must()
	if len(r.runs) != 13 || len(r.refused) != 1 || r.refused[0].Run != "middle.parquet, row group 2" ||
		!strings.Contains(r.refused[0].Message, "middle.parquet: row group 2 of 3 is damaged behind row 7: 7 records of it cannot be read") {
		t.Error(len(r.runs), len(groups), r.refused)
	}
}

func TestArchives_CutOrForeign_AreNamedAndTheOthersStay(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	f.fill(20)
	whole := filepath.Join(dir, "auditor_2026_03.parquet")
	writeArchive(t, whole, f, 7, &parquet.Gzip)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(text)
	for i := 60; i < len(text)/2; i++ {
		damaged[i] ^= 0x55
	}
	for name, content := range map[string]struct {
		text []byte
		want string
	}{
		"auditor_2026_04.parquet": {text[:len(text)/2], "auditor_2026_04.parquet: it is not a Parquet file"},
		"b.parquet":               {nil, "b.parquet: it is not a Parquet file"},
		"pages.parquet":           {damaged, "row group 1 of 3 is damaged behind row 0: 7 records"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content.text, 0o600); err != nil {
			t.Fatal(err)
		}
		r := newReader(t, sdk.Node{Name: "import", Value: sdk.Strings(path, whole)})
		r.must()
		refused := 1
		if name == "pages.parquet" {
			refused = 3 // each of its row groups
		}
		if len(r.runs) != 20 || len(r.refused) != refused || !strings.Contains(r.refused[0].Message, content.want) {
			t.Error(len(r.runs), r.refused)
		}
	}
	if err := newReader(t, sdk.Node{Name: "import", Value: sdk.Strings(t.TempDir())}).collect(); err == nil || !strings.Contains(err.Error(), "no archives") {
		t.Error(err)
	}
}
