package job_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// partial are milli_gpus and partial_gpus of a run that has tres, and why they are null.
func partial(t *testing.T, tres, nodes string, part job.Part) (milli, some sdk.Value, why string) {
	t.Helper()
	names := []string{"milli_gpus", "partial_gpus"}
	plan, err := job.NewPlan(func(name string) bool { return slices.Contains(names, name) },
		[]string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "AllocTRES", "NodeList"})
	if err != nil {
		t.Fatal(err)
	}
	plan.Part = part
	r, err := plan.Run(plan.Fields(map[string]string{"JobIDRaw": "7", "JobID": "7", "State": "COMPLETED", "Submit": "1", "Start": "2", "End": "3",
		"AllocTRES": tres, "NodeList": nodes}))
	if err != nil {
		t.Fatal(err)
	}
	values, unread := plan.Values(r)
	at := func(name string) sdk.Value {
		return values[slices.IndexFunc(job.Attributes(), func(a sdk.Attribute) bool { return a.Name == name })]
	}
	for _, u := range unread {
		why = u.Problem
	}
	return at(names[0]), at(names[1]), why
}

// perCard is what n1 has: four shards and a hundred shares by MPS of each card.
func perCard(resource, _, nodes string) (*big.Rat, error) {
	of := map[string]int64{"gpu": 1, "shard": 4, "mps": 100}[resource]
	if nodes != "n1" || of == 0 {
		return nil, fmt.Errorf("%s has no %s", nodes, resource)
	}
	return big.NewRat(1, of), nil
}

func TestMilliGPUs_AnyMix_IsTheSumOfItsParts(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	parts := map[string]*big.Rat{
		"gpu:a100": big.NewRat(1, 1), "gpu:a100_3g.20gb": big.NewRat(3, 7), "gpu:nvidia_a30_1g.6gb": big.NewRat(1, 4), "gpu:1g.5gb": big.NewRat(1, 7),
		"shard": big.NewRat(1, 4), "mps": big.NewRat(1, 100), "gpu": big.NewRat(1, 1),
	}
	for range 2000 {
		tres, want, gpus, typed, some := []string{"cpu=4"}, big.NewRat(1, 2000), int64(0), int64(0), false
		for name, part := range parts {
			n := r.Int64N(4)
			if r.IntN(2) == 0 || n == 0 {
				continue
			}
			want.Add(want, new(big.Rat).Mul(part, big.NewRat(n, 1)))
			some = some || !slices.Contains([]string{"gpu", "gpu:a100"}, name)
			if strings.HasPrefix(name, "gpu") {
				gpus += n
			}
			if name != "gpu" {
				tres, typed = append(tres, fmt.Sprintf("gres/%s=%d", name, n)), typed+n
			}
		}
		tres = append(tres, fmt.Sprintf("gres/gpu=%d", gpus))
		r.Shuffle(len(tres), func(i, j int) { tres[i], tres[j] = tres[j], tres[i] })
		want.Mul(want, big.NewRat(1000, 1))
		milli, partly, why := partial(t, strings.Join(tres, ","), "n1", perCard)
		if milli.IsNull() || milli.Int() != new(big.Int).Quo(want.Num(), want.Denom()).Int64() || partly.Bool() != some {
			t.Fatalf("seed %d: %s: %v, %v (%s); want %s, %t", seed, tres, milli, partly, why, want.FloatString(3), some)
		}
	}
}

func TestMilliGPUs_ShareOfUnknownSize_IsNullAndNamed(t *testing.T) {
	for tres, want := range map[string]string{
		"gres/shard=2": "shard", "gres/mps:a100=2,gres/mps=2": "mps", "gres/gpu:a100_9g.20gb=1": "9g.20gb", "gres/gpu:1g.24gb=1": "the model of the card is not known",
		"gres/gpu=1,gres/shard=1": "shard",
	} {
		if milli, some, why := partial(t, tres, "n1", nil); !milli.IsNull() || !some.Bool() || !strings.Contains(why, want) {
			t.Errorf("%s: %v, %v (%s)", tres, milli, some, why)
		}
	}
	if milli, _, why := partial(t, "gres/shard=1", "", perCard); !milli.IsNull() || !strings.Contains(why, "NodeList is empty") {
		t.Errorf("without nodes: %v (%s)", milli, why)
	}
	for _, tres := range []string{"gres/gpu:a=9E", "gres/gpu=many", "gres/shard=9E"} {
		if milli, _, why := partial(t, tres, "n1", perCard); !milli.IsNull() || !strings.Contains(why, "AllocTRES") {
			t.Errorf("%s: %v (%s)", tres, milli, why)
		}
	}
}

func TestMilliGPUs_WholeCards_NeedNoNodes(t *testing.T) {
	for tres, want := range map[string]int64{"": 0, "cpu=1": 0, "gres/gpu=2": 2000, "gres/gpu=3,gres/gpu:a100=1": 3000, "gres/gpu:a100=4,gres/gpu:v100=2": 6000} {
		for _, part := range []job.Part{nil, perCard} {
			if milli, some, why := partial(t, tres, "", part); milli.IsNull() || milli.Int() != want || some.Bool() {
				t.Errorf("%s: %v, %v (%s); want %d", tres, milli, some, why, want)
			}
		}
	}
}

func TestGPUModel_Types_AreJoined(t *testing.T) {
	available := []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "AllocTRES"}
	plan, err := job.NewPlan(func(name string) bool { return name == "gpu_model" }, available)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(job.Attributes(), func(a sdk.Attribute) bool { return a.Name == "gpu_model" })
	for tres, want := range map[string]string{
		"": "", "cpu=1": "", "gres/gpu=2": "", "gres/shard=2": "", "gres/gpu:a100=0": "", "gres/gpu=2,gres/gpu:a100=2": "a100",
		"gres/gpu:v100=1,gres/gpu:a100=2": "a100,v100", "gres/gpu:a100_3g.20gb=1": "a100_3g.20gb", "gres/shard=4,gres/shard:gb10=4": "gb10", "gres/mps:a100=50,gres/gpu:a100=1": "a100",
	} {
		r, err := plan.Run(plan.Fields(map[string]string{"JobIDRaw": "7", "JobID": "7", "State": "COMPLETED", "Submit": "1", "Start": "2", "End": "3", "AllocTRES": tres}))
		if err != nil {
			t.Fatal(err)
		}
		values, unread := plan.Values(r)
		if got := values[at]; got.IsNull() != (want == "") || !got.IsNull() && got.Str() != want || len(unread) > 0 {
			t.Errorf("%s: %v, %v; want %q", tres, got, unread, want)
		}
	}
}
