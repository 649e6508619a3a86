package convert_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/convert"
	"github.com/bursar-accounting/bursar/hcl"
)

var update = flag.Bool("update", false, "write what files become to testdata")

var now = time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC)

// examples are the files of testdata, which are converted together where they are in one
// folder.
func examples(t *testing.T) map[string][]convert.Input {
	t.Helper()
	out := map[string][]convert.Input{}
	paths, _ := filepath.Glob("testdata/*.yml")
	more, _ := filepath.Glob("testdata/*/*")
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(path, ".yml")
		if filepath.Dir(path) != "testdata" {
			name = filepath.Dir(path)
		}
		out[name] = append(out[name], convert.Input{Name: path, Text: text})
	}
	if len(out) < 10 {
		t.Fatal("only", len(out))
	}
	return out
}

// written is a result as a file of testdata.
func written(r *convert.Result) string {
	text := r.Agent + r.Aggregator
	for _, c := range r.Changes {
		text += fmt.Sprintf("# %s | %s | %s | %s\n", c.File, c.Setting, c.Before, c.Now)
	}
	return text
}

func TestFiles_Examples_BecomeValidHCL(t *testing.T) {
	for name, inputs := range examples(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, err := convert.Files(now, inputs...)
			if err != nil || len(got.Problems) > 0 {
				t.Fatal(err, got.Problems)
			}
			if *update {
				if err := os.WriteFile(name+".hcl", []byte(written(got)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".hcl")
			if diff := cmp.Diff(string(want), written(got)); diff != "" || err != nil {
				t.Error(err, diff)
			}
			if strings.Contains(written(got), "hunter2") {
				t.Error("a password is shown")
			}
			if got.Aggregator == "" {
				return
			}
			path := filepath.Join(t.TempDir(), "aggregator.hcl")
			if err := os.WriteFile(path, []byte(got.Aggregator), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, diags := config.LoadOffline(path); diags.HasErrors() {
				t.Error(diags)
			}
		})
	}
}

// A file that cannot be converted is named, and those beside it are converted as if it were
// not there.
func TestFiles_Bad_AreNamedAndTheRestIsConverted(t *testing.T) {
	good, err := os.ReadFile("testdata/server-plain.yml")
	if err != nil {
		t.Fatal(err)
	}
	rest := convert.Input{Name: "server.yml", Text: good}
	want, err := convert.Files(now, rest)
	if err != nil {
		t.Fatal(err)
	}
	var bad []convert.Input
	for says, in := range map[string]convert.Input{
		"a.yml: it sets nothing: all of its lines are comments": {Name: "a.yml", Text: []byte("# addr: x\n")},
		"b.yml: unknown configuration":                          {Name: "b.yml", Text: []byte("colour: blue\n")},
		"c.yml: yaml: line 2":                                   {Name: "c.yml", Text: []byte("\na: [\n")},
		"slurm.yml: line 4: component Cores: score x has no":    {Name: "slurm.yml", Text: []byte("components:\n  - name: Cores\n    key: NCPUS\n    scores: [{name: x}]\n")},
		"tables.sql: no INSERT statement":                       {Name: "tables.sql", Text: []byte("create table x (a int);")},
		"d/tables.sql: line 2":                                  {Name: "d/tables.sql", Text: []byte("\ninsert into project values (1,2,3,4);")},
		"e.sql: line 2: processor_type: the regex":              {Name: "e.sql", Text: []byte("\ninsert into processor_type values (1,'2010-01-01','(','old',8,4,1.0,'katana',FALSE);")},
		"access.conf: no line names a group":                    {Name: "access.conf", Text: []byte("- : ALL : ALL\n")},
		"user-db.json: line 3: invalid character":               {Name: "user-db.json", Text: []byte("{\n\nx")},
	} {
		for _, inputs := range [][]convert.Input{{in}, {in, rest}, {rest, in}} {
			got, err := convert.Files(now, inputs...)
			if err != nil || len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0].String(), says) {
				t.Fatalf("%v %v, want %s", err, got, says)
			}
			if len(inputs) == 2 && written(got) != written(want) || len(inputs) == 1 && written(got) != "" {
				t.Errorf("%s: the rest is %s", says, written(got))
			}
		}
		bad = append(bad, in)
	}
	if got, err := convert.Files(now, append(bad, rest)...); err != nil || len(got.Problems) != len(bad) || written(got) != written(want) {
		t.Error(err, got)
	}
}

