package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/proto/identity"
)

var update = flag.Bool("update", false, "rewrite golden files")

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}

func TestBadFilesReportEveryProblemWithItsPlace(t *testing.T) {
	for _, name := range glob(t, "testdata/*.bad.hcl") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			_, _, diags := config.Load(name)
			if !diags.HasErrors() {
				t.Fatal("no error")
			}
			golden := strings.TrimSuffix(name, ".hcl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(diags.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), diags.Error()+"\n"); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestGoodFilesAndShippedExamplesLoadWithoutAWord(t *testing.T) {
	files := append(glob(t, "testdata/*.good.hcl"), glob(t, "../../../hcl/examples/aggregator*.hcl")...)
	for _, name := range files {
		for how, load := range map[string]func(...string) (*config.Config, error){
			"here": func(p ...string) (*config.Config, error) { c, _, d := config.Load(p...); return c, anyOf(d) },
			"off":  func(p ...string) (*config.Config, error) { c, _, d := config.LoadOffline(p...); return c, anyOf(d) },
		} {
			if _, err := load(name); err != nil {
				t.Errorf("%s (%s): %v", name, how, err)
			}
		}
	}
}

// In the place of an AUDITOR, what an AUDITOR answers everyone is answered.
func TestExample_InPlaceOfAuditor_AnswersEachOfItsRoutes(t *testing.T) {
	c, _, diags := config.Load("../../../hcl/examples/aggregator-auditor.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	given, routes := c.Rules().Plain, access.Routes()
	for _, route := range []string{"GET /health_check", "GET /metrics", "POST /record", "PUT /record", "POST /records", "GET /records", "GET /record/{record_id}"} {
		if need, known := routes[route]; !known || !need.Open && !given.Any(need.Rights) {
			t.Errorf("%s takes %s, and %s are given", route, need.Rights, given)
		}
	}
}

// anyOf makes an error of warnings, too.
func anyOf[D interface {
	~[]E
	error
}, E any](d D) error {
	if len(d) == 0 {
		return nil
	}
	return d
}

func TestWhatIsNotWrittenHasAWorkingDefault(t *testing.T) {
	c, _, diags := config.Load("testdata/small.good.hcl")
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	a := c.Aggregator
	got := []any{len(a.API.Listen), a.API.Listen[0].String(), len(a.API.TLSListen), a.API.MaxBody.Bytes, a.API.Patience.Duration, a.API.IgnoreRecordExists, a.Metrics.Frequency.Duration, a.Metrics.SiteKey.Value, len(c.Agents)}
	want := []any{1, "127.0.0.1:8000", 0, int64(64 << 20), 25 * time.Second, false, 30 * time.Second, "", 0}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBackupsHaveADefaultForEverythingButTheirPlace(t *testing.T) {
	load := func(block string) *config.Backup {
		name := filepath.Join(t.TempDir(), "a.hcl")
		if err := os.WriteFile(name, []byte("aggregator {\n name = \"a\"\n data_dir = \"/d\"\n"+block+"\n}"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.Load(name)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		return c.Aggregator.Backup
	}
	if b := load(""); b != nil {
		t.Errorf("backups without a word: %+v", b)
	}
	if b := load("backup { path = \"/b\" }"); b.Path.Path != "/b" || b.Every.Duration != 24*time.Hour || b.Keep != 7 {
		t.Errorf("%+v", b)
	}
	if b := load("backup {\n path = \"/b\"\n every = \"90m\"\n keep = 2\n}"); b.Every.Duration != 90*time.Minute || b.Keep != 2 {
		t.Errorf("%+v", b)
	}
}

func TestADirectoryForBackupsThatIsMissingIsAWarningWithTheCommandThatMakesIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.hcl")
	text := "aggregator {\n name = \"a\"\n data_dir = \"/d\"\n backup { path = \"missing\" }\n}"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, diags := config.Load(name)
	diags.Extend(c.Check())
	if diags.HasErrors() || !strings.Contains(diags.Error(), "a.hcl:4:18: warning: no backups can be made") || !strings.Contains(diags.Error(), "install -d -o bursar -g bursar -m 0750 "+filepath.Dir(name)+"/missing") {
		t.Error(diags.Error())
	}
}

func TestLoad_PriceOfEnergy_WarnsWhereItIsOfNoUse(t *testing.T) {
	const head = "aggregator {\n name = \"a\"\n data_dir = \"/d\"\n}\nprice \"p\" {\n currency = \"EUR\"\n per \"energy\" { unit = \"0.3\" }\n per \"co2\" { %s = \"0.1\" }\n}\n"
	const energy = "energy {\n class \"all\" {\n per \"Cores\" { watts = \"4\" }\n }\n}\n"
	for text, want := range map[string]string{
		fmt.Sprintf(head, "unit") + energy: "",
		fmt.Sprintf(head, "unit"):          `a.hcl:7:2: warning: price of a component; without a block energy this is the price of a component of records that is called "energy"`,
		fmt.Sprintf(head, "hour") + energy: `a.hcl:8:2: warning: price that nothing has; co2 is counted in kg CO2e: write unit, the price of 1 kg CO2e, in place of hour`,
	} {
		name := filepath.Join(t.TempDir(), "a.hcl")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, diags := config.Load(name); diags.HasErrors() || !strings.Contains(diags.Error(), want) || want == "" && len(diags.Warnings()) > 0 {
			t.Errorf("want %q: %s", want, diags.Error())
		}
	}
}

func TestCheckMachine_DirectoryForBackupsThatCannotBeMade_IsAnError(t *testing.T) {
	for path, wrong := range map[string]bool{"a.hcl": true, "a.hcl/b": true, "missing": false, ".": false} {
		dir := t.TempDir()
		name := filepath.Join(dir, "a.hcl")
		text := fmt.Sprintf("aggregator {\n name = \"a\"\n data_dir = \"data\"\n api { listen = [\"127.0.0.1:0\"] }\n backup { path = %q }\n}", path)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.Load(name)
		diags.Extend(c.Check())
		if diags.HasErrors() {
			t.Fatalf("%s keeps the node from serving: %v", path, diags)
		}
		if found := c.CheckMachine(t.Context(), dir); found.HasErrors() != wrong || wrong && !strings.Contains(found.Error(), "a.hcl:5:18: ") {
			t.Errorf("%s: %v", path, found)
		}
	}
}

func TestARelativePathCountsFromItsFile(t *testing.T) {
	c, _, _ := config.Load("testdata/alone.good.hcl")
	if got := c.Aggregator.DataDir.Path; got != "testdata/data" {
		t.Error(got)
	}
}

// written makes a configuration with an agent and certificates of a role.
func written(t *testing.T, role identity.Role) *config.Config {
	t.Helper()
	dir := t.TempDir()
	if _, err := identity.CreateCA(dir, "test", identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.CreateCert(dir, dir, identity.Request{Identity: identity.Identity{Role: role, Name: "x"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "aggregator.hcl")
	text := "aggregator {\n  name = \"x\"\n  data_dir = \"data\"\n  tls {\n    ca = \"ca.pem\"\n    cert = \"x.pem\"\n    key = \"x.key\"\n  }\n}\nagent \"h\" { address = \"h:1\" }\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, diags := config.Load(name)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCertificatesThatAgentsWouldRefuseAreReported(t *testing.T) {
	if err := written(t, identity.Aggregator).Check().Err(); err != nil {
		t.Error(err)
	}
	err := written(t, identity.Client).Check().Err()
	if err == nil || !strings.Contains(err.Error(), "aggregator.hcl:6:12: wrong certificate") {
		t.Error(err)
	}
}

func TestFilesThatAreMissingAreReportedAtTheirPlace(t *testing.T) {
	c := written(t, identity.Aggregator)
	if err := os.Remove(c.Files().Key); err != nil {
		t.Fatal(err)
	}
	if err := c.Check().Err(); err == nil || !strings.Contains(err.Error(), "aggregator.hcl:7:11") {
		t.Error(err)
	}
}

func TestAReloadNamesWhatItCannotTakeOver(t *testing.T) {
	load := func(text string) *config.Config {
		name := filepath.Join(t.TempDir(), "a.hcl")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.Load(name)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	a := load("aggregator {\n name = \"a\"\n data_dir = \"/d\"\n}")
	if got := a.NeedRestart(load("aggregator {\n name = \"a\"\n data_dir = \"/d\"\n log { level = \"debug\" }\n}")); got != nil {
		t.Error("the level of the log needs a restart:", got)
	}
	got := a.NeedRestart(load("aggregator {\n name = \"a\"\n data_dir = \"/e\"\n api {\n  listen = [\"127.0.0.1:1\"]\n  patience = \"1s\"\n }\n metrics {\n  site_meta_key = \"s\"\n  frequency = \"5s\"\n }\n}"))
	if d := cmp.Diff([]string{"data_dir", "api.listen", "api.patience", "metrics.frequency"}, got); d != "" {
		t.Error(d)
	}
}

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.hcl", "../../../hcl/examples/aggregator*.hcl"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(dir, "fuzz.hcl")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.LoadOffline(name)
		if !diags.HasErrors() && c.Aggregator.Name.Value == "" {
			t.Error("a node without a name was accepted")
		}
	})
}
