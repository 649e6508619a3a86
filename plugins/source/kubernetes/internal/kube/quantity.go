package kube

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Unit is what an amount is given in.
type Unit = resource.Scale

// The units: thousandths, and ones.
const (
	Milli Unit = resource.Milli
	One   Unit = 0
)

// most is the greatest amount that is believed, in units of one; Kubernetes itself
// writes what is more as the greatest integer that it has.
const most = math.MaxInt64 / 1000

// Amount returns a quantity as Kubernetes writes it, such as 1500m, 2Gi or 1e3, in
// thousandths or in units of one, rounded up.
func Amount(text string, unit Unit) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err == nil && !strings.ContainsAny(text, "0123456789") {
		err = resource.ErrFormatWrong // a unit alone, such as Gi, is parsed as 0
	}
	if err != nil {
		return 0, fmt.Errorf("quantity %q: %w", text, err)
	}
	if q.Sign() < 0 || q.CmpInt64(most) > 0 {
		return 0, fmt.Errorf("quantity %q out of range: must be between 0 and %d", text, int64(most))
	}
	return q.ScaledValue(unit), nil
}
