// Package benchmark makes the benchmark record: the jobs of five sites over a
// year, in order of stop time, always the same for a seed.
package benchmark

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/bursar-accounting/bursar/proto/heap"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The kinds of record ids.
const (
	Slurm = "slurm" // nemo-slurm-1234567, and a seventh array ids such as nemo-slurm-1234567_12
	UUID  = "uuid"  // nemo-7f9c24e5-2b1d-4c8a-9f3e-5d6c7b8a9012
)

// yearStart is 2024-01-01T00:00:00Z.
const yearStart = 1704067200 * record.Second

// year is how long the jobs of a generator are submitted for.
const year = 366 * record.Day

// Gen generates records. It belongs to one goroutine.
type Gen struct {
	// Extended adds submit time, end state and exit to the records. Set it
	// before the first call of Next.
	Extended bool

	rng     *rand.Rand
	uuids   bool
	left    int // records not yet submitted
	gap     float64
	now     record.Time
	waiting heap.Heap[record.Record] // by stop and id
	users   []user
	zipf    *rand.Zipf
	next    [5]int64 // job number by site
	array   int      // tasks of the present array left
	voms    []string
}

// user is who submits a job.
type user struct {
	site       int
	name       string
	group      string
	accounts   [2]string
	partitions [4]string
	voms       [3]string
}

var sites = [5]string{"nemo", "helix", "justus", "atlas-fr", "bonna"}

// Generator returns a generator of n records whose stops are spread over a year,
// with ids of kind [Slurm] or [UUID].
func Generator(seed uint64, n int, ids string) *Gen {
	rng := rand.New(rand.NewPCG(seed, 0xb0a5a))
	g := &Gen{rng: rng, uuids: ids == UUID, left: n, gap: float64(year) / float64(max(n, 1)), now: yearStart}
	g.waiting.Less = func(a, b record.Record) bool {
		return cmp.Or(cmp.Compare(a.Stop, b.Stop), strings.Compare(a.ID, b.ID)) < 0
	}
	g.zipf = rand.NewZipf(rng, 1.15, 8, 1499)
	for i := range g.next {
		g.next[i] = 1_000_000 + int64(i)*777_777
	}
	for i := range 300 {
		g.voms = append(g.voms, fmt.Sprintf("/vo%02d/group%d/Role=role%d", i%17, i%9, i))
	}
	for i := range 1500 {
		g.users = append(g.users, g.newUser(i))
	}
	return g
}

func (g *Gen) newUser(i int) user {
	u := user{site: i % 5, name: fmt.Sprintf("user%04d", i), group: fmt.Sprintf("group%02d", i%60)}
	for k := range u.accounts {
		u.accounts[k] = fmt.Sprintf("acct%03d", (i*7+k*101)%200)
	}
	for k := range u.partitions {
		u.partitions[k] = fmt.Sprintf("%s-part%d", sites[u.site], k)
	}
	for k := range u.voms {
		u.voms[k] = g.voms[(i*3+k)%300]
	}
	return u
}

// All yields the remaining records.
func (g *Gen) All() iter.Seq[record.Record] {
	return func(yield func(record.Record) bool) {
		for {
			r, ok := g.Next()
			if !ok || !yield(r) {
				return
			}
		}
	}
}

// Next returns the record with the next stop; false after the last.
func (g *Gen) Next() (record.Record, bool) {
	for g.left > 0 && (len(g.waiting.Items) == 0 || g.waiting.Items[0].Stop > g.now) {
		g.queueRecord()
	}
	if len(g.waiting.Items) == 0 {
		return record.Record{}, false
	}
	return g.waiting.Pop(), true
}

// queueRecord puts one more record into the queue.
func (g *Gen) queueRecord() {
	g.left--
	g.now += record.Time(g.rng.ExpFloat64() * g.gap)
	u := &g.users[g.zipf.Uint64()]
	start := g.now + record.Time(math.Min(g.logNormal(300, 1.5), 86400)*1e6)
	runtime := math.Min(g.logNormal(3000, 2), 7*86400)
	r := record.Record{Start: start, Stop: start + record.Time(runtime*1e6), Submit: record.None}
	if r.Stop == r.Start {
		r.Stop++
	}
	partition := g.smallNumber(4)
	r.ID = g.nextID(u)
	r.Meta = g.newMeta(u, partition)
	r.Components = g.newComponents(partition, runtime)
	if g.Extended {
		r.Submit = g.now
		r.State, r.Exit = g.randomEnd()
	}
	g.waiting.Push(r)
}

func (g *Gen) logNormal(median, sigma float64) float64 {
	return median * math.Exp(sigma*g.rng.NormFloat64())
}

// smallNumber returns a number below n, small ones more often.
func (g *Gen) smallNumber(n int) int { return min(int(g.rng.ExpFloat64()), n-1) }

func (g *Gen) nextID(u *user) string {
	site := sites[u.site]
	if g.uuids {
		return site + "-" + g.newUUID()
	}
	if g.array == 0 && g.rng.IntN(180) == 0 {
		g.array = 30
		g.next[0]++
	}
	if g.array > 0 {
		g.array--
		return fmt.Sprintf("%s-slurm-%d_%d", sites[0], g.next[0], 30-g.array)
	}
	g.next[u.site]++
	return fmt.Sprintf("%s-slurm-%d", site, g.next[u.site])
}

func (g *Gen) newUUID() string {
	var raw [16]byte
	for i := range raw {
		raw[i] = byte(g.rng.Uint32())
	}
	s := hex.EncodeToString(raw[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func (g *Gen) newMeta(u *user, partition int) record.Meta {
	one := func(key, value string) record.MetaEntry {
		return record.MetaEntry{Key: key, Values: []string{value}}
	}
	m := record.Meta{one("account", u.accounts[g.smallNumber(2)])}
	grid := g.rng.IntN(5) == 0
	if grid {
		m = append(m, one("comment", fmt.Sprintf("job %08x of task %d", g.rng.Uint32(), 30_000_000+int64(g.now-yearStart)/int64(record.Hour))))
	}
	m = append(m, one("group_id", u.group), one("partition", u.partitions[partition]), one("site_id", sites[u.site]), one("user_id", u.name))
	if grid {
		m = append(m, one("voms", u.voms[g.smallNumber(3)]))
	}
	return m
}

func (g *Gen) newComponents(partition int, runtime float64) []record.Component {
	cores := int64(1) << g.smallNumber(7)
	perCore := []int64{2000, 4000, 1900, 8000}[g.smallNumber(4)]
	busy := runtime * float64(cores) * (0.5 + g.rng.Float64()/2)
	c := []record.Component{
		{Name: "Cores", Amount: cores, Scores: []record.Score{{Name: "HEPScore23", Value: []float64{10, 21.5, 14.25, 17}[partition]}}},
		{Name: "Memory", Amount: cores * perCore},
		{Name: "NNodes", Amount: 1 + cores/64},
		{Name: "TotalCPU", Amount: int64(busy), Kind: record.Total},
	}
	if g.rng.IntN(20) == 0 {
		c = append(c, record.Component{Name: "GPUs", Amount: 1 + int64(g.smallNumber(4))})
	}
	return c
}

func (g *Gen) randomEnd() (string, record.Exit) {
	switch g.rng.IntN(20) {
	case 0:
		return "TIMEOUT", record.Exit{Known: true, Signal: 15}
	case 1:
		return "FAILED", record.Exit{Known: true, Code: int32(1 + g.smallNumber(4))}
	}
	return "COMPLETED", record.Exit{Known: true}
}