// Statements and settings that are not understood are named with their lines, and without
// what they set; all others are not.
func TestFiles_NotUnderstood_AreNamedWithTheirLines(t *testing.T) {
	for _, c := range []struct {
		in   convert.Input
		want []string
	}{
		{convert.Input{Name: "conf.py", Text: []byte("import nomad\n# NAMESPACES.append('no')\nNAMESPACES = [\n  'a',\n  'b'\n]\nNAMESPACES.append('c')\nif late:\n  NAMESPACES.remove('x')\nKEY = 'hunter2'\nprint(1)\n")},
			[]string{"line 7: statement not understood: NAMESPACES.append('c')", "line 8: statement not understood: if late:", "line 10: statement not understood: KEY =…"}},
		{convert.Input{Name: "env", Text: []byte("export NOMAD_ADDR=https://$HOST:4646 # x\nA=1; export NOMAD_REGION=hunter2\nexport NOMAD_CACERT=\"/ca\"\nNOMAD_HTTP_AUTH\npython3 x.py\n")},
			[]string{"line 1: NOMAD_ADDR is made of variables: write its value as address", "line 2: statement not understood: A=…", "line 4: statement not understood: NOMAD_HTTP_AUTH"}},
		{convert.Input{Name: "access.conf", Text: []byte("# x\n+ : (bell) root : ALL\n- : mallory : ALL\n+ : ALL EXCEPT sagan : ALL\n+ : @net : ALL\n+:chem:2001:db8::1\n-:ALL:ALL\n")},
			[]string{"line 3: statement not understood: - : mallory : ALL", "line 4: statement not understood: + : ALL EXCEPT sagan : ALL", "line 5: statement not understood: + : @net : ALL", "line 6: statement not understood: +:chem:2001:db8::1"}},
		{convert.Input{Name: "t.sql", Text: []byte("SET x=1;\nCREATE TABLE `jobs` (a int);\ninsert into accounting values (1);\nINSERT INTO jobs VALUES (1);\ninsert into jobs values ('hunter2');\ninsert into project values (1,'bell','g');\nUPDATE project SET groupid = 'hunter2';\n")},
			[]string{"line 4: statement not understood: insert into jobs", "line 7: statement not understood: update"}},
		{convert.Input{Name: "server.yml", Text: []byte("application:\n  port: 8000\n  colour: hunter2\nmetrics:\n  database:\n    whom:\n      - hunter2\n")},
			[]string{`line 3: unknown setting "application.colour"`, `line 6: unknown setting "metrics.database.whom"`}},
	} {
		got, err := convert.Files(now, c.in)
		if err != nil {
			t.Fatal(err)
		}
		var problems []string
		for _, p := range got.Problems {
			text, named := strings.CutPrefix(p.String(), c.in.Name+": ")
			if problems = append(problems, text); !named || strings.Contains(text, "hunter2") {
				t.Error(p)
			}
		}
		if diff := cmp.Diff(c.want, problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in.Name, diff)
		}
	}
}

