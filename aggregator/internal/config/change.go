package config

import (
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
)

// NeedRestart names the settings in which next differs from c and that a running
// daemon cannot take over: everything but what the cluster shares, the rules of
// access, the plan of the backups, what is acknowledged, the log's level, and the
// content of the certificate files.
func (c *Config) NeedRestart(next *Config) []string {
	a, b := &c.Aggregator, &next.Aggregator
	var names []string
	for _, s := range []struct {
		name string
		same bool
	}{
		{"name", a.Name.Value == b.Name.Value},
		{"data_dir", a.DataDir.Path == b.DataDir.Path},
		{"clock_tolerance", a.ClockTolerance.Duration == b.ClockTolerance.Duration},
		{"min_free", a.MinFree.Bytes == b.MinFree.Bytes},
		{"raft", a.Raft.isSame(b.Raft)},
		{"compaction", a.Compaction.isSame(&b.Compaction)},
		{"usage_memory", a.UsageMemory.Bytes == b.UsageMemory.Bytes},
		{"ballast", a.Ballast.Bytes == b.Ballast.Bytes},
		{"api.socket", a.API.Socket.Path == b.API.Socket.Path},
		{"api.listen", slices.EqualFunc(a.API.Listen, b.API.Listen, sameAddress)},
		{"api.tls_listen", slices.EqualFunc(a.API.TLSListen, b.API.TLSListen, sameAddress)},
		{"api.ignore_record_exists_error", a.API.IgnoreRecordExists == b.API.IgnoreRecordExists},
		{"api.max_body", a.API.MaxBody.Bytes == b.API.MaxBody.Bytes},
		{"api.answer_memory", a.API.AnswerMemory.Bytes == b.API.AnswerMemory.Bytes},
		{"api.patience", a.API.Patience.Duration == b.API.Patience.Duration},
		{"tls", c.Files() == next.Files()},
		{"authority", a.Authority.Path == b.Authority.Path},
		{"metrics.frequency", a.Metrics.Frequency.Duration == b.Metrics.Frequency.Duration},
		{"log.format", a.Log.Format.Value == b.Log.Format.Value},
	} {
		if !s.same {
			names = append(names, s.name)
		}
	}
	return names
}

func (c *Compaction) isSame(d *Compaction) bool {
	return c.Every.Duration == d.Every.Duration && c.Keep.Duration == d.Keep.Duration && c.Whole.Duration == d.Whole.Duration && c.Files.Duration == d.Files.Duration
}

func sameAddress(a, b hcl.Address) bool { return a.String() == b.String() }
