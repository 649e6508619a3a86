package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each end-to-end test is in one suite, so that "all" is all and no change is overlooked.
func TestSuites_EachTest_IsInExactlyOne(t *testing.T) {
	t.Chdir("../..")
	var folders []string
	owners := map[string][]string{}
	for _, s := range suites {
		tests, err := s.listTests()
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) == 0 {
			t.Errorf("suite %s has no test", s.name)
		}
		for _, test := range tests {
			owners[test] = append(owners[test], s.name)
		}
		folders = append(folders, s.folder)
		for _, pattern := range s.core {
			if top, _, _ := strings.Cut(pattern, "/"); !slices.Contains(tests, top) {
				t.Errorf("suite %s: the core has %s, which is not a test of it", s.name, top)
			}
		}
		for _, covered := range s.covers {
			if _, err := os.Stat(covered); err != nil {
				t.Errorf("suite %s covers %s: %v", s.name, covered, err)
			}
		}
	}
	files, err := filepath.Glob("e2e/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if dir := filepath.Dir(file); dir != "e2e/check" && !slices.Contains(folders, dir) {
			t.Errorf("%s is in no suite", file)
		}
	}
	for _, folder := range folders {
		all, err := readTests(folder)
		if err != nil {
			t.Fatal(err)
		}
		for file, tests := range all {
			for _, test := range tests {
				if len(owners[test]) != 1 {
					t.Errorf("%s: %s is in the suites %v, want one", file, test, owners[test])
				}
			}
		}
	}
}

func TestReadme_NamesEachFileOfTests(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("e2e/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("e2e/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if !strings.Contains(string(text), "`"+filepath.Base(file)+"`") {
			t.Errorf("e2e/README.md lacks %s", file)
		}
	}
}

func TestSelectSuites_ByNameAndByChange_HasTheirTests(t *testing.T) {
	t.Chdir("../..")
	day := time.Unix(0, 0) // the turn of the first suite, slurm
	cores, err := selectSuites("core", nil, day)
	if err != nil || len(cores) != 1 {
		t.Fatal(cores, err)
	}
	core := cores[0]
	if !strings.Contains(core.runPattern(), "^TestPackages$") || strings.Contains(core.runPattern(), "TestHTCondor") || slices.Contains(core.setup, "kubernetes") {
		t.Errorf("core: %s, set-up %v", core.runPattern(), core.setup)
	}
	one, err := selectSuites("nomad", nil, day)
	if err != nil || len(one) != 1 || !slices.Equal(one[0].packages, []string{"./e2e"}) || !slices.Equal(one[0].setup, []string{"nomad"}) {
		t.Errorf("nomad: %+v, %v", one, err)
	}
	if _, err := selectSuites("nomat", nil, day); err == nil || !strings.Contains(err.Error(), `unknown suite "nomat"`) {
		t.Error(err)
	}
}

func TestSelectSuites_Changed_BeginWithTheCoreAndTheNewestChange(t *testing.T) {
	t.Chdir("../..")
	changed := []string{"plugins/source/htcondor/main.go", "plugins/source/nomad/main.go", "e2e/oidc_test.go", "plugins/source/slurm/main.go"}
	selected, err := selectSuites("changed", changed, time.Unix(0, 0)) // the turn of the first suite, slurm
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"^TestPackages$", "^TestNomad_EveryKindOfTask_IsCountedOnce$"},
		{"^TestBackfill_", "^TestHTCondor_Kills_CountEachRunOnce$"},
		{"^TestNomad_", "^TestOIDC_RealProvider_InChromium_LogsInAndOut$"},
	}
	if len(selected) != len(want) {
		t.Fatalf("%d parts, want %d: %+v", len(selected), len(want), selected)
	}
	seen := map[string]bool{}
	for i, s := range selected {
		for _, test := range want[i] {
			if !strings.Contains(s.runPattern(), test) {
				t.Errorf("part %d: %s lacks %s", i, s.runPattern(), test)
			}
		}
		for _, pattern := range s.patterns {
			if seen[pattern] {
				t.Errorf("%s is in two parts", pattern)
			}
			seen[pattern] = true
		}
		if strings.Contains(s.runPattern(), "TestKubernetes") {
			t.Errorf("part %d: %s", i, s.runPattern())
		}
	}
	if setup := mergeSetup(selected); !slices.Contains(setup, "oidc") || !slices.Contains(setup, "chroot") || slices.Contains(setup, "kubernetes") {
		t.Errorf("set-up %v", setup)
	}
}

