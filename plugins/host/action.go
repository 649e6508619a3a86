package host

import (
	"context"
	"fmt"
	"time"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// maxDeadline is how long an effect of an action may take.
const maxDeadline = time.Hour

// Action returns the client of an action plugin.
func (p *Process) Action() bursarv1.ActionPluginClient { return bursarv1.NewActionPluginClient(p.conn) }

// DescribeAction asks an action plugin what it is and checks the answer with
// CheckActionDescription.
func (p *Process) DescribeAction(ctx context.Context) (*bursarv1.DescribeActionResponse, error) {
	d, err := p.Action().Describe(ctx, &bursarv1.DescribeActionRequest{})
	if err == nil {
		err = CheckActionDescription(p.spec.Type, d)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: describe: %w", p.spec.specName(), err)
	}
	return d, nil
}

// CheckActionDescription returns nil when d can be what the action plugin of the
// type says of itself: the type is the one that was asked for, the class is one of
// those that there are, and the deadline can be kept.
func CheckActionDescription(typ string, d *bursarv1.DescribeActionResponse) error {
	if d.GetType() != typ {
		return fmt.Errorf("it says that it is %q, not %q", clipText(d.GetType()), typ)
	}
	switch d.GetClass() {
	case bursarv1.EffectClass_EFFECT_CLASS_SET, bursarv1.EffectClass_EFFECT_CLASS_KEYED, bursarv1.EffectClass_EFFECT_CLASS_AT_MOST_ONCE:
	default:
		return fmt.Errorf("its class %d is unknown; an effect sets a value, is replaced by its key, or happens at most once: what adds cannot be repeated after a failover", d.GetClass())
	}
	deadline, err := time.ParseDuration(d.GetDeadline())
	if err != nil || deadline <= 0 || deadline > maxDeadline {
		return fmt.Errorf("its deadline %q is not a duration of at most %s", clipText(d.GetDeadline()), maxDeadline)
	}
	return nil
}
