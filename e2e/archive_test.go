//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/recordfile"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var archivedRecords = flag.Int("archived", 20000, "records of the tests of archives")

func newS3(t *testing.T, s *site.Site) *rig.S3 {
	files := s.Cert(identity.Aggregator, "s3")
	return rig.NewS3(t, s.Address(), files.CA, files.Cert, files.Key)
}

func bucketOf(s *rig.S3, name string) *filestore.Bucket {
	return &filestore.Bucket{
		Endpoint: "https://" + s.Address, Bucket: name, Prefix: "a/b", Region: "us-east-1", AccessKey: s.AccessKey, SecretKey: s.Secret,
		CA: hcl.Absolute(s.CA), Timeout: time.Minute,
	}
}

func TestBucket_OfARealServer_KeepsWhatIsPutAndNamesWhatFails(t *testing.T) {
	t.Parallel()
	server := newS3(t, site.New(t))
	folder := server.Bucket("accounting")
	open := func(change func(b *filestore.Bucket)) filestore.Store {
		b := bucketOf(server, "accounting")
		change(b)
		s, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(func(*filestore.Bucket) {})
	for name, size := range map[string]int{"empty": 0, "year=2024/small": 1000, "year=2024/one request": 8<<20 - 1, "year=2024/parts": 8 << 20, "many parts": 70 << 20} {
		content := make([]byte, size)
		random := rand.NewChaCha8([32]byte{byte(size)})
		random.Read(content)
		checked := false
		err := s.Put(t.Context(), name, func(w io.Writer) error { _, err := w.Write(content); return err }, func(f *filestore.File) error {
			got, err := io.ReadAll(f.Reader())
			checked = bytes.Equal(got, content)
			return err
		})
		if err != nil || !checked {
			t.Errorf("%s: %v, %v", name, err, checked)
		}
	}
	if got, err := s.List(t.Context(), "year=2024/"); err != nil || strings.Join(got, ",") != "year=2024/one request,year=2024/parts,year=2024/small" {
		t.Error(got, err)
	}
	if got, err := filestore.ReadFile(t.Context(), s, "year=2024/small", 1000); err != nil || len(got) != 1000 {
		t.Error(len(got), err)
	}
	for range 2 {
		if err := s.Remove(t.Context(), "year=2024/small"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Open(t.Context(), "year=2024/small"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for want, change := range map[string]func(b *filestore.Bucket){
		"No user exists with the provided access key ID":            func(b *filestore.Bucket) { b.AccessKey = "other" },
		"the server refuses the credentials (SignatureDoesNotMatch": func(b *filestore.Bucket) { b.SecretKey = "other" },
		"the bucket gone is not there":                              func(b *filestore.Bucket) { b.Bucket = "gone" },
		"certificate signed by unknown authority":                   func(b *filestore.Bucket) { b.CA = "" },
	} {
		bad := open(change)
		_, listed := bad.List(t.Context(), "")
		for _, err := range []error{listed, filestore.WriteFile(t.Context(), bad, "x", []byte("x"))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	err := s.Put(t.Context(), "cut off", func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 40<<20)); err != nil {
			return err
		}
		server.Stop()
		_, err := w.Write(make([]byte, 40<<20))
		return err
	}, nil)
	if err == nil {
		t.Error("a file was put on a server that was gone")
	}
	if _, err := os.Stat(filepath.Join(folder, "a/b/cut off")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	server.Start()
	if err := filestore.WriteFile(t.Context(), s, "cut off", []byte("x")); err != nil {
		t.Error(err)
	}
}

// archive are files, and an aggregator that imports them.
type archive struct {
	*testing.T

	agg    *site.Aggregator
	folder string // of the files
}

// write writes benchmark records to a file a month, and returns what they add up to; more
// is what else they have used.
func (a *archive) write(n int, more ...record.Component) recordfile.Content {
	a.Helper()
	months := map[string][]*archived.Row{}
	var all recordfile.Totals
	g := benchmark.Generator(11, n, benchmark.UUID)
	g.Extended = true
	for r := range g.All() {
		r.Components = slices.Concat(r.Components, more)
		row := &archived.Row{Record: r, Rank: record.RankScheduler, Stop: record.None, Received: r.Stop, Changed: r.Stop, Version: record.Version{Ended: true, Observed: 1}}
		month := r.Stop.Std().UTC().Format("year=2006/month=01")
		months[month] = append(months[month], row)
		all.Row(row)
	}
	for month, rows := range months {
		path := filepath.Join(a.folder, month, "records-1-000000000001.parquet")
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		out, e := os.Create(path)
		if err = errors.Join(err, e); err != nil {
			a.Fatal(err)
		}
		w := recordfile.NewWriter(out, recordfile.Bursar, "")
		for _, row := range rows {
			err = errors.Join(err, w.Write(row))
		}
		manifest := os.WriteFile(filepath.Join(a.folder, month, "_manifest-1-000000000001.json"), []byte("{}"), 0o644)
		if err = errors.Join(err, w.Close(), out.Close(), manifest); err != nil {
			a.Fatal(err)
		}
	}
	return all.Content()
}

// used is what all records used, by kind and component as a manifest has it.
func (a *archive) used() map[string]string {
	a.Helper()
	var u v1.Usage
	if err := a.agg.Get("/v1/usage?from=2023-01-01&to=2027-01-01&measure=Cores,Memory,GPUs,NNodes,TotalCPU", &u); err != nil {
		a.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range u.Measures {
		v, ok := new(big.Rat).SetString(m.Values[0].String())
		key := "total:" + m.Name
		if m.Name != "TotalCPU" {
			key = "rate:" + m.Name
			v.Mul(v, big.NewRat(1e6, 1))
		}
		if !ok || !v.IsInt() {
			a.Fatalf("%+v", m)
		}
		out[key] = v.Num().String()
	}
	return out
}

// lake reads the files with pyarrow and with DuckDB, which must agree.
func (a *archive) lake() (records int, sums map[string]string) {
	a.Helper()
	type read struct {
		Records int
		Months  map[string]int
		Sums    map[string]string
	}
	var both struct{ PyArrow, DuckDB read }
	cmd := exec.Command(rig.Lake(a), filepath.Join(site.Top(), "e2e/testdata/lake.py"), a.folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &both)
	}
	if err != nil {
		a.Fatal(err)
	}
	if both.PyArrow.Records != both.DuckDB.Records || !maps.Equal(both.PyArrow.Sums, both.DuckDB.Sums) || !maps.Equal(both.PyArrow.Months, both.DuckDB.Months) {
		a.Errorf("pyarrow and DuckDB differ: %+v", both)
	}
	return both.DuckDB.Records, both.DuckDB.Sums
}

func TestArchive_Files_AreReadByOthersAndImportedWithTheSameSums(t *testing.T) {
	t.Parallel()
	a := &archive{T: t, agg: site.New(t).Aggregator(), folder: t.TempDir()}
	want := a.write(*archivedRecords)
	if records, sums := a.lake(); uint64(records) != want.Records || !maps.Equal(sums, want.Sums) {
		t.Errorf("pyarrow and DuckDB read %d records and %v, want %d and %v", records, sums, want.Records, want.Sums)
	}
	a.agg.Start()
	a.agg.AwaitReady()
	if out, err := a.agg.Bursar("import", "auditor", "-label", "lake", filepath.Join(a.folder, "year=*/month=*/*.parquet")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := a.used(); !maps.Equal(got, want.Sums) {
		t.Errorf("/v1/usage says %v, want %v", got, want.Sums)
	}
	got := a.agg.ByID()
	g := benchmark.Generator(11, *archivedRecords, benchmark.UUID)
	g.Extended = true
	for want := range g.All() {
		if r, there := got[want.ID]; !there || r.Start != want.Start || r.Stop != want.Stop {
			t.Fatalf("%+v, want %+v", r, want)
		}
	}
}

// lakeAnswer is what a question of the README comes to.
type lakeAnswer struct {
	Columns []string
	Rows    [][]any
}

// sum adds up a column.
func (w *lakeAnswer) sum(column string) (sum float64) {
	for _, row := range w.Rows {
		n, _ := row[slices.Index(w.Columns, column)].(float64)
		sum += n
	}
	return sum
}

// supplement writes the records of a file again into another one of its month.
func (a *archive) supplement() {
	a.Helper()
	files, err := filepath.Glob(filepath.Join(a.folder, "year=*/month=*/records-1-*.parquet"))
	if err != nil || len(files) == 0 {
		a.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(strings.Replace(files[0], "records-1-", "records-2-", 1), text, 0o600)
	}
	if err != nil {
		a.Fatal(err)
	}
}

func TestArchive_QuestionsInTheREADME_AddUpWhatIsArchived(t *testing.T) {
	t.Parallel()
	a := &archive{T: t, folder: t.TempDir()}
	want := a.write(*archivedRecords, record.Component{Name: "Energy", Kind: record.Total, Amount: 7200})
	a.supplement() // of records that were corrected
	command := exec.Command(rig.Lake(t), filepath.Join(site.Top(), "e2e/testdata/lake_readme.py"), filepath.Join(site.Top(), "plugins/action/archive/README.md"), a.folder)
	command.Stderr = os.Stderr
	out, err := command.Output()
	var answers []lakeAnswer
	if err == nil {
		err = json.Unmarshal(out, &answers)
	}
	if err != nil {
		t.Fatal(err)
	}
	total := func(key string, per float64) float64 {
		n, ok := new(big.Rat).SetString(want.Sums[key])
		if !ok {
			t.Fatalf("%s is not in %v", key, want.Sums)
		}
		f, _ := n.Float64()
		return f / per
	}
	sums := map[string]float64{"core_hours": total("rate:Cores", 3600e6), "jobs": float64(want.Records), "kwh": total("total:Energy", 3.6e6)}
	asked := map[string]int{}
	for _, w := range answers {
		column := w.Columns[len(w.Columns)-1]
		if column == "measured_jobs" {
			if n := w.sum(column); n != sums["jobs"] {
				t.Errorf("energy of %v jobs, want %v", n, sums["jobs"])
			}
			column = "kwh"
		}
		asked[strings.Join(w.Columns, " ")]++
		if strings.Join(w.Columns, " ") == "user_id core_hours" {
			if len(w.Rows) != 10 || w.sum(column) >= sums[column] {
				t.Errorf("the ten users with the most: %v", w.Rows)
			}
			continue
		}
		if got := w.sum(column); got < sums[column]*(1-1e-9) || got > sums[column]*(1+1e-9) || got == 0 {
			t.Errorf("%v add up to %v, want %v", w.Columns, got, sums[column])
		}
	}
	if want := map[string]int{"month user_id core_hours": 2, "group_id core_hours": 1, "user_id core_hours": 1, "month state jobs": 1, "month kwh measured_jobs": 1}; !maps.Equal(asked, want) {
		t.Errorf("the README asks %v, want %v", asked, want)
	}
}
