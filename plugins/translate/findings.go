package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Bounds of what [Findings] keeps of one source.
const (
	MaxFindings     = 32  // kinds of findings
	maxFindingRuns  = 256 // runs of each that are known one by one
	maxFindingBytes = 512 // of each text
)

// ComponentMissing is the kind of the finding that records have no component that other
// records of the same source have.
const ComponentMissing = "component-missing"

// AttributeUnreadable is the kind of the finding that an attribute of jobs cannot be read.
const AttributeUnreadable = "attribute-unreadable"

// OtherFindings is the kind of the finding that stands for all kinds which are too many.
const OtherFindings = "others"

// Finding is something that people should know of records of a source that are counted.
type Finding struct {
	Kind    string    `json:"kind"`
	About   string    `json:"about"`
	What    string    `json:"what"` // a sentence without full stop
	Do      string    `json:"do"`
	Count   int64     `json:"count"` // records
	First   time.Time `json:"first"` // earliest and latest time that these records touch
	Last    time.Time `json:"last"`
	Example string    `json:"example"` // id of one of the records
	Noticed time.Time `json:"noticed"` // when the latest of them was found
}

// String says it in one line, without what to do.
func (x *Finding) String() string {
	return fmt.Sprintf("%s: %s, from %s to %s UTC, for example %s", recordCount(x.Count), x.What, shortTime(x.First), shortTime(x.Last), x.Example)
}

func recordCount(n int64) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}

func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// Findings collects what is found about the records of one source. A run that comes
// again counts once, and no more when nothing is found: of up to 256 runs of each finding
// exactly, beyond that a run that comes again may count again. It is for one goroutine at
// a time; the zero value is empty.
type Findings struct {
	list  map[findingKey]*found
	given map[string]int64 // records that have each component
	dirty bool
}

type findingKey struct{ kind, about string }

type found struct {
	Finding

	Runs []uint64 `json:"runs"` // hashes, sorted
}

// Note takes in the record that the mapping made of a job, at a time.
func (f *Findings) Note(m Mapper, job *bursarv1.Job, r *record.Record, now time.Time) {
	all := job.GetFindings()
	for _, name := range m.Lacking(job, r) {
		all = append(slices.Clip(all), &bursarv1.Finding{
			Kind: ComponentMissing, About: name, What: fmt.Sprintf("component %q is missing, which other records of the source have", name),
			Do: fmt.Sprintf("bursar-agent preview   # then give component %q an amount for such jobs in the record block, for example amount = coalesce(..., 0)", name),
		})
	}
	for _, u := range job.GetUnread() {
		all = append(slices.Clip(all), unreadableFinding(u.GetAttribute(), "attribute "+u.GetAttribute(), u.GetProblem()))
	}
	for _, u := range m.Unread(job, r) {
		part := mapping.ComponentPart(u.Component)
		all = append(slices.Clip(all), unreadableFinding(part, part, u.Problem))
	}
	f.countComponents(r)
	run := runHash(job.GetRun())
	for key, x := range f.list {
		if !slices.ContainsFunc(all, func(n *bursarv1.Finding) bool { return key == (findingKey{trimTo(n.GetKind()), trimTo(n.GetAbout())}) }) {
			f.resolveFinding(key, x, run)
		}
	}
	for _, n := range all {
		f.addFinding(n, run, r, now)
	}
}

func unreadableFinding(about, what, problem string) *bursarv1.Finding {
	return &bursarv1.Finding{
		Kind: AttributeUnreadable, About: about, What: fmt.Sprintf("%s cannot be read: %s", what, problem),
		Do: "correct the value where the source reads it, then collect its time again: bursar-agent recollect   # until then, what depends on it is unknown",
	}
}

// countComponents counts which components r has.
func (f *Findings) countComponents(r *record.Record) {
	if f.given == nil {
		f.given = map[string]int64{}
	}
	for i := range r.Components {
		name := r.Components[i].Name
		n, known := f.given[name]
		if !known && len(f.given) >= maxFindingRuns {
			continue
		}
		f.given[name] = n + 1
		x := f.list[findingKey{ComponentMissing, name}]
		f.dirty = f.dirty || x != nil && n == x.Count // it is listed from now on
	}
}

// Resolve notes that a run gives no record any more.
func (f *Findings) Resolve(job *bursarv1.Job) {
	run := runHash(job.GetRun())
	for key, x := range f.list {
		f.resolveFinding(key, x, run)
	}
}

