package main

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// month is a month of UTC: the number of months since year 0.
type month int

func parseMonth(s string) (month, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil {
		return 0, fmt.Errorf("invalid month %q: use one such as 2024-03", s)
	}
	return monthOf(t), nil
}

func monthOf(t time.Time) month { return month(t.UTC().Year()*12 + int(t.UTC().Month()) - 1) }

func (m month) monthStart() time.Time {
	return time.Date(int(m)/12, time.Month(m%12+1), 1, 0, 0, 0, 0, time.UTC)
}
func (m month) monthEnd() time.Time { return (m + 1).monthStart() }
func (m month) String() string      { return m.monthStart().Format("2006-01") }

// folderName is the name of the folder of a month, as Hive names partitions.
func (m month) folderName() string { return m.monthStart().Format("year=2006/month=01/") }

// name is that of an archive: a month, and a number above 1 for a supplement.
type name struct {
	month  month
	number int
}

// String is the name by which the store knows the archive.
func (n name) String() string {
	if n.number == 1 {
		return n.month.String()
	}
	return fmt.Sprintf("%s-%d", n.month, n.number)
}

var archiveName = regexp.MustCompile(`^(\d{4}-\d\d)(?:-([1-9]\d{0,5}))?$`)

func parseName(s string) (n name, err error) {
	m := archiveName.FindStringSubmatch(s)
	if m == nil {
		return n, fmt.Errorf("invalid name of an archive %q: use one such as 2024-03 or 2024-03-2", s)
	}
	if n.month, err = parseMonth(m[1]); err != nil {
		return n, err
	}
	n.number, err = strconv.Atoi(cmp.Or(m[2], "1"))
	return n, err
}

// edition is one writing of an archive. Each attempt makes one of its own, whose files have
// its fence in their names, so no file that is there is ever changed.
type edition struct {
	name

	fence uint64
}

// recordsFile is the name of the file of an edition, and manifestFile that of its manifest. A
// program that reads all files of a folder passes over what begins with an underscore.
func (e edition) recordsFile() string  { return e.filePath("records", ".parquet") }
func (e edition) manifestFile() string { return e.filePath("_manifest", ".json") }

func (e edition) filePath(kind, extension string) string {
	return fmt.Sprintf("%s%s-%d-%012d%s", e.month.folderName(), kind, e.number, e.fence, extension)
}

var fileName = regexp.MustCompile(`^year=(\d{4})/month=(\d\d)/(?:records-(\d{1,6})-(\d{12,20})\.parquet|_manifest-(\d{1,6})-(\d{12,20})\.json)$`)

// parseFile reads the name of a file of an edition.
func parseFile(file string) (e edition, manifest, ok bool) {
	m := fileName.FindStringSubmatch(path.Clean(file))
	if m == nil {
		return e, false, false
	}
	var errs [3]error
	e.month, errs[0] = parseMonth(m[1] + "-" + m[2])
	e.number, errs[1] = strconv.Atoi(m[3] + m[5])
	e.fence, errs[2] = strconv.ParseUint(m[4]+m[6], 10, 64)
	manifest = m[5] != ""
	ok = errs == [3]error{} && e.number > 0 && file == map[bool]string{true: e.manifestFile(), false: e.recordsFile()}[manifest]
	return e, manifest, ok
}

// editions are those that are there, by archive, the oldest first.
type editions map[name][]found

// found is an edition of which files are there; without a manifest it does not count.
type found struct {
	edition

	whole bool
	files []string
}

// editionsOf sorts the names of files, by fence.
func editionsOf(files []string) editions {
	out := editions{}
	for _, file := range files {
		e, manifest, ok := parseFile(file)
		if !ok {
			continue
		}
		i, there := slices.BinarySearchFunc(out[e.name], e.fence, func(f found, fence uint64) int { return cmp.Compare(f.fence, fence) })
		if !there {
			out[e.name] = slices.Insert(out[e.name], i, found{edition: e})
		}
		out[e.name][i].files = append(out[e.name][i].files, file)
		out[e.name][i].whole = out[e.name][i].whole || manifest
	}
	return out
}

// latestWhole is the edition that counts: the last whole one.
func (e editions) latestWhole(n name) (edition, bool) {
	for _, f := range slices.Backward(e[n]) {
		if f.whole {
			return f.edition, true
		}
	}
	return edition{}, false
}