// writeModule makes a module of one package with a test file.
func writeModule(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module " + module + "\n\ngo 1.26\n", "x_test.go": "package x\n\n" + source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// events returns what go test says of a module, which may fail.
func events(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatal(err)
	}
	return out
}

func TestReadResult_BrokenUnstableAndSkippedTests_AreNamed(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, `import ("os"; "testing")

func TestGood(t *testing.T) {}
func TestLater(t *testing.T) { t.Skip("later") }
func TestBroken(t *testing.T) {
	t.Run("good", func(t *testing.T) {})
	t.Run("bad", func(t *testing.T) { t.Log("before"); t.Errorf("got %d, want 4", 3) })
}
func TestUnstable(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		os.WriteFile("seen", nil, 0o600)
		t.Fatal("not yet")
	}
}
`)
	all := events(t, dir, ".")
	all = append(all, events(t, dir, "-count=1", "-run=^TestBroken$", ".")...)
	all = append(all, events(t, dir, "-count=1", "-run=^TestUnstable$", ".")...)
	var r result
	if err := r.readEvents(bytes.NewReader(all), io.Discard); err != nil {
		t.Fatal(err)
	}
	if r.Tests != 6 || r.Skipped != 1 || len(r.Failed) != 1 || len(r.Unstable) != 1 {
		t.Fatalf("%+v", r)
	}
	if f := r.Failed[0]; f.Test != "TestBroken/bad" || f.Tries != 2 || f.Failed != 2 || f.Line != "x_test.go:9: before" {
		t.Errorf("failed: %+v", f)
	}
	if f := r.Unstable[0]; f.Test != "TestUnstable" || f.Tries != 2 || f.Failed != 1 || !strings.Contains(strings.Join(f.Output, ""), "not yet") {
		t.Errorf("unstable: %+v", f)
	}
	var shown strings.Builder
	printFindings(&shown, r, []string{"-tags", "poison"})
	if want := "go test -tags poison -count 1 -run '^TestBroken$/^bad$' ./"; !strings.Contains(shown.String(), want) {
		t.Errorf("%s lacks %s", shown.String(), want)
	}
}

