package compat

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// AI4Files are files by their names, with slashes, below ai4-accounting's directory.
type AI4Files struct {
	Files map[string][]byte
	Notes []string
}

// AI4Users is the file in which ai4-accounting keeps the users that it has seen.
const AI4Users = "users/user-db.json"

// AI4 makes the files that ai4-accounting writes and ai4-papi reads: for each
// namespace the daily time series, the resource-days of each user, those of all of
// them, and those of users with their names; and the users. Their form is
// ai4-accounting's, and so are their figures: what a snapshot every few hours would
// have seen, with MHz for cores where none were reserved. Summary has exact ones.
func AI4(ctx context.Context, r v1.API, o AI4Options) (*AI4Files, error) {
	world, err := o.askCluster(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("report summary for ai4: %w", err)
	}
	d, err := r.Directory(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("report summary for ai4: the directory: %w", err)
	}
	s := world.takeSnapshots()
	out := &AI4Files{Files: map[string][]byte{}}
	users := o.usersOf(s, d.People, out)
	for _, n := range world.namespaces {
		if !isPlainName(n) {
			out.Notes = append(out.Notes, fmt.Sprintf("The namespace %q has no files: Nomad does not allow this name.", n))
			continue
		}
		if err := s.writeFiles(n, users, out.Files); err != nil {
			return nil, fmt.Errorf("report summary for ai4: %w", err)
		}
	}
	return out, out.addUsers(users)
}

// isPlainName reports whether Nomad allows a name for namespaces, and it is thus fit for a file.
func isPlainName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return name != "" && len(name) <= 128 && strings.Trim(name, allowed) == ""
}

// samples are what the snapshots of a period saw.
type samples struct {
	days      []string                      // in order
	snapshots map[string]int64              // how many each day has that saw something
	series    map[string]map[string]*ai4Day // by namespace and day
	users     map[string]map[string]*[5]*big.Rat
	owners    map[string]bool
	// today is what users had on the day that is being read, in sums.
	today map[[2]string]*amounts
}

// ai4Day is a day of a namespace: sums over its snapshots.
type ai4Day struct {
	rows            int64 // snapshots that have a line about the namespace
	sum             amounts
	queued, running level
}

// level is a number of jobs in the mean of those snapshots that have some.
type level struct{ jobs, snapshots int64 }

func (l *level) addLevel(jobs int64) {
	if jobs > 0 {
		l.jobs, l.snapshots = l.jobs+jobs, l.snapshots+1
	}
}

func (l *level) meanLevel() int64 {
	if l.snapshots == 0 {
		return 0
	}
	return roundHalfEven(big.NewRat(l.jobs, l.snapshots))
}

// seen is what a snapshot has of a namespace.
type seen struct {
	listed, running, queued int64
	sum                     amounts
}

// takeSnapshots takes the snapshots.
func (w *ai4World) takeSnapshots() *samples {
	s := &samples{
		snapshots: map[string]int64{}, series: map[string]map[string]*ai4Day{},
		users: map[string]map[string]*[5]*big.Rat{}, owners: map[string]bool{},
	}
	jobs := ai4Walk{coming: w.jobs}
	for i, t := range w.instants {
		day := t.UTC().Format(time.DateOnly)
		if len(s.days) == 0 || s.days[len(s.days)-1] != day {
			s.days, s.today = append(s.days, day), map[[2]string]*amounts{}
		}
		if s.addSnapshot(w.namespaces, jobs.jobsAt(t), w.waiting[t], t, day) {
			s.snapshots[day]++
		}
		if i+1 == len(w.instants) || w.instants[i+1].UTC().Format(time.DateOnly) != day {
			s.endDay(day)
		}
	}
	return s
}

// addSnapshot adds one, and reports whether it has any line.
func (s *samples) addSnapshot(namespaces []string, jobs []*ai4Job, waiting []AI4Waiting, t time.Time, day string) (some bool) {
	found := map[string]*seen{}
	for _, n := range namespaces {
		found[n] = &seen{}
	}
	for _, j := range jobs {
		f := found[j.namespace]
		state, a, r := j.stateAt(t)
		if f == nil || state == ai4Gone {
			continue
		}
		f.listed++
		if state != ai4Running && state != ai4Queued {
			continue
		}
		had := s.amountsOf(j.namespace, a.owner)
		if state == ai4Queued {
			f.queued++
			continue
		}
		f.running++
		for i, n := range r.amounts {
			f.sum[i] += n
			had[i] += n
		}
	}
	for _, j := range waiting {
		if f := found[j.Namespace]; f != nil {
			f.queued++
			s.amountsOf(j.Namespace, j.Owner)
		}
	}
	return s.addDay(found, day)
}

// amountsOf is what a user had on the day that is being read.
func (s *samples) amountsOf(namespace, owner string) *amounts {
	s.owners[owner] = true
	who := [2]string{namespace, owner}
	if s.today[who] == nil {
		s.today[who] = &amounts{}
	}
	return s.today[who]
}