// AUDITOR's server reads base, then local or production, then the file that it is given.
func TestFiles_OfOneServer_AreOneConfiguration(t *testing.T) {
	base := convert.Input{Name: "c/base.yaml", Text: []byte("application:\n  addr: 127.0.0.1\n  port: 8000\ndatabase:\n  host: localhost\n  password: hunter2\nsecret_of_later_versions: hunter2\n")}
	production := convert.Input{Name: "c/production.yaml", Text: []byte("application:\n  port: 8010\n")}
	given := convert.Input{Name: "auditor.yaml", Text: []byte("database:\n  host: db.example.org\n")}
	for _, inputs := range [][]convert.Input{{base, production, given}, {given, production, base}} {
		got, err := convert.Files(now, inputs...)
		if err != nil || len(got.Problems) != 1 || got.Problems[0].String() != `c/base.yaml: line 7: unknown setting "secret_of_later_versions"` {
			t.Fatal(err, got)
		}
		for _, want := range []string{"# Of base.yaml, production.yaml, auditor.yaml: what is in a later one wins.", `"127.0.0.1:8010"`, "db.example.org"} {
			if strings.Count(got.Aggregator, want) != 1 {
				t.Errorf("no %s in\n%s", want, got.Aggregator)
			}
		}
		if strings.Count(got.Aggregator, "api {") != 1 || strings.Contains(written(got), "hunter2") {
			t.Error(written(got))
		}
	}
	local := convert.Input{Name: "c/local.yaml", Text: []byte("application:\n  port: 1\n")}
	got, err := convert.Files(now, base, production, local)
	if err != nil || len(got.Problems) != 2 || !strings.HasPrefix(got.Problems[0].String(), "c/local.yaml: AUDITOR reads c/production.yaml or this one") || !strings.Contains(got.Aggregator, ":8010") {
		t.Error(err, got)
	}
}

// AUDITOR's Slurm collectors and its priority plugin read a file base before their own; those of
// several programs are given at once.
func TestFiles_BasesOfSeveralPrograms_LieUnderTheirOwn(t *testing.T) {
	in := func(name, text string) convert.Input { return convert.Input{Name: name, Text: []byte(text)} }
	good, err := os.ReadFile("testdata/priority.yml")
	if err != nil {
		t.Fatal(err)
	}
	inputs := []convert.Input{
		in("configuration/slurm_collector/base.yaml", "addr: old.example.org\nport: 8000\nrecord_prefix: old\ncolour: hunter2\n"),
		in("configuration/slurm_epilog_collector/base.yaml", "log_level: debug\nsite_id: under\n"),
		in("configuration/priority_plugin/base.yaml", string(good)),
		in("configuration/base.yaml", "application:\n  addr: 127.0.0.1\n  port: 8000\nshape: hunter2\n"),
		in("etc/slurm.yml", "record_prefix: nemo\nsmell: hunter2\ncomponents:\n  - name: Cores\n    key: NCPUS\n"),
		in("etc/slurm2.yml", "record_prefix: justus\nsmell: hunter2\ncomponents:\n  - name: Cores\n    key: NCPUS\n"),
		in("etc/epilog.yml", "site_id: hpc\nrecord_prefix: epi\ncomponents:\n  - name: Cores\n    key: NumCPUs\n"),
		in("etc/priority.yml", "min_priority: 17\n"),
		in("etc/auditor.yml", "application:\n  port: 8017\n"),
	}
	wanted := map[string]int{
		`source "slurm" "nemo"`: 1, `source "slurm" "justus"`: 1, `source "slurm" "old"`: 0, `source "slurm-epilog" "epi"`: 1, "hunter2": 0, "under": 0,
		`action "priority" "auditor"`: 1, "min = 17": 1, `"127.0.0.1:8017"`: 1,
		"# Of base.yaml, slurm.yml: what is in a later one wins.": 1, "# Of base.yaml, slurm2.yml: what is in a later one wins.": 1,
		"# Of base.yaml, epilog.yml: what is": 1, "# Of base.yaml, priority.yml: what is": 1, "# Of base.yaml, auditor.yml: what is": 1,
	}
	rng := rand.New(rand.NewPCG(1, 31))
	var problems []string
	for range 20 {
		got, err := convert.Files(now, inputs...)
		if err != nil {
			t.Fatal(err)
		}
		for text, n := range wanted {
			if strings.Count(written(got), text) != n {
				t.Errorf("%q is there %d times, want %d:\n%s", text, strings.Count(written(got), text), n, written(got))
			}
		}
		problems = nil
		for _, p := range got.Problems {
			problems = append(problems, p.String())
		}
		slices.Sort(problems)
		if diff := cmp.Diff([]string{
			`configuration/base.yaml: line 4: unknown setting "shape"`, `configuration/slurm_collector/base.yaml: line 4: unknown setting "colour"`,
			`etc/slurm.yml: line 2: unknown setting "smell"`, `etc/slurm2.yml: line 2: unknown setting "smell"`,
		}, problems); diff != "" {
			t.Fatal(diff)
		}
		rng.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
	}
}

