package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// suite is a part of the end-to-end tests that can be asked for alone.
type suite struct {
	name   string
	folder string   // relative to the top
	tests  []string // beginnings of the names of its tests; none means all of the folder
	core   []string // what of it is in the core, as patterns of -run
	setup  []string // the parts of e2e/setup.sh that it needs
	covers []string // folders whose changes it looks at, beside its own test files
	asked  bool     // it is run only when it is asked for, or all are
}

// suites has each end-to-end test in one suite.
var suites = []suite{
	{
		name: "slurm", folder: "e2e", setup: []string{"host", "chroot", "python"},
		tests:  []string{"TestSlurm_", "TestBackfill_", "TestEpilogs_", "TestPriority_"},
		core:   []string{"TestSlurm_EachVersion_IsAccountedAsItIs/22.05"},
		covers: []string{"plugins/source/slurm", "plugins/source/slurm-epilog", "plugins/action/priority", "plugins/mapping", "plugins/internal"},
	},
	{
		name: "gridengine", folder: "e2e", setup: []string{"gridengine"},
		tests:  []string{"TestGridEngine_", "TestClusterAccountant_"},
		core:   []string{"TestGridEngine_EveryKindOfJob_IsOneRecord"},
		covers: []string{"plugins/source/gridengine", "plugins/internal/follow", "aggregator/internal/compat"},
	},
	{
		name: "htcondor", folder: "e2e", setup: []string{"htcondor", "python"},
		tests:  []string{"TestHTCondor_"},
		covers: []string{"plugins/source/htcondor", "plugins/internal/follow"},
	},
	{
		name: "nomad", folder: "e2e", setup: []string{"nomad"},
		tests:  []string{"TestNomad_"},
		core:   []string{"TestNomad_EveryKindOfTask_IsCountedOnce"},
		covers: []string{"plugins/source/nomad", "plugins/source/ai4", "plugins/internal/journal"},
	},
	{
		name: "kubernetes", folder: "e2e", setup: []string{"kubernetes", "browser"},
		tests:  []string{"TestKubernetes_"},
		covers: []string{"plugins/source/kubernetes", "plugins/internal/journal"},
	},
	{
		name: "auditor", folder: "e2e", setup: []string{"host", "python"},
		tests:  []string{"TestAuditor", "TestReceiver_", "TestImportAuditor_", "TestTardis_", "TestMoving_", "TestConfigConvert_"},
		core:   []string{"TestAuditorClient_Unmodified_Works"},
		covers: []string{"plugins/source/auditor", "plugins/source/receiver", "aggregator/internal/convert", "aggregator/internal/api", "proto/auditor", "proto/wire"},
	},
	{
		name: "auditor-server", folder: "e2e", setup: []string{"host", "auditor"}, asked: true, // it takes an hour
		tests: []string{"TestRealAuditor_", "TestImportMillion_"},
	},
	{
		name: "actions", folder: "e2e", setup: []string{"host", "python", "s3"},
		tests:  []string{"TestAlert_", "TestAPEL_", "TestArchive_", "TestBucket_", "TestEnergy_", "TestReport_", "TestRunOn_", "TestWebhook_", "TestThirdParty_Action"},
		covers: []string{"plugins/action", "plugins/filestore", "plugins/sdk", "plugins/host", "aggregator/internal/action", "aggregator/internal/report"},
	},
	{
		name: "warehouse", folder: "e2e", setup: []string{"clickhouse"},
		tests:  []string{"TestWarehouse_"},
		covers: []string{"plugins/action/warehouse", "aggregator/packaging/grafana"},
	},
	{
		name: "access", folder: "e2e", setup: []string{"host", "browser", "oidc"},
		tests:  []string{"TestCertificates_", "TestJoin_", "TestLocalUser_", "TestOIDC_", "TestSetUp_"},
		covers: []string{"aggregator/internal/access", "aggregator/internal/enrol", "aggregator/internal/login", "proto/identity", "proto/join"},
	},
	{
		name: "daemons", folder: "e2e",
		tests:  []string{"TestAgent_", "TestAggregator_", "TestBuffer_", "TestCluster_Restored", "TestDisk_", "TestFolder_", "TestReadme_", "TestReplay_", "TestThirdParty_Source"},
		core:   []string{"TestReadme_CommandsInTheDemo_ExitWithZero"},
		covers: []string{"README.md", "agent", "plugins/host", "plugins/source/replay", "aggregator/internal/cli", "aggregator/internal/cluster", "aggregator/internal/daemon", "aggregator/internal/ingest", "aggregator/internal/store"},
	},
	{
		name: "faults", folder: "e2e/faults",
		core:   []string{"TestSite_Faults_CountEachRecordOnce"},
		covers: []string{"agent", "aggregator/internal/action", "aggregator/internal/api", "aggregator/internal/cluster", "aggregator/internal/ingest", "aggregator/internal/membership", "aggregator/internal/store"},
	},
	{
		name: "packages", folder: "e2e/packages", setup: []string{"host", "packages"},
		tests:  []string{"TestPackages"},
		core:   []string{"TestPackages/(dnf_installs|dpkg_installs|a_job_of)"},
		covers: []string{"agent/packaging", "aggregator/packaging"},
	},
	{
		name: "images", folder: "e2e/packages", setup: []string{"kubernetes"},
		tests:  []string{"TestImages"},
		covers: []string{"agent/packaging/images", "aggregator/packaging/containers"},
	},
	{
		name: "pages", folder: "e2e/pages", setup: []string{"browser"},
		core:   []string{"TestPages_InABrowser_ShowWhatIsCounted"},
		covers: []string{"aggregator/internal/web", "aggregator/internal/report", "aggregator/packaging", "agent/packaging"},
	},
	{
		name: "rig", folder: "e2e/rig", setup: []string{"host", "chroot", "gridengine", "htcondor", "python"},
		covers: []string{"e2e/rig"},
	},
	{
		name: "runbooks", folder: "e2e/runbooks",
		covers: []string{"aggregator/RUNBOOKS.md", "aggregator/internal/cluster", "aggregator/internal/membership", "aggregator/internal/store"},
	},
}