// addDay adds what a snapshot has to its day, and reports whether it has any line.
func (s *samples) addDay(found map[string]*seen, day string) (some bool) {
	for n, f := range found {
		if f.running+f.queued == 0 && f.listed > 0 {
			continue // ai4-accounting has no line about jobs that are over or begin
		}
		some = true
		if s.series[n] == nil {
			s.series[n] = map[string]*ai4Day{}
		}
		d := s.series[n][day]
		if d == nil {
			d = &ai4Day{}
			s.series[n][day] = d
		}
		d.rows++
		for i := range f.sum {
			d.sum[i] += f.sum[i]
		}
		d.queued.addLevel(f.queued)
		d.running.addLevel(f.running)
	}
	return some
}

// endDay adds what users had on a day, in the mean of its snapshots.
func (s *samples) endDay(day string) {
	for who, sum := range s.today {
		if s.users[who[0]] == nil {
			s.users[who[0]] = map[string]*[5]*big.Rat{}
		}
		u := s.users[who[0]][who[1]]
		if u == nil {
			u = &[5]*big.Rat{}
			for i := range u {
				u[i] = new(big.Rat)
			}
			s.users[who[0]][who[1]] = u
		}
		for i, n := range sum {
			u[i].Add(u[i], big.NewRat(n, s.snapshots[day]))
		}
	}
}

// writeFiles makes those of a namespace.
func (s *samples) writeFiles(namespace string, users map[string]AI4User, out map[string][]byte) error {
	series := [][]string{append(append([]string{"date"}, ai4Resources()...), "queued", "running")}
	for _, day := range s.days {
		d := s.series[namespace][day]
		if d == nil {
			continue
		}
		line := []string{day}
		for _, n := range d.sum {
			line = append(line, wholeNumber(roundHalfEven(big.NewRat(n, d.rows))))
		}
		series = append(series, append(line, wholeNumber(d.queued.meanLevel()), wholeNumber(d.running.meanLevel())))
	}
	agg := [][]string{append([]string{"owner"}, ai4Resources()...)}
	merged := [][]string{{"user id", "name", "email"}}
	for _, name := range ai4Resources() {
		merged[0] = append(merged[0], name+" / day")
	}
	var total amounts
	for _, owner := range slices.Sorted(maps.Keys(s.users[namespace])) {
		var line []string
		for i, sum := range s.users[namespace][owner] {
			n := roundHalfEven(sum)
			total[i] += n
			line = append(line, wholeNumber(n))
		}
		agg = append(agg, append([]string{owner}, line...))
		if u, known := users[owner]; known {
			merged = append(merged, append([]string{owner, u.Name, u.Email}, line...))
		}
	}
	full := [][]string{ai4Resources(), nil}
	if len(s.users[namespace]) == 0 { // its table of no users has a row of zeros, in all columns
		full = [][]string{agg[0], {wholeNumber(0)}}
	}
	for _, n := range total {
		full[1] = append(full[1], wholeNumber(n))
	}
	tables := map[string][][]string{"timeseries": series, "users-agg": agg, "users-agg-merged": merged, "full-agg": full}
	for name, table := range tables {
		if err := writeSemicolons("summaries/"+namespace+"-"+name+".csv", table, out); err != nil {
			return err
		}
	}
	return nil
}

func wholeNumber(n int64) string { return strconv.FormatInt(n, 10) }

// writeSemicolons writes a table as ai4-accounting does.
func writeSemicolons(name string, table [][]string, out map[string][]byte) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = ';'
	if err := w.WriteAll(table); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out[name] = b.Bytes()
	return nil
}

// usersOf are those of a former file, with what the directory says of who was seen.
func (o *AI4Options) usersOf(s *samples, people []v1.Person, out *AI4Files) map[string]AI4User {
	users := map[string]AI4User{}
	maps.Copy(users, o.Known)
	for _, p := range people {
		if s.owners[p.ID] && (p.Name != "" || p.Email != "") {
			users[p.ID] = AI4User{Name: string(p.Name), Email: string(p.Email)}
		}
	}
	unnamed := 0
	for owner := range s.owners {
		if _, named := users[owner]; !named {
			unnamed++
		}
	}
	if unnamed > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d users are not in the merged files: the directory does not know their names.", unnamed))
	}
	return users
}

// addUsers adds the files of users.
func (f *AI4Files) addUsers(users map[string]AI4User) error {
	table := [][]string{{"user id", "name", "email"}}
	for _, id := range slices.Sorted(maps.Keys(users)) {
		table = append(table, []string{id, users[id].Name, users[id].Email})
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(users); err != nil {
		return fmt.Errorf("%s: %w", AI4Users, err)
	}
	f.Files[AI4Users] = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return writeSemicolons("users/user-db.csv", table, f.Files)
}
