package calendar

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// Impossible says why a word in the form of a date or a period is none, such as "there is
// no 30 February"; "" of other words, and of dates that there are.
func Impossible(word string) string {
	date := regexp.MustCompile(`^(\d{4})-(\d{1,2})(?:-(\d{1,2})(?:[Tt ](\d{1,2}):(\d{2}).*)?)?$`)
	part := regexp.MustCompile(`^(\d{4})-([qQwW])(\d{1,2})$`)
	word = strings.TrimSpace(word)
	if m := part.FindStringSubmatch(word); m != nil {
		return impossiblePart(parseNumber(m[1]), m[2], parseNumber(m[3]))
	}
	m := date.FindStringSubmatch(word)
	if m == nil {
		return ""
	}
	year, month, day := parseNumber(m[1]), parseNumber(m[2]), parseNumber(m[3])
	switch last := time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day(); {
	case month < 1 || month > 12:
		return fmt.Sprintf("there is no month %d", month)
	case m[3] != "" && month == 2 && day == 29 && last < day:
		return fmt.Sprintf("there is no 29 February in %d", year)
	case m[3] != "" && (day < 1 || day > last):
		return fmt.Sprintf("there is no %d %s", day, time.Month(month))
	case parseNumber(m[4]) > 23 || parseNumber(m[5]) > 59:
		return fmt.Sprintf("there is no time %s:%s", m[4], m[5])
	case len(m[2]) < 2 || m[3] != "" && len(m[3]) < 2:
		return "months and days have two digits, as in " + strings.TrimSuffix(fmt.Sprintf("%04d-%02d-%02d", year, month, day), "-00")
	}
	return ""
}

// impossiblePart is [Impossible] of a quarter or a week of a year.
func impossiblePart(year int, kind string, n int) string {
	if strings.EqualFold(kind, "q") {
		if n < 1 || n > 4 {
			return fmt.Sprintf("there is no quarter %d", n)
		}
		return ""
	}
	_, weeks := time.Date(year, 12, 28, 0, 0, 0, 0, time.UTC).ISOWeek()
	if n < 1 || n > weeks {
		return fmt.Sprintf("there is no week %d in %d", n, year)
	}
	return ""
}

// parseNumber is that of at most four digits; 0 without any.
func parseNumber(digits string) int {
	n, _ := strconv.Atoi(digits) // it has only digits
	return n
}

// correctionFor says what is wrong with a word, which may be A..B, or which of others is meant;
// "" where that is not known. Of a day that the clock of the zone left out it says so.
func correctionFor(word string, zone *time.Location, others ...string) string {
	if why := Impossible(word); why != "" {
		return why
	}
	if _, err := time.Parse(time.DateOnly, word); err == nil {
		return "the clocks of " + zone.String() + " left that day out"
	}
	if near := hcl.Suggest(word, slices.Concat(others, relativeWords())); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// relativeWords are the words for windows about now.
func relativeWords() []string {
	list := []string{"today", "yesterday"}
	for _, unit := range Units()[Day-1:] {
		list = append(list, "this-"+unit, "last-"+unit)
	}
	return list
}