// selection are end-to-end tests that run together.
type selection struct {
	names    []string // of the suites, for people
	packages []string
	patterns []string // of -run
	setup    []string
}

func (s *selection) addSuite(suite suite, patterns []string) {
	s.names = append(s.names, suite.name)
	s.patterns = append(s.patterns, patterns...)
	if folder := "./" + suite.folder; !slices.Contains(s.packages, folder) {
		s.packages = append(s.packages, folder)
	}
	for _, part := range suite.setup {
		if !slices.Contains(s.setup, part) {
			s.setup = append(s.setup, part)
		}
	}
}

// runPattern returns the value of -run.
func (s *selection) runPattern() string {
	patterns := slices.Clone(s.patterns)
	for i, p := range patterns {
		top, sub, nested := strings.Cut(p, "/")
		patterns[i] = "^" + top + "$"
		if nested {
			patterns[i] += "/" + sub
		}
	}
	slices.Sort(patterns)
	return strings.Join(slices.Compact(patterns), "|")
}

// selectSuites returns the tests of which: "core", "all", "changed", or the names of
// suites, divided by commas. All but "changed" are one selection.
func selectSuites(which string, changed []string, today time.Time) ([]selection, error) {
	var wanted []string
	switch which {
	case "core":
	case "changed":
		return selectChangedSuites(changed, today)
	case "all":
		for _, s := range suites {
			wanted = append(wanted, s.name)
		}
	default:
		wanted = strings.Split(which, ",")
		if err := checkSuiteNames(wanted); err != nil {
			return nil, err
		}
	}
	s, err := selectTogether(wanted, which == "core")
	return []selection{s}, err
}

// selectTogether returns the suites of these names and, if so asked, the core of the others.
func selectTogether(names []string, withCore bool) (selection, error) {
	var s selection
	for _, one := range suites {
		switch {
		case slices.Contains(names, one.name):
			tests, err := one.listTests()
			if err != nil {
				return s, err
			}
			s.addSuite(one, tests)
		case withCore && len(one.core) > 0:
			s.addSuite(one, one.core)
		}
	}
	return s, nil
}

// selectChangedSuites returns first the core, then one suite by turn of the day and the suites
// whose tests or covered folders are in changed, two at a time, in its order.
func selectChangedSuites(changed []string, today time.Time) ([]selection, error) {
	turns := slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return s.asked })
	turn := turns[int(today.Unix()/86400)%len(turns)].name
	first, err := selectTogether(nil, true)
	if err != nil {
		return nil, err
	}
	places := map[string]int{}
	for _, s := range turns {
		if i := s.firstChange(changed); i >= 0 && s.name != turn {
			places[s.name] = i
		}
	}
	names := append([]string{turn}, slices.SortedFunc(maps.Keys(places), func(a, b string) int {
		return cmp.Or(cmp.Compare(places[a], places[b]), strings.Compare(a, b))
	})...)
	selected := []selection{first}
	for pair := range slices.Chunk(names, 2) {
		s, err := selectTogether(pair, false)
		if err != nil {
			return nil, err
		}
		s.patterns = slices.DeleteFunc(s.patterns, func(test string) bool { return slices.Contains(first.patterns, test) })
		selected = append(selected, s)
	}
	return selected, nil
}

// mergeSetup returns what the set-up of all selections needs.
func mergeSetup(selected []selection) []string {
	var parts []string
	for _, s := range selected {
		parts = append(parts, s.setup...)
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

func checkSuiteNames(names []string) error {
	var known []string
	for _, s := range suites {
		known = append(known, s.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown suite %q: use core, all, changed or some of %s", name, strings.Join(known, ","))
		}
	}
	return nil
}

// firstChange returns the place of the first of files that belongs to the suite or to what
// it covers; -1 if none does.
func (s suite) firstChange(files []string) int {
	own, err := s.testFiles()
	if err != nil {
		return 0
	}
	return slices.IndexFunc(files, func(file string) bool {
		return own[file] != nil || len(s.tests) == 0 && path.Dir(file) == s.folder ||
			slices.ContainsFunc(s.covers, func(c string) bool { return file == c || strings.HasPrefix(file, c+"/") })
	})
}

func (s suite) listTests() ([]string, error) {
	files, err := s.testFiles()
	var tests []string
	for _, names := range files {
		tests = append(tests, names...)
	}
	slices.Sort(tests)
	return tests, err
}

// testFiles returns the tests of the suite by the file that has them.
func (s suite) testFiles() (map[string][]string, error) {
	all, err := readTests(s.folder)
	if err != nil {
		return nil, err
	}
	own := map[string][]string{}
	for file, tests := range all {
		for _, test := range tests {
			if s.hasTest(test) {
				own[file] = append(own[file], test)
			}
		}
	}
	return own, nil
}

func (s suite) hasTest(test string) bool {
	return len(s.tests) == 0 || slices.ContainsFunc(s.tests, func(begin string) bool { return strings.HasPrefix(test, begin) })
}

// readTests returns the names of the tests in a folder, by file.
func readTests(folder string) (map[string][]string, error) {
	names, err := filepath.Glob(folder + "/*_test.go")
	if err != nil {
		return nil, err
	}
	tests := map[string][]string{}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[name] = append(tests[name], f.Name.Name)
			}
		}
	}
	return tests, nil
}
