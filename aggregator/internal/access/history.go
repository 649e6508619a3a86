package access

import "github.com/bursar-accounting/bursar/aggregator/internal/columns"

// History returns the rows in whose place row came, the newest first and at most so
// many, tombstones included. Whole says that these are all: of a run that went on,
// and of a block that was rewritten, the store keeps none. Those that the principal
// may not see are left out.
func (v *View) History(row *columns.Row, most int) (list []columns.Row, whole bool, err error) {
	if err := v.requireRows(); err != nil {
		return nil, false, err
	}
	for seq, n := row.Supersedes, 0; seq != 0; n++ {
		old, ok, err := v.view.RowAt(seq)
		if err != nil || !ok || n == most {
			return list, false, err
		}
		if v.who.Rows.hasMeta(old.Record.Meta) {
			list = append(list, *v.pseudonyms.maskRow(&old))
		}
		seq = old.Supersedes
	}
	return list, true, nil
}