// A file base of a client is that of the one client whose file is given; one of another place is
// named, as are blocks that come twice.
func TestFiles_BasesThatDoNotFit_AreNamed(t *testing.T) {
	in := func(name, text string) convert.Input { return convert.Input{Name: name, Text: []byte(text)} }
	const cores = "components:\n  - name: Cores\n    key: NCPUS\n"
	base, slurm := in("x/base.yml", "addr: localhost\nport: 8000\nrecord_prefix: far\n"), in("slurm.yml", cores)
	for name, c := range map[string]struct {
		inputs  []convert.Input
		problem string // "": none
	}{
		"with its file": {[]convert.Input{base, slurm}, ""},
		"alone":         {[]convert.Input{base}, "x/base.yml: the file does not say of which program it is"},
		"of two":        {[]convert.Input{base, slurm, in("epilog.yml", "site_id: x\n"+cores)}, "x/base.yml: the file does not say of which program it is"},
		"two bases":     {[]convert.Input{base, in("y/base.yml", "addr: a\n"), slurm, in("slurm2.yml", "record_prefix: b\n"+cores)}, "y/base.yml: x/base.yml is the file base of AUDITOR's Slurm collector"},
		"twice":         {[]convert.Input{slurm, in("d/slurm.yml", cores)}, `d/slurm.yml: source "slurm" "slurm" is there from another file`},
		"no score":      {[]convert.Input{in("slurm/base.yml", "port: 1\n\n"+cores+"    scores: [{name: x}]\n"), in("slurm.yml", "addr: x\n")}, "slurm/base.yml: line 6: component Cores: score x has no value"},
	} {
		got, err := convert.Files(now, c.inputs...)
		if err != nil || c.problem == "" && len(got.Problems) > 0 || c.problem != "" && (len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0].String(), c.problem)) {
			t.Errorf("%s: %v %v, want %q", name, err, got.Problems, c.problem)
		}
		if name == "with its file" && !strings.Contains(got.Agent, `source "slurm" "far"`) {
			t.Error(got.Agent)
		}
	}
}

func TestFiles_NomadSettingThatComesAgain_IsOne(t *testing.T) {
	first := convert.Input{Name: "a.sh", Text: []byte("export NOMAD_ADDR=http://old:4646\nexport NOMAD_ADDR=http://a:4646\nexport NOMAD_TOKEN=hunter2\n")}
	second := convert.Input{Name: "b.sh", Text: []byte("export NOMAD_ADDR=http://b:4646\nexport NOMAD_TOKEN=hunter2\n")}
	got, err := convert.Files(now, first, second)
	if err != nil || len(got.Problems) != 1 || got.Problems[0].String() != "b.sh: address is another one in a.sh: this one is taken" {
		t.Error(err, got.Problems)
	}
	for _, want := range []string{`"http://b:4646"`, "token_file"} {
		if strings.Count(got.Agent, want) != 1 {
			t.Error(got.Agent)
		}
	}
}

// mysqldump writes bits and binary texts with an introducer or in hexadecimal digits.
func TestFiles_TablesWithUnknownNumbersAndIntroducers_AreConverted(t *testing.T) {
	const rows = "insert into processor_type values (1,_binary '2010-01-01','^kat','old',NULL,4,1.0,_utf8mb4'katana',%s),(2,'2011-01-01','^b','odd','many',4,1.0,'b',0);"
	for bit, disabled := range map[string]bool{"_binary '\x01'": true, "0x01": true, "b'1'": true, "b'0'": false, "0x00": false, "NULL": false} {
		got, err := convert.Files(now, convert.Input{Name: "t.sql", Text: fmt.Appendf(nil, rows, bit)})
		if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].String(), "processor_qty of a row of processor_type is not a number") {
			t.Fatal(err, got)
		}
		if !strings.Contains(got.Aggregator, `"katana"`) || strings.Contains(got.Aggregator, "are disabled") != disabled || !strings.Contains(got.Aggregator, "# The processors of a node are not known: set components.") {
			t.Errorf("%s: %s", bit, got.Aggregator)
		}
	}
}

