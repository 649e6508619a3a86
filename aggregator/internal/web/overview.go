package web

import (
	"errors"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// overviewPage is what the first page shows. A part that fails says so in its own
// place, and the others stay.
type overviewPage struct {
	Outage  *clusterPage // in place of all others, while no figures can be read
	Verdict *verdict     // nil: no one judges
	Whole   bool         // the reader sees all records, and what is about all
	Tiles   []tile
	Top     top
	Sources sourcesPart
	Newest  shownTable
	Lacks   string // why there is no Newest
}

// tile is a number with what it is.
type tile struct {
	Href, Value, Exact string
	Small              string // beside the value
	Label              string
	More               []string // lines below it
	Tone               string   // "" or warn
}

// bounded is a number that is counted up to a bound.
type bounded struct {
	N    int
	More bool
}

// countUp bounds what a page counts by going through it.
const countUp = 10_000

var errEnough = errors.New("enough")

// countBounded counts how often each calls its argument.
func countBounded(each func(one func() error) error) (b bounded, err error) {
	err = each(func() error {
		if b.N == countUp {
			b.More = true
			return errEnough
		}
		b.N++
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return b, err
}

// newest is how many records the overview shows.
const newest = 5

func (p *Pages) overviewContent(r *http.Request, v *access.View) (any, error) {
	ctx := r.Context()
	page := &overviewPage{Whole: v.Principal().Rows.All()}
	if page.Whole {
		page.Verdict = p.currentVerdict(ctx)
	}
	running, err := p.runningTile(ctx, v)
	if err != nil {
		return nil, err // who may not even see this sees nothing here
	}
	page.Top = p.makeTop(ctx, r.URL.Query())
	page.Tiles = append(page.Tiles, p.utilizationTile(ctx))
	page.Tiles = append(page.Tiles, p.hoursTiles(ctx)...)
	page.Tiles = append(page.Tiles, running, p.recordsTile(ctx, v, &page.Top))
	if page.Whole {
		page.Tiles = append(page.Tiles, p.alertsTile(ctx)...)
	}
	page.Sources = p.sourcesPart(ctx, v, &page.Top)
	var list []v1.FullRecord
	page.Lacks = p.lackText(ctx, v.Query(ctx, store.Query{Order: store.BySeq, Desc: true, Limit: newest}, func(row *columns.Row) error {
		r, err := fullRecord(row)
		list = append(list, r)
		return err
	}))
	page.Newest = p.showRecords(list, nil)
	return page, nil
}
