package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/programtest"
)

// fakeDir names the folder of the answers of a fake command.
const fakeDir = "FAKE_CONDOR"

// TestMain makes the test's binary a command of HTCondor where it is started as one: it
// prints recorded answers of the real ones, by the few arguments that the source uses.
func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeDir); dir != "" {
		os.Exit(fake(dir, filepath.Base(os.Args[1]), os.Args[2:]))
	}
	os.Exit(m.Run())
}

// ads of a fake schedd, the newest first, with those that are not written yet.
type ads struct {
	Hidden int // how many of the newest
	Lost   int // how many of the oldest were rotated away
	Ads    []map[string]any
}

func fake(dir, command string, args []string) int {
	option := func(name string) string {
		if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	if err := noteCall(filepath.Join(dir, "calls"), append([]string{command}, args...)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := os.Stat(filepath.Join(dir, "hang")); err == nil {
		time.Sleep(time.Minute)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "fail-"+option("-name"))); err == nil {
		fmt.Fprintln(os.Stderr, string(text))
		return 1
	}
	file := map[string]string{"condor_status": "status.json", "condor_q": "q.json"}[command]
	if command == "condor_q" && option("-attributes") != "" {
		file = "census.json"
	}
	if file != "" {
		text, err := os.ReadFile(filepath.Join(dir, file))
		fmt.Print(string(text))
		return map[bool]int{true: 1}[err != nil]
	}
	name := "history-" + option("-name")
	if slices.Contains(args, "-epochs") {
		name = "epochs-" + option("-name")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error: No Job Run Instance recordings to read.")
		return 1
	}
	var all ads
	if err := json.Unmarshal(text, &all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	printAds(all.Ads[all.Hidden:len(all.Ads)-all.Lost], option, args)
	return 0
}

// noteCall adds a line with a command and its arguments to a file.
func noteCall(path string, call []string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(call, " "))
	return errors.Join(err, f.Close())
}

func printAds(list []map[string]any, option func(string) string, args []string) {
	limit, _ := strconv.Atoi(option("-limit")) // 0: none
	var out []map[string]any
	for _, ad := range list {
		if s := option("-since"); s != "" && holds(s, ad) {
			break
		}
		if c := option("-constraint"); c == "" || holds(c, ad) {
			out = append(out, ad)
		}
		if limit > 0 && len(out) == limit {
			break
		}
	}
	if i := slices.Index(args, "-af:t"); i >= 0 {
		for _, ad := range out {
			var values []string
			for _, name := range args[i+1:] {
				v, ok := ad[name]
				if n, isNumber := v.(float64); isNumber {
					v = strconv.FormatFloat(n, 'f', -1, 64)
				} else if !ok {
					v = "undefined"
				}
				values = append(values, fmt.Sprint(v))
			}
			fmt.Println(strings.Join(values, "\t"))
		}
		return
	}
	_ = json.NewEncoder(os.Stdout).Encode(append([]map[string]any{}, out...))
}

var term = regexp.MustCompile(`(\w+) (=\?=|>=) ("[^"]*"|\d+)`)

// holds evaluates the expressions of the source.
func holds(expression string, ad map[string]any) bool {
	for _, m := range term.FindAllStringSubmatch(expression, -1) {
		got := fmt.Sprint(ad[m[1]])
		if n, ok := ad[m[1]].(float64); ok {
			got = strconv.FormatInt(int64(n), 10)
		}
		want := strings.Trim(m[3], `"`)
		if m[2] == "=?=" && got != want || m[2] == ">=" && (len(got) < len(want) || got < want) {
			return false
		}
	}
	return true
}

// fakePool makes the commands of a pool with recorded answers; the schedd vm has jobs.
func (s *site) fakePool() string {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	for _, name := range []string{"condor_history", "condor_q", "condor_status", "condor_config_val"} {
		s.must(os.MkdirAll(s.path("bin"), 0o700))
		s.must(programtest.WriteProgram(s.path("bin/"+name), fmt.Sprintf("#!/bin/sh\nexport %s=%s GORACE=atexit_sleep_ms=0\nexec %s %s \"$@\"\n", fakeDir, s.dir, self, name)))
	}
	for from, to := range map[string]string{"condor_status": "status.json", "condor_q": "q.json", "condor_q-census": "census.json"} {
		text, err := os.ReadFile("../../testdata/" + from + "-23.9.6.json")
		s.must(err)
		s.write(to, string(text))
	}
	s.recorded("history-vm", "condor_history", 0, 0)
	s.recorded("epochs-vm", "condor_history-epochs", 0, 0)
	return s.path("bin")
}

// recorded makes the answer of a schedd from a recorded one.
func (s *site) recorded(name, from string, hidden, lost int) {
	s.t.Helper()
	text, err := os.ReadFile("../../testdata/" + from + "-23.9.6.json")
	s.must(err)
	all := ads{Hidden: hidden, Lost: lost}
	s.must(json.Unmarshal(text, &all.Ads))
	text, err = json.Marshal(all)
	s.must(err)
	s.must(os.WriteFile(s.path(name), text, 0o600))
}
