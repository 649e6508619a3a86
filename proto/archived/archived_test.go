package archived_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
)

func row(rng *rand.Rand, n int) archived.Row {
	r := archived.Row{
		Record: record.Record{
			ID: "nemo-" + string(rune('a'+n%26)), Start: record.Time(rng.Int64N(1e15)), Stop: record.Time(rng.Int64N(1e15)), Submit: record.None,
			State: []string{"", "COMPLETED"}[rng.IntN(2)], Exit: record.Exit{Known: rng.IntN(2) == 0},
		},
		Origin: record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}, Rank: record.RankScheduler,
		Version: record.Version{Ended: rng.IntN(2) == 0, Observed: rng.Int64()}, Stop: record.None,
		Seq: rng.Uint64(), Received: record.Time(-rng.Int64N(1e9)), Changed: record.Time(rng.Int64N(1e9)), Supersedes: rng.Uint64N(9),
	}
	if r.Record.Exit.Known {
		r.Record.Exit.Code, r.Record.Exit.Signal = rng.Int32(), -3
	}
	switch rng.IntN(3) {
	case 0:
		r.Record.Meta = record.Meta{}
	case 1:
		r.Record.Meta = record.Meta{{Key: "group_id", Values: []string{"b", "a", "é%/"}}, {Key: "user_id", Values: []string{""}}}
	}
	switch rng.IntN(3) {
	case 0:
		r.Record.Components = []record.Component{}
	case 1:
		r.Record.Components = []record.Component{{Name: "Cores", Amount: rng.Int64(), Kind: record.Total, Scores: []record.Score{{Name: "HEPScore23", Value: rng.Float64()}}}}
	}
	if rng.IntN(3) == 0 {
		r.Stop, r.StopObserved = record.Time(rng.Int64N(1e15)), rng.Int64()
	}
	return r
}

func TestRow_AnyRow_ComesBackAsItWas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		r := row(rng, n)
		b := r.Append(nil)
		got, err := archived.Decode(b)
		if err != nil || !bytes.Equal(got.Append(nil), b) || !record.Same(&got.Record, &r.Record) ||
			(got.Record.Meta == nil) != (r.Record.Meta == nil) || (got.Record.Components == nil) != (r.Record.Components == nil) {
			t.Fatalf("%+v\n%+v\n%v", got, r, err)
		}
		if got.Record, r.Record = (record.Record{}), (record.Record{}); got.Origin != r.Origin || got.Version != r.Version ||
			got.Stop != r.Stop || got.Seq != r.Seq || got.Received != r.Received || got.Changed != r.Changed {
			t.Fatalf("%+v\n%+v", got, r)
		}
	}
}

func TestReadStream_CutOffOrChanged_IsAnError(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var sum archived.Sum
	for n := range 5 {
		r := row(rng, n)
		sum.Add(r.Append(nil))
		stream = archived.AppendPart(stream, r.Append(nil))
	}
	stream = archived.AppendSeal(stream, archived.Seal{Sum: sum, UpTo: 7})
	none := func(archived.Row, []byte) error { return nil }
	seal, err := archived.ReadStream(bytes.NewReader(stream), none)
	if err != nil || seal.Sum != sum || seal.UpTo != 7 {
		t.Fatalf("%+v, %v", seal, err)
	}
	again, err := archived.ParseSum(sum.Count, sum.Digest())
	if err != nil || again != sum {
		t.Fatalf("%+v, %v", again, err)
	}
	for n := range stream {
		if _, err := archived.ReadStream(bytes.NewReader(stream[:n]), none); !errors.Is(err, archived.ErrRow) {
			t.Fatalf("cut off at %d: %v", n, err)
		}
		bad := bytes.Clone(stream)
		bad[n] ^= 1 << rng.IntN(8)
		if got, err := archived.ReadStream(bytes.NewReader(bad), none); err == nil && got == seal {
			t.Fatalf("byte %d changed, and it reads", n)
		}
	}
}
