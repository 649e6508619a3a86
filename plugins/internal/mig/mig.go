// Package mig knows the slices into which NVIDIA's cards are cut (Multi-Instance GPU).
package mig

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// ErrModel says that the profile of a slice belongs to several cards, and that the model of
// the card is not known.
var ErrModel = errors.New("the model of the card is not known")

var profiles = regexp.MustCompile(`^(?:([1-7])c\.)?([1-7])g\.(\d+gb)(?:[^0-9A-Za-z]|$)`)

// Share returns how much of a card a profile is, such as 3g.20gb, or 1c.3g.20gb for one
// compute slice of it. Cards have seven compute slices, and some four. The model decides
// where cards of both kinds have the profile: without it the error is [ErrModel].
func Share(profile, model string) (*big.Rat, error) {
	m := profiles.FindStringSubmatch(profile)
	if m == nil {
		return nil, fmt.Errorf("unknown profile %q of a slice", profile)
	}
	of := int64(7)
	switch m[2] + "g." + m[3] {
	case "1g.6gb", "2g.12gb", "4g.24gb", "2g.48gb", "4g.96gb": // of the A30 and the RTX PRO 6000
		of = 4
	case "1g.24gb": // of the RTX PRO 6000 or of an H100
		if model == "" {
			return nil, ErrModel
		}
		if strings.Contains(strings.ToUpper(model), "RTX") {
			of = 4
		}
	}
	used := m[2]
	if m[1] != "" {
		used = m[1]
	}
	return big.NewRat(int64(used[0]-'0'), of), nil
}

// Card returns how much of a card a GPU is whose type has this name: all of it, unless the
// name ends with the profile of a slice.
func Card(name string) (*big.Rat, error) {
	profile, model, slice := Profile(name)
	if !slice {
		return big.NewRat(1, 1), nil
	}
	part, err := Share(profile, model)
	if err != nil {
		return nil, fmt.Errorf("GPUs of type %q: %w", name, err)
	}
	return part, nil
}

var suffix = regexp.MustCompile(`(?:^|[ _-])((?:\dc\.)?\dg\.\d+gb.*)$`)

// Profile returns the profile of a slice at the end of a name, such as a100_3g.20gb or
// NVIDIA A100-SXM4-40GB MIG 3g.20gb, and the model before it; false where the name is that of whole cards.
func Profile(name string) (profile, model string, slice bool) {
	at := suffix.FindStringSubmatchIndex(name)
	if at == nil {
		return "", name, false
	}
	return name[at[2]:], name[:at[0]], true
}

// Thousandths returns cards in thousandths, rounded half up.
func Thousandths(cards *big.Rat) (int64, error) {
	sum := new(big.Rat).Add(cards, big.NewRat(1, 2000))
	sum.Mul(sum, big.NewRat(1000, 1))
	n := new(big.Int).Quo(sum.Num(), sum.Denom())
	if !n.IsInt64() {
		return 0, fmt.Errorf("%s cards are too many", cards.FloatString(0))
	}
	return n.Int64(), nil
}
