package mig_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
)

func TestShare_Profile_IsItsComputeSlices(t *testing.T) {
	for _, c := range []struct {
		profile, model string
		want           *big.Rat
	}{
		{"1g.5gb", "", big.NewRat(1, 7)}, {"3g.20gb", "", big.NewRat(3, 7)}, {"7g.80gb", "", big.NewRat(1, 1)},
		{"1c.3g.20gb", "", big.NewRat(1, 7)}, {"1g.10gb.me", "", big.NewRat(1, 7)}, {"1g.10gb+me", "", big.NewRat(1, 7)}, {"1g.10gb_me", "", big.NewRat(1, 7)}, {"1g.10gbx", "", nil},
		{"2g.12gb", "", big.NewRat(1, 2)}, {"1g.24gb", "nvidia_h100", big.NewRat(1, 7)}, {"1g.24gb", "nvidia_rtx_pro_6000", big.NewRat(1, 4)},
		{"1g.24gb", "", nil}, {"9g.20gb", "", nil}, {"3g", "", nil}, {"", "", nil},
	} {
		got, err := mig.Share(c.profile, c.model)
		if (err == nil) != (c.want != nil) || err == nil && got.Cmp(c.want) != 0 {
			t.Errorf("%s of %q: %v, %v; want %v", c.profile, c.model, got, err, c.want)
		}
	}
	if _, err := mig.Share("1g.24gb", ""); !errors.Is(err, mig.ErrModel) {
		t.Error(err)
	}
}

// Names of Slurm's AutoDetect=nvml, of CUDA and HTCondor, and those that people write.
func TestProfile_Name_IsSplitFromTheModel(t *testing.T) {
	for name, want := range map[string][2]string{
		"1g.5gb": {"1g.5gb", ""}, "a100_1g.5gb": {"1g.5gb", "a100"}, "nvidia_a100_3g.20gb": {"3g.20gb", "nvidia_a100"},
		"nvidia_h100_80gb_hbm3_4g.40gb": {"4g.40gb", "nvidia_h100_80gb_hbm3"}, "nvidia_a100_1c.3g.20gb": {"1c.3g.20gb", "nvidia_a100"},
		"A100-SXM4-40GB-MIG-2g.10gb": {"2g.10gb", "A100-SXM4-40GB-MIG"}, "a100_9g.20gb": {"9g.20gb", "a100"}, "a100_1g.10gb.me": {"1g.10gb.me", "a100"},
		"NVIDIA A100-SXM4-40GB MIG 1g.5gb": {"1g.5gb", "NVIDIA A100-SXM4-40GB MIG"}, "NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb": {"1c.2g.20gb", "NVIDIA H100 80GB HBM3 MIG"},
		"NVIDIA H100 80GB HBM3": {"", "NVIDIA H100 80GB HBM3"},
		"a100":                  {"", "a100"}, "nvidia_a100-sxm4-80gb": {"", "nvidia_a100-sxm4-80gb"}, "h100_80gb_hbm3": {"", "h100_80gb_hbm3"}, "": {"", ""},
	} {
		profile, model, slice := mig.Profile(name)
		if profile != want[0] || model != want[1] || slice != (want[0] != "") {
			t.Errorf("%s: %q, %q, %t; want %q", name, profile, model, slice, want)
		}
	}
}

func TestThousandths_AreRoundedHalfUp(t *testing.T) {
	for want, cards := range map[int64]*big.Rat{0: new(big.Rat), 429: big.NewRat(3, 7), 1: big.NewRat(1, 2000), 2500: big.NewRat(5, 2)} {
		if got, err := mig.Thousandths(cards); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", cards, got, err, want)
		}
	}
	if n, err := mig.Thousandths(new(big.Rat).SetInt64(1 << 60)); err == nil {
		t.Errorf("2^60 cards are %d thousandths", n)
	}
}
