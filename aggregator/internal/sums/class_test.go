package sums

import (
	"fmt"
	"maps"
	"regexp"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// wings says where users sit: the first pattern that matches counts.
func wings(west string) []Class {
	return []Class{{Name: "wing", From: "user", Rules: []Rule{
		{regexp.MustCompile("^user[0-3]$"), "east"}, {regexp.MustCompile(west), "west"}, {regexp.MustCompile("^user4"), "never"},
	}}}
}

func wingOf(g Group) string {
	switch {
	case g.Lacks[0] || g.Values[0] >= "user6":
		return "nobody"
	case g.Values[0] <= "user3":
		return "east"
	}
	return "west"
}

func (b *box) answer(q Query, ask func(Query) (*Answer, error)) *Answer {
	b.t.Helper()
	a, err := ask(q)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// byName are the figures of an answer, put together by a name of its groups.
func byName(a *Answer, name func(Group) string) map[string]string {
	sums, counts := map[string]Sum{}, map[string]uint64{}
	buckets := len(a.Edges) - 1
	for g := range a.Groups {
		for k := range buckets {
			cell := fmt.Sprint(name(a.Groups[g]), " ", k)
			counts[cell] += a.Records[g*buckets+k]
			for _, c := range a.Components {
				sums[cell+c.Name] = sums[cell+c.Name].Add(c.Used[g*buckets+k])
			}
		}
	}
	out := map[string]string{}
	for k, v := range sums {
		note(out, k, v)
	}
	for k, v := range counts {
		note(out, k, v)
	}
	return out
}

func TestAClassIsAKeyOfTheIndexAndOfTheRows(t *testing.T) {
	b := newBox(t, 11)
	for range 30 {
		b.step()
	}
	b.post(record.Record{
		ID: "two", Start: t0, Stop: t0 + record.Day, Meta: record.Meta{{Key: "user", Values: []string{"user1", "user5"}}}, Components: b.components(),
	})
	classes := wings("^user[45]$")
	x := newIndex(t, Options{Views: b, Life: life, Classes: classes}, []string{"site", "wing"})
	ways := map[string]int{}
	for range 60 {
		q := b.question(x.grid)
		if b.rng.IntN(2) == 0 {
			q.Where = store.Query{}
		}
		q.By, q.People, q.Credit, q.Keep, q.Counts = []string{"user"}, "", Spread, nil, true
		want := b.answer(q, func(q Query) (*Answer, error) { return Rows(t.Context(), b, q) })
		q.By = []string{"wing"}
		got := b.answer(q, func(q Query) (*Answer, error) { return x.Answer(t.Context(), q) })
		ways[got.Way]++
		is := byName(got, func(g Group) string {
			if g.Lacks[0] {
				return "nobody"
			}
			return g.Values[0]
		})
		if should := byName(want, wingOf); !maps.Equal(is, should) {
			t.Fatalf("%s: got %v\nwant %v", got.Way, is, should)
		}
	}
	if ways["scan"] == 0 {
		t.Error(ways)
	}
	if found, err := x.Check(t.Context()); err != nil || found != nil {
		t.Error(found, err)
	}
}

func TestPatternsThatChangeMakeTheIndexAnew(t *testing.T) {
	b := newBox(t, 12)
	b.ingest(record.None, record.Write{
		Op: record.OpPut, ID: "job", Origin: source(), Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: 1},
		Record: &record.Record{ID: "job", Start: t0, Stop: t0 + record.Hour, Submit: record.None, Meta: record.Meta{{Key: "user", Values: []string{"user7"}}}},
	})
	k := kept(t, b, Options{})
	zones := []string{"UTC"}
	q := Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"wing"}, Counts: true}
	until := func(way, wing string) {
		t.Helper()
		eventually(t, k, q, func(a *Answer) bool {
			return a.Way == way && len(a.Groups) == 1 && a.Groups[0].Values[0] == wing && a.Groups[0].Lacks[0] == (wing == "")
		})
	}
	k.Set(Settings{Dimensions: []string{"wing"}, Zones: zones, Classes: wings("^user5")})
	until("index", "")
	k.Set(Settings{Dimensions: []string{"wing"}, Zones: zones, Classes: wings("^user[57]")})
	until("index", "west")
	k.Set(Settings{Dimensions: []string{"site"}, Zones: zones, Classes: wings("^user[57]")})
	until("scan", "west")
	k.Set(Settings{Dimensions: []string{"site"}, Zones: zones, Classes: wings("^user5")})
	until("scan", "")
	k.Set(Settings{Classes: wings("^user7")})
	until("scan", "west")
}

func TestConditionsAreAboutTheMetaKeyThatAClassHides(t *testing.T) {
	b := newBox(t, 13)
	for _, site := range []string{"north", "south"} {
		b.post(record.Record{ID: site, Start: t0, Stop: t0 + record.Hour, Submit: record.None, Meta: record.Meta{{Key: "site", Values: []string{site}}, {Key: "wing", Values: []string{site}}}})
	}
	classes := []Class{{Name: "wing", From: "site", Rules: []Rule{{regexp.MustCompile(""), "any"}}}}
	x := newIndex(t, Options{Views: b, Life: life, Classes: classes}, []string{"wing"})
	q := Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"wing"}, Counts: true}
	q.Where.Allowed = [][]store.MetaTest{{{Key: "wing", Any: []string{"north"}}}}
	a := b.answer(q, func(q Query) (*Answer, error) { return x.Answer(t.Context(), q) })
	if len(a.Groups) != 1 || a.Groups[0].Values[0] != "any" || a.Runs != 1 {
		t.Errorf("%+v", a)
	}
}
