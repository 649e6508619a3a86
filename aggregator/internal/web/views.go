package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// savedView is a view that the configuration names.
type savedView struct {
	Name, Address string
	Current       bool // it is shown
}

// savedViews are those of the page that is asked for.
func (p *Pages) savedViews(r *http.Request) (list []savedView) {
	if p.Views == nil || access.From(r.Context()).Pseudonyms { // views may name people
		return nil
	}
	now := r.URL.Query()
	for _, view := range p.Views() {
		at, err := url.Parse(view.Address)
		if err == nil && at.Path == r.URL.Path {
			list = append(list, savedView{view.Name, view.Address, maps.EqualFunc(at.Query(), now, slices.Equal)})
		}
	}
	return list
}

// keeping is what an operator writes into the configuration to keep a view: a name for it, and an
// action that mails it.
type keeping struct {
	View string // a block in access
	Mail string // an action; "" where none mails reports, or no report has this
	Like string // the action that mails reports now
}

// keepRecords says how the list of records is kept; nil for who does not configure the cluster.
func keepRecords(ctx context.Context, address string) *keeping {
	if !access.From(ctx).May(identity.Operate) {
		return nil
	}
	return &keeping{View: viewBlock("Records", address)}
}

// keepView says how a view of usage is kept; nil for who does not configure the cluster.
func (p *Pages) keepView(ctx context.Context, a *usageAsk, s *usageSheet) *keeping {
	if s == nil || !access.From(ctx).May(identity.Operate) {
		return nil
	}
	title := s.Measure + " by " + s.Key
	k := &keeping{View: viewBlock(title, a.pageAddress())}
	if len(a.byKeys()) != 1 {
		return k
	}
	actions, err := p.V1.Actions(ctx, nil)
	if err != nil {
		return k // without what is not known
	}
	for i := range actions.Actions {
		if one := &actions.Actions[i]; one.Type == "report" && one.Configured {
			k.Like, k.Mail = one.Type+"/"+one.Label, mailBlock(title, a)
			break
		}
	}
	return k
}

// viewBlock is the configuration of a view.
func viewBlock(name, address string) string {
	return fmt.Sprintf("view %s {\n  address = %s\n}\n", hcl.Quote(name), hcl.Quote(address))
}

// mailBlock is the configuration of an action that mails the figures of the last month, each month.
func mailBlock(title string, a *usageAsk) string {
	label := strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(title)), "-")
	query := [][2]string{{"by", a.byKeys()[0]}, {"measure", a.Measure}, {"order", a.Measure}, {"top", strconv.Itoa(a.Top)}}
	var where [][2]string
	for _, c := range a.Where {
		where = append(where, [2]string{c.Key, c.Value})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "action \"report\" %s {\nconfig {\nreport = \"usage\"\nperiod = [\"last-month\"]\n", hcl.Quote(label))
	if a.Zone != "" {
		fmt.Fprintf(&b, "zone = %s\n", hcl.Quote(a.Zone))
	}
	fmt.Fprintf(&b, "query = %s\n", objectText(query))
	if len(where) > 0 {
		fmt.Fprintf(&b, "where = %s\n", objectText(where))
	}
	b.WriteString("to = [\"me@example.org\"]\nmail {\nfrom = \"accounting@example.org\"\nhost = \"localhost\"\ntls = \"none\"\n}\n}\n}\n")
	return string(hcl.Format([]byte(b.String())))
}

// objectText is an object of the configuration language.
func objectText(pairs [][2]string) string {
	var parts []string
	for _, pair := range pairs {
		parts = append(parts, hcl.Quote(pair[0])+" = "+hcl.Quote(pair[1]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
