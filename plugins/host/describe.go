package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

const (
	maxAttributes = 1000
	maxMapping    = 1 << 20
	minInterval   = 100 * time.Millisecond
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,127}$`)

// Describe asks a source plugin what it is and checks the answer with
// CheckDescription.
func (p *Process) Describe(ctx context.Context) (*bursarv1.DescribeResponse, error) {
	d, err := p.Source().Describe(ctx, &bursarv1.DescribeRequest{})
	if err == nil {
		err = CheckDescription(p.spec.Type, d)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: describe: %w", p.spec.specName(), err)
	}
	return d, nil
}

// CheckDescription returns nil when d can be what the source plugin of the type
// says of itself: the type is the one that was asked for, the rank and the
// interval are known, and the attributes are different identifiers of known
// types; one that hands on pushes has none of them and no mapping.
func CheckDescription(typ string, d *bursarv1.DescribeResponse) error {
	switch {
	case d.GetType() != typ:
		return fmt.Errorf("it says that it is %q, not %q", clipText(d.GetType()), typ)
	case d.GetRank() > 255 || !record.Rank(d.GetRank()).Valid():
		return fmt.Errorf("its rank %d is unknown", d.GetRank())
	case len(d.GetAttributes()) > maxAttributes:
		return fmt.Errorf("it has %d attributes; at most %d are allowed", len(d.GetAttributes()), maxAttributes)
	case d.GetPushed() && (len(d.GetAttributes()) > 0 || d.GetMapping() != ""):
		return errors.New("it hands on whole records, and has attributes or a mapping")
	case d.GetPushed() && record.Rank(d.GetRank()) != record.RankPush:
		return fmt.Errorf("it hands on what was pushed, and says that its rank is %s", record.Rank(d.GetRank()))
	case len(d.GetMapping()) > maxMapping:
		return fmt.Errorf("its mapping has %d bytes; at most %d are allowed", len(d.GetMapping()), maxMapping)
	}
	interval, err := time.ParseDuration(d.GetInterval())
	if err != nil || interval < minInterval {
		return fmt.Errorf("its interval %q is not a duration of at least %s", clipText(d.GetInterval()), minInterval)
	}
	return checkAttributes(d.GetAttributes())
}

func checkAttributes(attributes []*bursarv1.Attribute) error {
	seen := make(map[string]bool, len(attributes))
	for _, a := range attributes {
		switch {
		case !identifier.MatchString(a.GetName()):
			return fmt.Errorf("its attribute %q is not an identifier", clipText(a.GetName()))
		case seen[a.GetName()]:
			return fmt.Errorf("it has the attribute %q twice", a.GetName())
		case a.GetType() < bursarv1.Type_TYPE_STRING || a.GetType() > bursarv1.Type_TYPE_MAP:
			return fmt.Errorf("its attribute %q has the unknown type %d", a.GetName(), a.GetType())
		}
		seen[a.GetName()] = true
	}
	return nil
}
