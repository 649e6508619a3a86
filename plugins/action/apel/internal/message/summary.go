package message

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Amount is a value normalised with a benchmark.
type Amount struct {
	Benchmark string
	Value     int64
}

// Summary is one row of a normalised summary message. Texts that are empty
// are left out. Durations are in seconds, times in seconds since 1970.
type Summary struct {
	Site  string
	Year  int
	Month time.Month

	GlobalUserName, VO, VOGroup, VORole       string
	SubmitHost                                string
	Infrastructure, InfrastructureDescription string
	NodeCount, Processors                     int64

	EarliestEndTime, LatestEndTime                int64
	WallDuration, CPUDuration                     int64
	NormalisedWallDuration, NormalisedCPUDuration []Amount
	NumberOfJobs                                  int64
}

// Record writes the row.
func (s *Summary) Record() []byte {
	r := record{}
	r.addLine("Site", s.Site)
	r.addNumber("Month", int64(s.Month))
	r.addNumber("Year", int64(s.Year))
	r.addTexts(s.textFields())
	r.addNumber("NodeCount", s.NodeCount) // the receiver takes no row without one
	r.addNumber("Processors", s.Processors)
	r.addNumber("EarliestEndTime", s.EarliestEndTime)
	r.addNumber("LatestEndTime", s.LatestEndTime)
	r.addNumber("WallDuration", s.WallDuration)
	r.addNumber("CpuDuration", s.CPUDuration)
	r.addLine("NormalisedWallDuration", formatAmounts(s.NormalisedWallDuration))
	r.addLine("NormalisedCpuDuration", formatAmounts(s.NormalisedCPUDuration))
	r.addNumber("NumberOfJobs", s.NumberOfJobs)
	return r.endRecord()
}

// textFields are the texts behind the month, in the order of the message.
func (s *Summary) textFields() []named {
	return []named{
		{"GlobalUserName", s.GlobalUserName}, {"VO", s.VO}, {"VOGroup", s.VOGroup}, {"VORole", s.VORole}, {"SubmitHost", s.SubmitHost},
		{"Infrastructure", s.Infrastructure}, {"InfrastructureDescription", s.InfrastructureDescription},
	}
}

// formatAmounts writes {HEPscore23: 12, hepspec: 13}.
func formatAmounts(list []Amount) string {
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = a.Benchmark + ": " + strconv.FormatInt(a.Value, 10)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Check says why the receiver would refuse the row at that time.
func (s *Summary) Check(now time.Time) error {
	return errors.Join(
		needText("Site", s.Site),
		CheckText("Site", s.Site), checkTexts(s.textFields()...),
		checkNumbers(number{"NodeCount", s.NodeCount}, number{"Processors", s.Processors}, number{"WallDuration", s.WallDuration},
			number{"CpuDuration", s.CPUDuration}, number{"NumberOfJobs", s.NumberOfJobs}),
		checkColumns(number{"NodeCount", s.NodeCount}, number{"Processors", s.Processors}, number{"NumberOfJobs", s.NumberOfJobs}),
		cmp.Or(checkMonth(s.Year, s.Month, now), s.checkTimes()),
		checkAmounts("NormalisedWallDuration", s.NormalisedWallDuration),
		checkAmounts("NormalisedCpuDuration", s.NormalisedCPUDuration),
	)
}

func (s *Summary) checkTimes() error {
	start := time.Date(s.Year, s.Month, 1, 0, 0, 0, 0, time.UTC)
	from, to := start.Unix(), start.AddDate(0, 1, 0).Unix()
	for _, n := range []number{{"EarliestEndTime", s.EarliestEndTime}, {"LatestEndTime", s.LatestEndTime}} {
		if n.value < from || n.value >= to {
			return fmt.Errorf("%s is %d, which is not within %d-%02d", n.name, n.value, s.Year, s.Month)
		}
	}
	if s.EarliestEndTime > s.LatestEndTime {
		return fmt.Errorf("EarliestEndTime %d is after LatestEndTime %d", s.EarliestEndTime, s.LatestEndTime)
	}
	return nil
}

func checkAmounts(name string, list []Amount) error {
	if len(list) == 0 {
		return fmt.Errorf("%s is missing", name)
	}
	seen := map[string]bool{}
	for _, a := range list {
		b, err := Benchmark(a.Benchmark)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case seen[b]:
			return fmt.Errorf("%s has %s twice", name, b)
		case a.Value < 0:
			return fmt.Errorf("%s is negative: %s %d", name, b, a.Value)
		}
		seen[b] = true
	}
	return nil
}

// Sync is one row of a sync message: how many jobs the receiver should have.
type Sync struct {
	Site, SubmitHost string
	NumberOfJobs     int64
	Year             int
	Month            time.Month
}

// Record writes the row.
func (s *Sync) Record() []byte {
	r := record{}
	r.addLine("Site", s.Site)
	r.addTexts([]named{{"SubmitHost", s.SubmitHost}})
	r.addNumber("NumberOfJobs", s.NumberOfJobs)
	r.addNumber("Month", int64(s.Month))
	r.addNumber("Year", int64(s.Year))
	return r.endRecord()
}

// Check says why the receiver would refuse the row at that time.
func (s *Sync) Check(now time.Time) error {
	return errors.Join(
		needText("Site", s.Site),
		checkTexts(named{"Site", s.Site}, named{"SubmitHost", s.SubmitHost}),
		checkNumbers(number{"NumberOfJobs", s.NumberOfJobs}), checkColumns(number{"NumberOfJobs", s.NumberOfJobs}),
		checkMonth(s.Year, s.Month, now),
	)
}