func (f *Findings) resolveFinding(key findingKey, x *found, run uint64) {
	i, ok := slices.BinarySearch(x.Runs, run)
	if !ok {
		return
	}
	x.Runs, f.dirty = slices.Delete(x.Runs, i, i+1), true
	if x.Count--; len(x.Runs) == 0 { // also where there were more: those that are not in order come again
		delete(f.list, key)
	}
}

func (f *Findings) addFinding(n *bursarv1.Finding, run uint64, r *record.Record, now time.Time) {
	key := findingKey{trimTo(n.GetKind()), trimTo(n.GetAbout())}
	x := f.list[key]
	if x == nil && len(f.list) >= MaxFindings-1 {
		key = findingKey{kind: OtherFindings}
		n = &bursarv1.Finding{Kind: OtherFindings, What: "there are more kinds of findings than are listed", Do: "mend what is listed first; then collect the time again: bursar-agent recollect"}
		x = f.list[key]
	}
	if x == nil {
		if f.list == nil {
			f.list = map[findingKey]*found{}
		}
		x = &found{Finding: Finding{Kind: key.kind, About: key.about, First: r.Start.Std().UTC()}}
		f.list[key] = x
	}
	at, known := slices.BinarySearch(x.Runs, run)
	if known {
		return
	}
	if len(x.Runs) < maxFindingRuns {
		x.Runs = slices.Insert(x.Runs, at, run)
	}
	f.dirty = true
	x.Count++
	x.What, x.Do, x.Example, x.Noticed = trimTo(n.GetWhat()), trimTo(n.GetDo()), r.ID, now.UTC()
	end := r.Stop
	if r.Open() {
		end = r.Start
	}
	if start := r.Start.Std().UTC(); start.Before(x.First) {
		x.First = start
	}
	if at := end.Std().UTC(); at.After(x.Last) {
		x.Last = at
	}
}

// List returns the findings, those of most records first. A component is missing only
// where more records have it than not.
func (f *Findings) List() []Finding {
	out := []Finding{}
	for _, x := range f.list {
		if x.Kind != ComponentMissing || f.given[x.About] > x.Count {
			out = append(out, x.Finding)
		}
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.About, b.About))
	})
	return out
}

// storedFindings is the form in which findings are kept on disk.
type storedFindings struct {
	Format int              `json:"format"` // 1
	Given  map[string]int64 `json:"given"`
	List   []*found         `json:"list"`
}

// Encode returns the findings in the form that [DecodeFindings] reads; nil when they have
// not changed since the last [Findings.Saved].
func (f *Findings) Encode() []byte {
	if !f.dirty {
		return nil
	}
	s := storedFindings{Format: 1, Given: map[string]int64{}, List: slices.Collect(maps.Values(f.list))}
	for name, n := range f.given { // only those that the findings need, so that the size is bounded
		if _, needed := f.list[findingKey{ComponentMissing, name}]; needed {
			s.Given[name] = n
		}
	}
	slices.SortFunc(s.List, func(a, b *found) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.About, b.About))
	})
	out, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return out
}

// Saved notes that what Encode returned is on disk.
func (f *Findings) Saved() { f.dirty = false }

// FindingsOut are findings as they go to aggregators.
func FindingsOut(list []Finding) []*bursarv1.Finding {
	var out []*bursarv1.Finding
	for i := range list {
		x := &list[i]
		out = append(out, &bursarv1.Finding{Kind: x.Kind, About: x.About, What: x.What, Do: x.Do, Count: x.Count,
			First: x.First.UnixMicro(), Last: x.Last.UnixMicro(), Example: x.Example, Noticed: x.Noticed.UnixMicro()})
	}
	return out
}

// DecodeFindings reads findings; nothing is none.
func DecodeFindings(stored []byte) (*Findings, error) {
	f := &Findings{list: map[findingKey]*found{}, given: map[string]int64{}}
	if len(stored) == 0 {
		return f, nil
	}
	var s storedFindings
	if err := json.Unmarshal(stored, &s); err != nil {
		return f, fmt.Errorf("invalid findings: %w", err)
	}
	if s.Format != 1 {
		return f, fmt.Errorf("findings of unknown format %d", s.Format)
	}
	for _, x := range s.List {
		if x != nil && len(f.list) < MaxFindings {
			slices.Sort(x.Runs)
			f.list[findingKey{x.Kind, x.About}] = x
		}
	}
	maps.Copy(f.given, s.Given)
	return f, nil
}

func trimTo(s string) string { return text.Clip(s, maxFindingBytes) }

func runHash(run string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(run)) // never fails
	return h.Sum64()
}
