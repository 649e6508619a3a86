package grid

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestJobsOfARealQstat(t *testing.T) {
	got := map[string]int64{}
	err := ReadJobs(strings.NewReader(read(t, "qstat-8.1.9.xml")), func(j Job) {
		key := j.User + " waits"
		if j.Running {
			key = j.User + " runs in " + j.Queue
		}
		got[key] += j.Tasks
	})
	want := map[string]int64{"alice runs in all.q": 1, "bob runs in all.q": 3, "bob waits": 4}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestHostsOfARealQhost(t *testing.T) {
	got, err := ReadHosts(strings.NewReader(read(t, "qhost-8.1.9.xml")))
	want := []Host{{Name: "rig", Cores: 2, MemoryMB: 24105, Slots: map[string]int64{"all.q": 4}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestTasksOfAList(t *testing.T) {
	for list, want := range map[string]int64{"": 1, "4": 1, "1-100:1": 100, "1-10:3": 4, "3,7-9:1": 4, "1-2147483647": 2147483647, "x": -1, "9-1": -1, "1-2:0": -1, "1,": -1} {
		n, err := taskCount(list)
		if err != nil {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d, want %d", list, n, want)
		}
	}
}

func TestOutputThatIsNotWholeIsAnError(t *testing.T) {
	whole := read(t, "qstat-8.1.9.xml")
	for n := range len(whole) - 3 {
		if ReadJobs(strings.NewReader(whole[:n]), func(Job) {}) == nil {
			t.Fatalf("no error after %d bytes", n)
		}
	}
	for _, text := range []string{"", "<qhost/>", "<qhost><host name='global'/></qhost>", "<job_info/>", "<qhost><host name='a'><hostvalue name='num_proc'>x</hostvalue></host></qhost>"} {
		if _, err := ReadHosts(strings.NewReader(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	for _, text := range []string{"<job_info><job_list state='odd'><JB_owner>a</JB_owner></job_list></job_info>", "<job_info><job_list state='running'/></job_info>"} {
		if ReadJobs(strings.NewReader(text), func(Job) {}) == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzXML(f *testing.F) {
	f.Add(read(f, "qstat-8.1.9.xml"))
	f.Add(read(f, "qhost-8.1.9.xml"))
	f.Add("<qhost><host name='a'><hostvalue name='mem_total'>1G</hostvalue><queue name='q'><queuevalue name='slots'>4</queuevalue></queue></host></qhost>")
	f.Fuzz(func(t *testing.T, text string) {
		_ = ReadJobs(strings.NewReader(text), func(j Job) {
			if j.Tasks < 1 || j.User == "" {
				t.Errorf("%+v", j)
			}
		})
		hosts, err := ReadHosts(strings.NewReader(text))
		for _, h := range hosts {
			if err == nil && (h.Cores < 0 || h.MemoryMB < 0) {
				t.Errorf("%+v", h)
			}
		}
	})
}
