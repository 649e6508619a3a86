package accounting

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// valuesOf are the values of a line by attribute.
func valuesOf(t *testing.T, text string) map[string]sdk.Value {
	t.Helper()
	l, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return values(t, NewPlan(func(string) bool { return true }, usual()), l)
}

// usage is a line with those numbers of usage, in the place of a run that used all.
func usage(changes ...string) string {
	f := strings.Split("all.q:n1:phys:ann:job:7:sge:0:1700000000:1700000010:1700000110:0:0:100:1:1:4096:0:0:0:0:10:0:0:0:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:2.5:1:1:NONE:0.5:NONE:1000:0:0", ":")
	for i := 0; i < len(changes); i += 2 {
		for n, c := range fileColumns() {
			if c.name == changes[i] {
				f[n] = changes[i+1]
			}
		}
	}
	return strings.Join(f, ":")
}

func TestZeros_NotMeasured_AreNull(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		null []string
		zero []string
	}{
		"all was measured":                 {usage(), []string{"ru_ixrss"}, []string{"ru_nswap"}},
		"it ended before a sample":         {usage("maxvmem", "0.000", "mem", "0.000", "io", "0.000", "iow", "0.000"), []string{"maxvmem", "max_vmem_bytes", "mem", "io", "io_bytes", "iow"}, nil},
		"sampled, and nothing was read":    {usage("io", "0.000", "iow", "0.000"), nil, []string{"io", "io_bytes", "iow"}},
		"no resident memory by the system": {usage("ru_maxrss", "0"), []string{"ru_maxrss", "max_rss_bytes"}, nil},
		"less CPU time than is written":    {usage("cpu", "0.000", "ru_utime", "0.000", "ru_stime", "0"), nil, []string{"cpu", "cpu_seconds", "ru_utime", "ru_stime"}},
		"its host was lost": {usage("cpu", "0.000", "ru_utime", "0", "ru_stime", "0", "ru_minflt", "0", "ru_maxrss", "0", "maxvmem", "0", "mem", "0", "io", "0", "iow", "0"),
			[]string{"cpu", "cpu_seconds", "ru_utime", "ru_stime", "ru_minflt", "ru_maxrss", "max_rss_bytes", "maxvmem", "max_vmem_bytes", "mem", "io", "io_bytes", "iow"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := valuesOf(t, c.line)
			for _, a := range c.null {
				if !got[a].IsNull() {
					t.Errorf("%s is %v", a, got[a])
				}
			}
			for _, a := range c.zero {
				if got[a].IsNull() || got[a].Float() != 0 {
					t.Errorf("%s is %v, null %t", a, got[a], got[a].IsNull())
				}
			}
		})
	}
}

// Of real lines no memory is 0, and CPU time is known wherever a process ran.
func TestZeros_RealFiles_NoMemoryIsZero(t *testing.T) {
	for _, name := range []string{"accounting-8.1.9", "accounting-6.1", "accounting-uge"} {
		known := map[string]int{}
		for i, text := range lines(t, name) {
			if _, err := Parse(text); err != nil {
				continue
			}
			got := valuesOf(t, text)
			for _, a := range []string{"max_rss_bytes", "max_vmem_bytes", "maxvmem", "ru_maxrss", "maxrss"} {
				if v := got[a]; !v.IsNull() && v.Float() == 0 {
					t.Errorf("%s line %d: %s is 0", name, i+1, a)
				}
			}
			for _, a := range []string{"cpu_seconds", "max_vmem_bytes", "io_bytes"} {
				if !got[a].IsNull() {
					known[a]++
				}
			}
		}
		if name != "accounting-8.1.9" {
			continue
		}
		if diff := cmp.Diff(map[string]int{"cpu_seconds": 15, "max_vmem_bytes": 10, "io_bytes": 10}, known); diff != "" {
			t.Error(diff)
		}
	}
}
