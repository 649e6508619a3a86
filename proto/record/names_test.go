package record

import "testing"

func TestNamesOfNumbersAreStable(t *testing.T) {
	for got, want := range map[string]string{
		RankImport.String(): "import", RankPush.String(): "pushed", RankEpilog.String(): "epilog", RankScheduler.String(): "scheduler",
		Rate.String(): "rate", Total.String(): "total",
		Added.String(): "added", Merged.String(): "merged", Unchanged.String(): "unchanged", Stale.String(): "stale",
		Withdrawn.String(): "withdrawn", Deleted.String(): "deleted", Conflicting.String(): "conflicting", Outcome(0).String(): "none",
		Pushed.String(): "pushed", nemo.String(): "head1/slurm/nemo", Origin{Agent: "head1"}.String(): "head1/pushed",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	numbers := []int{int(RankImport), int(RankPush), int(RankEpilog), int(RankScheduler), int(OpPut), int(OpStop), int(OpWithdraw), int(OpDelete),
		int(Added), int(Merged), int(Unchanged), int(Stale), int(Withdrawn), int(Deleted), int(Conflicting)}
	for i, want := range []int{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7} {
		if numbers[i] != want {
			t.Errorf("number %d is %d, want %d", i, numbers[i], want)
		}
	}
	if Rank(9).String() != "unknown" || Outcome(99).String() != "unknown" {
		t.Error("a number without name has one")
	}
}
