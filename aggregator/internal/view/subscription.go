package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Subscription lists what principal investigators used and contributed.
func Subscription(a v1.Subscription) List {
	used := numberColumn("used")
	used.Unit = a.Unit
	l := List{Name: "subscription", Title: "Use and contributions of principal investigators", Empty: "No principal investigator used or contributed anything.", Notes: SubscriptionNotes(&a), Columns: []Column{
		textColumn("pi").titled("PI"), textColumn("name").fitted(CutFirst | LeaveOut), used, numberColumn("exempt_used").fitted(FileOnly), shareColumn("used_share").titled("Share used"),
		numberColumn("contributed").fitted(LeaveOut), shareColumn("contribution_share").titled("Share contributed"), newColumn("ratio", "ratio"), stateColumn("state"),
	}}
	for i := range a.Shares {
		s := &a.Shares[i]
		l.addCells(textCell(s.PI), textCell(s.Name), exactCell(&s.Used), exactCell(&s.ExemptUsed), exactCell(s.UsedShare), exactCell(&s.Contributed), exactCell(s.ContributionShare), exactCell(s.Ratio), shareState(s.State))
	}
	if len(l.Rows) > 1 {
		l.Totals = []v1.Cell{v1.Words("Total"), {}, exactCell(&a.Used), {}, {}, exactCell(&a.Contributed), {}, {}, {}}
	}
	return l
}

// shareState is the word for how use and contribution compare without a ratio of them.
func shareState(state string) v1.Cell {
	switch state {
	case "exempt", "over", "under":
		return v1.Words(state)
	}
	return v1.Cell{}
}
