package apeltest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Receiver keeps rows as the database of APEL 2.5.0 does (schemas/server.sql, with the
// default collation and SQL mode of MariaDB): a row that comes again replaces the one
// with the same primary key, texts compare without case, and a value that does not fit
// its column undoes the whole message. The zero Receiver is empty.
type Receiver struct {
	rows map[string]Record
}

// table is where the records of a header go.
type table struct {
	key     string         // the primary key
	lengths map[string]int // how many characters a text may have, where it is not 255
	numbers string         // what is a signed integer of 32 bits
	needs   string         // what must not be null
}

func tableOf(header string) table {
	switch {
	case strings.HasPrefix(header, "APEL-sync"):
		return table{key: "Site SubmitHost Month Year", numbers: "NumberOfJobs Month Year"}
	case strings.HasPrefix(header, "APEL-individual"):
		return table{
			key:     "Site LocalJobId EndTime",
			lengths: map[string]int{"Queue": 100, "InfrastructureDescription": 100, "InfrastructureType": 20},
			numbers: "WallDuration CpuDuration Processors NodeCount MemoryReal MemoryVirtual",
		}
	}
	return table{
		key:     "Site Month Year GlobalUserName VO VORole VOGroup SubmitHost Infrastructure NodeCount Processors",
		lengths: map[string]int{"Infrastructure": 20, "InfrastructureDescription": 100},
		numbers: "Month Year NodeCount Processors NumberOfJobs",
		needs:   "NodeCount Processors",
	}
}

// maxLevel is what DECIMAL(10,3) holds.
const maxLevel = 9_999_999.999

// checkFit says why a row does not fit into its table.
func (t table) checkFit(r Record) error {
	for name, value := range r.Values {
		most, short := t.lengths[name]
		if !short {
			most = 255
		}
		if _, dict := r.Dicts[name]; !dict && len(value) > most {
			return fmt.Errorf("data too long for column %s: %d characters", name, len(value))
		}
	}
	for _, name := range splitWords(t.numbers) {
		if r.Int(name) > math.MaxInt32 {
			return fmt.Errorf("out of range value for column %s: %s", name, r.Values[name])
		}
	}
	for _, name := range splitWords(t.needs) {
		if r.Values[name] == "" {
			return fmt.Errorf("column %s cannot be null", name)
		}
	}
	for name, level := range r.Dicts["ServiceLevel"] {
		if level > maxLevel {
			return fmt.Errorf("out of range value for column ServiceLevel: %s %v", name, level)
		}
	}
	return nil
}

// keptBenchmark is the benchmark of a row that the receiver keeps.
func keptBenchmark(r Record) string {
	for _, name := range []string{"hepscore23", "hepspec", "si2k"} {
		if _, ok := r.Dicts["NormalisedWallDuration"][name]; ok {
			return name
		}
	}
	return ""
}

// Take takes a message at that time. The error is why nothing of it is kept.
func (r *Receiver) Take(text string, now time.Time) error {
	m, err := Parse(text, now)
	if err != nil {
		return err
	}
	t := tableOf(m.Header)
	for i, row := range m.Records {
		if err := t.checkFit(row); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	if r.rows == nil {
		r.rows = map[string]Record{}
	}
	for _, row := range m.Records {
		parts := []string{m.Header}
		for _, k := range splitWords(t.key) {
			parts = append(parts, strings.ToLower(row.Values[k]))
		}
		r.rows[strings.Join(append(parts, keptBenchmark(row)), "\x00")] = row
	}
	return nil
}

// Rows are those of messages whose header begins so.
func (r *Receiver) Rows(header string) []Record {
	var out []Record
	for _, k := range slices.Sorted(maps.Keys(r.rows)) {
		if strings.HasPrefix(k, header) {
			out = append(out, r.rows[k])
		}
	}
	return out
}

// Sum adds up a field of those rows.
func (r *Receiver) Sum(header, field string) int64 {
	var n int64
	for _, row := range r.Rows(header) {
		n += row.Int(field)
	}
	return n
}
