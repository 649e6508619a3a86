// Package apeltest reads messages of APEL as the receiver does: it was written from
// the rules of the format alone, and refuses what the receiver refuses. It shares
// nothing with package message, whose output it reads in tests.
package apeltest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is a message that was understood.
type Message struct {
	Header  string
	Records []Record
}

// Record is what the receiver keeps of a record: every value as it was written,
// and dictionaries beside.
type Record struct {
	Values map[string]string
	Dicts  map[string]map[string]float64
	Keys   []string // in the order of the message
}

// Int returns a field's number, and 0 where there is none.
func (r Record) Int(name string) int64 {
	n, _ := strconv.ParseInt(r.Values[name], 10, 64)
	return n
}

// kind of a field's value.
type kind int

const (
	text kind = iota
	whole
	decimal
	moment
	dictWhole
	dictDecimal
)

// format is what one header allows: the order is that in which the fields are
// published.
type format struct {
	fields    []string
	mandatory string
	kinds     map[string]kind
	check     func(Record, time.Time) error
}

func splitWords(s string) []string { return strings.Fields(s) }

const jobFields = `Site SubmitHost MachineName Queue LocalJobId LocalUserId GlobalUserName FQAN VO VOGroup VORole
	WallDuration CpuDuration Processors NodeCount StartTime EndTime InfrastructureDescription InfrastructureType
	MemoryReal MemoryVirtual`

func messageFormats() map[string]format {
	jobKinds := map[string]kind{
		"WallDuration": whole, "CpuDuration": whole, "Processors": whole, "NodeCount": whole, "MemoryReal": whole, "MemoryVirtual": whole,
		"StartTime": moment, "EndTime": moment,
	}
	with := func(name string, k kind) map[string]kind {
		out := maps.Clone(jobKinds)
		out[name] = k
		return out
	}
	const jobNeeds = "Site LocalJobId WallDuration CpuDuration StartTime EndTime"
	return map[string]format{
		"APEL-normalised-summary-message: v0.4": {
			fields: splitWords(`Site Month Year GlobalUserName VO VOGroup VORole SubmitHost Infrastructure InfrastructureDescription
				NodeCount Processors EarliestEndTime LatestEndTime WallDuration CpuDuration NormalisedWallDuration
				NormalisedCpuDuration NumberOfJobs`),
			mandatory: "Site Month Year WallDuration CpuDuration NormalisedWallDuration NormalisedCpuDuration NumberOfJobs",
			kinds: map[string]kind{
				"Month": whole, "Year": whole, "NodeCount": whole, "Processors": whole, "WallDuration": whole, "CpuDuration": whole,
				"NumberOfJobs": whole, "EarliestEndTime": moment, "LatestEndTime": moment,
				"NormalisedWallDuration": dictWhole, "NormalisedCpuDuration": dictWhole,
			},
			check: checkSummary,
		},
		"APEL-sync-message: v0.1": {
			fields:    splitWords("Site SubmitHost NumberOfJobs Month Year"),
			mandatory: "Site NumberOfJobs Month Year",
			kinds:     map[string]kind{"NumberOfJobs": whole, "Month": whole, "Year": whole},
			check:     func(r Record, now time.Time) error { _, _, err := monthOf(r, now); return err },
		},
		"APEL-individual-job-message: v0.3": {
			fields: append(splitWords(jobFields), "ServiceLevelType", "ServiceLevel"), mandatory: jobNeeds,
			kinds: with("ServiceLevel", decimal), check: checkJob03,
		},
		"APEL-individual-job-message: v0.4": {
			fields: append(splitWords(jobFields), "ServiceLevel"), mandatory: jobNeeds,
			kinds: with("ServiceLevel", dictDecimal), check: checkJob,
		},
	}
}

// Parse reads a message at that time. The error is the receiver's reason to refuse
// the whole message.
func Parse(message string, now time.Time) (Message, error) {
	for i := range len(message) {
		if message[i] >= 0x80 {
			return Message{}, fmt.Errorf("byte %d is not ASCII", i)
		}
	}
	header, body, _ := strings.Cut(strings.TrimSpace(message), "\n")
	header = strings.TrimSpace(header)
	f, ok := messageFormats()[header]
	if !ok {
		return Message{}, fmt.Errorf("message type %q is not recognised", header)
	}
	out := Message{Header: header}
	for part := range strings.SplitSeq(body, "%%") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		r, err := f.parseRecord(part, now)
		if err != nil {
			return Message{}, fmt.Errorf("record %d: %w", len(out.Records)+1, err)
		}
		out.Records = append(out.Records, r)
	}
	return out, nil
}

var lineEnds = regexp.MustCompile(`\r\n|[\n\r\v\f\x1c\x1d\x1e]`)