// What an alias or a merge key names is as if it stood there.
func TestFiles_Aliases_AreWhatTheirAnchorsName(t *testing.T) {
	plain := "components:\n  - name: Cores\n    key: NCPUS\n    scores:\n      - {name: HEPSPEC, value: 1.5}\n  - name: Other\n    key: NCPUS\n    scores:\n      - {name: HEPSPEC, value: 1.5}\n"
	for name, text := range map[string]string{
		"alias":   "components:\n  - name: Cores\n    key: NCPUS\n    scores: &hs\n      - {name: HEPSPEC, value: 1.5}\n  - name: Other\n    key: NCPUS\n    scores: *hs\n",
		"merge":   "components:\n  - &cores\n    name: Cores\n    key: NCPUS\n    scores:\n      - {name: HEPSPEC, value: 1.5}\n  - <<: *cores\n    name: Other\n",
		"in list": "components:\n  - name: Cores\n    key: NCPUS\n    scores:\n      - &hs {name: HEPSPEC, value: 1.5}\n  - name: Other\n    key: NCPUS\n    scores: [*hs]\n",
	} {
		want, err := convert.Files(now, convert.Input{Name: "slurm.yml", Text: []byte(plain)})
		if err != nil || len(want.Problems) > 0 || !strings.Contains(written(want), "HEPSPEC") {
			t.Fatal(err, want)
		}
		got, err := convert.Files(now, convert.Input{Name: "slurm.yml", Text: []byte(text)})
		if diff := cmp.Diff(written(want), written(got)); err != nil || diff != "" || len(got.Problems) > 0 {
			t.Errorf("%s: %v %v %s", name, err, got.Problems, diff)
		}
	}
	for text, says := range map[string]string{
		"components: &a\n  - name: Cores\n    scores: *a\n": "line 3: the anchor a contains itself",
		"a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e]\n": "the aliases make the file too large",
	} {
		got, err := convert.Files(now, convert.Input{Name: "slurm.yml", Text: []byte(text)})
		if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].String(), says) {
			t.Errorf("%v %v, want %s", err, got, says)
		}
	}
}

// A pattern that only Python knows is named, wherever it stands, and is in no file.
func TestFiles_PatternOfPython_IsNamed(t *testing.T) {
	good, err := os.ReadFile("testdata/htcondor.yml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(good), "\n")
	tried := 0
	for i, line := range lines {
		key, _, is := strings.Cut(line, "matches:")
		if !is {
			continue
		}
		tried++
		text := slices.Clone(lines)
		text[i] = key + `matches: "^(?!test)"`
		got, err := convert.Files(now, convert.Input{Name: "htcondor.yml", Text: []byte(strings.Join(text, "\n"))})
		written := func(line string) bool {
			return strings.Contains(line, "(?!") && !strings.HasPrefix(strings.TrimSpace(line), "#")
		}
		if err != nil || len(got.Problems) > 0 || slices.ContainsFunc(strings.Split(got.Agent, "\n"), written) {
			t.Errorf("%s: %v %v\n%s", line, err, got.Problems, got.Agent)
		}
		if !slices.ContainsFunc(got.Changes, func(c convert.Change) bool { return strings.Contains(c.Setting, "^(?!test)") }) {
			t.Errorf("%s: %v", line, got.Changes)
		}
	}
	if tried < 2 {
		t.Errorf("%d patterns", tried)
	}
}

func FuzzFiles(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.yml")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(path), text)
	}
	f.Add("tables.sql", []byte("insert into processor_type values (1,'2010-01-01','^kat-(a|[b-d]).*','old',8,4,1.0,'katana',FALSE);"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		got, err := convert.Files(now, convert.Input{Name: name, Text: text})
		if err != nil {
			return
		}
		for _, text := range []string{got.Agent, got.Aggregator} {
			if _, diags := hcl.FormatFile("x.hcl", []byte(text)); diags.HasErrors() {
				t.Error(diags)
			}
		}
	})
}