func TestReadResult_PanicExitAndNoBuild_AreFailuresWithTheirLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, line string }{
		{"panic", "import \"testing\"\n\nfunc TestX(t *testing.T) { var m map[string]int; m[\"a\"] = 1 }\n", "panic: assignment to entry in nil map"},
		{"exit", "import (\"os\"; \"testing\")\n\nfunc TestX(t *testing.T) { print(\"fatal error: bad\\n\"); os.Exit(3) }\n", "fatal error: bad"},
		{"build", "import \"testing\"\n\nfunc TestX(t *testing.T) { missing() }\n", "undefined: missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r result
			if err := r.readEvents(bytes.NewReader(events(t, writeModule(t, c.source), ".")), io.Discard); err != nil {
				t.Fatal(err)
			}
			if len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Line, c.line) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestUsefulLine_OfARace_NamesThePlace(t *testing.T) {
	t.Parallel()
	output := []string{"==================\n", "WARNING: DATA RACE\n", "Write at 0x1 by goroutine 9:\n", "  runtime.mapassign()\n",
		"      /usr/local/go/src/runtime/map.go:1 +0x0\n", "  " + module + "/a.f()\n", "      /home/x/a/f.go:12 +0x0\n", "    testing.go:1712: race detected\n"}
	if got, want := usefulLine(output), "WARNING: DATA RACE at a/f.go:12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChoosePackages_OfChangedFiles_HasTheirImporters(t *testing.T) {
	t.Parallel()
	tests := []string{"x_test.go"}
	packages := []goPackage{
		{ImportPath: module + "/a", TestGoFiles: tests},
		{ImportPath: module + "/b", TestGoFiles: tests, Imports: []string{module + "/a"}},
		{ImportPath: module + "/c", XTestGoFiles: tests, XTestImports: []string{module + "/a"}},
		{ImportPath: module + "/d", TestGoFiles: tests, Imports: []string{module + "/b"}},
		{ImportPath: module + "/e", Imports: []string{module + "/a"}},
		{ImportPath: module + "/plugins/host", TestGoFiles: tests},
		{ImportPath: module + "/plugins/sdk", TestGoFiles: tests, Imports: []string{module + "/a"}},
		{ImportPath: module + "/agent/internal/run", TestGoFiles: tests},
	}
	always, others := choosePackages(packages, []string{"README.md", "c/x.go", "a/testdata/x.json", "c/y.go", "agent/internal/run/x.go"})
	if want := []string{"./agent/internal/run", "./plugins/sdk", "./plugins/host"}; !slices.Equal(always, want) {
		t.Errorf("always %v, want %v", always, want)
	}
	if want := []string{"./c", "./a", "./b"}; !slices.Equal(others, want) {
		t.Errorf("others %v, want %v", others, want)
	}
}

// What has no time left is named, a part that fails does not hide the next ones, and the
// first part runs whatever time is left.
func TestTestRun_Parts_AreAddedUpOrNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	gotestsum := filepath.Join(t.TempDir(), "gotestsum")
	script := `#!/bin/sh
while [ "$1" != --jsonfile ]; do shift; done
echo '{"Action":"'"$WORD"'","Package":"x","Test":"T'$$'"}' >"$2"
test "$WORD" = pass
`
	if err := os.WriteFile(gotestsum, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	for _, c := range []struct {
		word          string
		budget        time.Duration
		tests, failed int
		leftOut       []string
	}{
		{"pass", 0, 3, 0, nil},
		{"fail", time.Hour, 3, 3, nil},
		{"pass", time.Nanosecond, 1, 0, []string{"b", "c", "d"}},
	} {
		t.Setenv("WORD", c.word)
		run := testRun{step: "race", parts: []testPart{{names: []string{"a"}}, {names: []string{"b", "c"}}, {names: []string{"d"}}}, budget: c.budget}
		if err := run.runParts(t.Context(), gotestsum); (err != nil) != (c.failed > 0) {
			t.Error(err)
		}
		r, _, err := readStepResult("race")
		if err != nil || r.Tests != c.tests || len(r.Failed) != c.failed || !slices.Equal(r.LeftOut, c.leftOut) {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}

func TestRunSteps_OneFails_OthersRunAndTheEndSaysSo(t *testing.T) {
	t.Chdir(t.TempDir())
	shell := func(name, script string) step {
		return step{name: name, command: []string{"sh", "-c", script}, limit: time.Minute}
	}
	steps := []step{shell("lint", "echo bad word; exit 1"), shell("late", "touch late"), shell("e2e", "test -e set-up")}
	if err := runSteps(t.Context(), steps, shell("set-up", "touch set-up")); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat("late"); err != nil {
		t.Error("the step after the failed one did not run:", err)
	}
	if err := runSteps(t.Context(), steps[1:], shell("set-up", "touch set-up")); err != nil {
		t.Error(err)
	}
	build := shell("build", "exit 1")
	build.needed = true
	if err := runSteps(t.Context(), []step{build, shell("next", "touch next")}, shell("set-up", "sleep 600")); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat("next"); err == nil {
		t.Error("a tree that does not build was tested")
	}
}

func TestRunSteps_StepBeside_BeginsAfterTheSetUpAndFailsTheCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	shell := func(name, script string) step {
		return step{name: name, command: []string{"sh", "-c", script}, limit: time.Minute}
	}
	beside := func(script string) step {
		s := shell("e2e", script)
		s.beside = true
		return s
	}
	wait := func(file string) string { return "until test -e " + file + "; do sleep 0.01; done" }
	steps := []step{
		shell("lint", "touch linted"),
		beside("test -e set-up && touch began && " + wait("tested")),
		shell("test", wait("began")+"; touch tested"),
	}
	if err := runSteps(t.Context(), steps, shell("set-up", wait("linted")+"; touch set-up")); err != nil {
		t.Error(err)
	}
	steps[1] = beside("exit 1")
	steps[2] = shell("test", "true")
	if err := runSteps(t.Context(), steps, shell("set-up", "true")); err == nil {
		t.Error("no error")
	}
}

func TestStep_OfALateCheck_StillHasABudget(t *testing.T) {
	s := step{name: "race", command: []string{"make", "race"}, until: 20 * time.Minute}
	for since, want := range map[time.Duration]string{5 * time.Minute: "BUDGET=900s", time.Hour: "BUDGET=1s"} {
		if got := s.withBudget(time.Now().Add(-since)).command; !slices.Equal(got, []string{"make", "race", want}) {
			t.Errorf("after %s: %q", since, got)
		}
	}
	s.until = 0
	if got := s.withBudget(time.Now()).command; len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestStep_LongerThanItsLimit_IsKilledAndSaysSo(t *testing.T) {
	t.Chdir(t.TempDir())
	o := step{name: "x", command: []string{"sh", "-c", "sleep 600 & wait"}, limit: 100 * time.Millisecond}.run(t.Context(), io.Discard)
	if o.err == nil || !strings.Contains(o.err.Error(), "did not end within 100ms") {
		t.Error(o.err)
	}
}