func (f format) parseRecord(part string, now time.Time) (Record, error) {
	r := Record{Values: map[string]string{}, Dicts: map[string]map[string]float64{}}
	for _, line := range lineEnds.Split(strings.TrimSpace(part), -1) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return r, fmt.Errorf("a line without a key-value pair: %q", line)
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !slices.Contains(f.fields, key) {
			return r, fmt.Errorf("unexpected field %q", key)
		}
		if isNull(value) {
			continue
		}
		if err := f.parseValue(&r, key, value); err != nil {
			return r, fmt.Errorf("%s: %w", key, err)
		}
		r.Values[key] = value
		r.Keys = append(r.Keys, key)
	}
	for _, key := range splitWords(f.mandatory) {
		if r.Values[key] == "" {
			return r, fmt.Errorf("mandatory field %s is not there", key)
		}
	}
	if err := f.inOrder(r.Keys); err != nil {
		return r, err
	}
	return r, f.check(r, now)
}

// inOrder holds us to the published order, which the receiver does not need.
func (f format) inOrder(keys []string) error {
	i := 0
	for _, k := range keys {
		for i < len(f.fields) && f.fields[i] != k {
			i++
		}
		if i == len(f.fields) {
			return fmt.Errorf("field %s is out of order or duplicate", k)
		}
		i++
	}
	return nil
}

func isNull(value string) bool {
	v := strings.ToLower(value)
	return v == "" || v == "none" || v == "null"
}

func (f format) parseValue(r *Record, key, value string) error {
	var err error
	switch f.kinds[key] {
	case whole, moment:
		_, err = strconv.ParseInt(value, 10, 64)
	case decimal:
		_, err = strconv.ParseFloat(value, 64)
	case dictWhole, dictDecimal:
		r.Dicts[key], err = parseDict(value, f.kinds[key] == dictWhole)
	}
	return err
}

// parseDict reads {name: number, name: number}.
func parseDict(value string, wholes bool) (map[string]float64, error) {
	inner, ok := strings.CutPrefix(value, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return nil, fmt.Errorf("%q is no dictionary", value)
	}
	out := map[string]float64{}
	for item := range strings.SplitSeq(inner, ",") {
		name, number, ok := strings.Cut(item, ":")
		name, number = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(number)
		if _, twice := out[name]; !ok || twice {
			return nil, fmt.Errorf("%q is not a pair, or its key is duplicate", item)
		}
		if name != "si2k" && name != "hepspec" && name != "hepscore23" {
			return nil, fmt.Errorf("benchmark %q is not known", name)
		}
		n, err := strconv.ParseFloat(number, 64)
		if wholes {
			var i int64
			i, err = strconv.ParseInt(number, 10, 64)
			n = float64(i)
		}
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, fmt.Errorf("%s is negative", name)
		}
		out[name] = n
	}
	return out, nil
}

func monthOf(r Record, now time.Time) (from, to int64, err error) {
	if m := r.Int("Month"); m < 1 || m > 12 {
		return 0, 0, fmt.Errorf("month %d is out of range", m)
	}
	if y := r.Int("Year"); y < 1 || y > 9999 {
		return 0, 0, fmt.Errorf("year %d is out of range", y)
	}
	if r.Int("NumberOfJobs") < 0 {
		return 0, 0, fmt.Errorf("negative NumberOfJobs")
	}
	start := time.Date(int(r.Int("Year")), time.Month(r.Int("Month")), 1, 0, 0, 0, 0, time.UTC)
	if start.After(now) {
		return 0, 0, fmt.Errorf("the month is in the future")
	}
	return start.Unix(), start.AddDate(0, 1, 0).Unix(), nil
}

func checkSummary(r Record, now time.Time) error {
	from, to, err := monthOf(r, now)
	if err != nil {
		return err
	}
	for _, key := range []string{"EarliestEndTime", "LatestEndTime"} {
		if _, there := r.Values[key]; there && (r.Int(key) < from || r.Int(key) > to) {
			return fmt.Errorf("%s is not within the month", key)
		}
	}
	if r.Int("EarliestEndTime") > r.Int("LatestEndTime") {
		return fmt.Errorf("LatestEndTime is earlier than EarliestEndTime")
	}
	for _, key := range []string{"WallDuration", "CpuDuration"} {
		if r.Int(key) < 0 {
			return fmt.Errorf("negative %s", key)
		}
	}
	return nil
}

func checkJob(r Record, now time.Time) error {
	if r.Int("EndTime") < r.Int("StartTime") {
		return fmt.Errorf("EndTime is before StartTime")
	}
	if r.Int("EndTime") > now.AddDate(0, 0, 2).Unix() {
		return fmt.Errorf("EndTime is in the future")
	}
	if r.Int("StartTime") == 0 || r.Int("WallDuration") < 0 || r.Int("CpuDuration") < 0 {
		return fmt.Errorf("a time or a duration is out of range")
	}
	return nil
}

func checkJob03(r Record, now time.Time) error {
	name, level := r.Values["ServiceLevelType"], r.Values["ServiceLevel"]
	if (name == "") != (level == "") {
		return fmt.Errorf("a service level without its type, or the other way round")
	}
	switch strings.ToLower(name) {
	case "", "si2k", "hepspec", "hepscore23":
		return checkJob(r, now)
	}
	return fmt.Errorf("ServiceLevelType %q is not valid", name)
}
