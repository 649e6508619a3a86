package message

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Level is what a core of the job's node scored in a benchmark.
type Level struct {
	Benchmark string
	Value     float64
}

// Job is one job: a record of an individual job message, and what summaries are
// made of. Texts that are empty and numbers that are 0 are left out, but for the
// durations, times and Processors. Durations are in seconds, times in seconds since 1970, memory
// in kilobytes.
type Job struct {
	Site, SubmitHost, MachineName, Queue          string
	LocalJobID, LocalUserID                       string
	GlobalUserName, FQAN, VO, VOGroup, VORole     string
	WallDuration, CPUDuration                     int64
	Processors, NodeCount                         int64
	StartTime, EndTime                            int64
	InfrastructureDescription, InfrastructureType string
	MemoryReal, MemoryVirtual                     int64
	ServiceLevels                                 []Level
}

// Record writes the record of a message of kind Jobs03, which has the first of the
// ServiceLevels only, or Jobs04.
func (j *Job) Record(kind Kind) []byte {
	r := record{}
	r.addLine("Site", j.Site)
	r.addTexts(j.textFields())
	r.addNumber("WallDuration", j.WallDuration)
	r.addNumber("CpuDuration", j.CPUDuration)
	r.addNumber("Processors", j.Processors)
	r.addPositive("NodeCount", j.NodeCount)
	r.addNumber("StartTime", j.StartTime)
	r.addNumber("EndTime", j.EndTime)
	r.addTexts(j.infrastructureFields())
	r.addPositive("MemoryReal", j.MemoryReal)
	r.addPositive("MemoryVirtual", j.MemoryVirtual)
	switch {
	case len(j.ServiceLevels) == 0:
	case kind == Jobs03:
		r.addLine("ServiceLevelType", j.ServiceLevels[0].Benchmark)
		r.addLine("ServiceLevel", formatFloat(j.ServiceLevels[0].Value))
	default:
		r.addLine("ServiceLevel", formatLevels(j.ServiceLevels))
	}
	return r.endRecord()
}

// textFields are the texts behind the site, in the order of the message.
func (j *Job) textFields() []named {
	return []named{
		{"SubmitHost", j.SubmitHost}, {"MachineName", j.MachineName}, {"Queue", j.Queue}, {"LocalJobId", j.LocalJobID}, {"LocalUserId", j.LocalUserID},
		{"GlobalUserName", j.GlobalUserName}, {"FQAN", j.FQAN}, {"VO", j.VO}, {"VOGroup", j.VOGroup}, {"VORole", j.VORole},
	}
}

func (j *Job) infrastructureFields() []named {
	return []named{{"InfrastructureDescription", j.InfrastructureDescription}, {"InfrastructureType", j.InfrastructureType}}
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func formatLevels(list []Level) string {
	parts := make([]string, len(list))
	for i, l := range list {
		parts[i] = l.Benchmark + ": " + formatFloat(l.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// late is how far behind the clock of the receiver a job may have ended.
const late = 2 * 24 * time.Hour

// Check says why the receiver would refuse the job at that time.
func (j *Job) Check(now time.Time) error {
	return errors.Join(
		needText("Site", j.Site), needText("LocalJobId", j.LocalJobID),
		CheckText("Site", j.Site), checkTexts(j.textFields()...), checkTexts(j.infrastructureFields()...),
		checkNumbers(j.numberFields()...), checkColumns(j.numberFields()...),
		j.checkTimes(now),
		j.checkLevels(),
	)
}

func (j *Job) numberFields() []number {
	return []number{
		{"WallDuration", j.WallDuration}, {"CpuDuration", j.CPUDuration}, {"Processors", j.Processors},
		{"NodeCount", j.NodeCount}, {"MemoryReal", j.MemoryReal}, {"MemoryVirtual", j.MemoryVirtual},
	}
}

// Key returns what the receiver tells the job from others of its site by, as Fold does.
func (j *Job) Key() string { return strconv.FormatInt(j.EndTime, 10) + " " + Fold(j.LocalJobID) }

// DropUnfit empties the fields that the receiver would refuse and neither adds up nor
// groups by, so that the job itself goes, and says which and why. In summaries that is
// the description.
func (j *Job) DropUnfit(kind Kind) []Unfit {
	var out []Unfit
	texts := []struct {
		name string
		text *string
	}{
		{"InfrastructureDescription", &j.InfrastructureDescription}, {"MachineName", &j.MachineName}, {"Queue", &j.Queue}, {"LocalUserId", &j.LocalUserID},
	}
	if kind == Summaries {
		texts = texts[:1]
	}
	for _, t := range texts {
		if err := CheckText(t.name, *t.text); err != nil {
			out, *t.text = append(out, Unfit{t.name, err}), ""
		}
	}
	if kind == Summaries {
		return out
	}
	for _, n := range []struct {
		name   string
		number *int64
	}{{"MemoryReal", &j.MemoryReal}, {"MemoryVirtual", &j.MemoryVirtual}} {
		if err := cmp.Or(checkNumbers(number{n.name, *n.number}), checkColumns(number{n.name, *n.number})); err != nil {
			out, *n.number = append(out, Unfit{n.name, err}), 0
		}
	}
	return out
}

// Unfit is a field that the receiver would refuse.
type Unfit struct {
	Field string
	Err   error
}

func (j *Job) checkTimes(now time.Time) error {
	switch {
	case j.StartTime <= 0 || j.EndTime <= 0:
		return fmt.Errorf("StartTime is %d and EndTime %d, which must be after 1970", j.StartTime, j.EndTime)
	case j.EndTime < j.StartTime:
		return fmt.Errorf("EndTime %d is before StartTime %d", j.EndTime, j.StartTime)
	case j.EndTime > now.Add(late).Unix():
		return fmt.Errorf("EndTime %d is in the future", j.EndTime)
	}
	return nil
}

func (j *Job) checkLevels() error {
	seen := map[string]bool{}
	for _, l := range j.ServiceLevels {
		b, err := Benchmark(l.Benchmark)
		switch {
		case err != nil:
			return fmt.Errorf("ServiceLevel: %w", err)
		case seen[b]:
			return fmt.Errorf("ServiceLevel has %s twice", b)
		case l.Value < 0 || math.IsNaN(l.Value) || math.IsInf(l.Value, 0):
			return fmt.Errorf("ServiceLevel is not a number that is 0 or more: %s %v", b, l.Value)
		case l.Value > maxLevel:
			return fmt.Errorf("ServiceLevel %s is above the %v that the receiver takes", b, maxLevel)
		}
		seen[b] = true
	}
	return nil
}
