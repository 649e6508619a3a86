package login

import (
	"fmt"
	"testing"
	"time"
)

func TestTries_OfAnAddressOrANameInAMinute_AreBounded(t *testing.T) {
	var all tries
	now := time.Unix(1_800_000_000, 0)
	for i := range mostTries {
		if !all.countTry(now, "from a", "name x") {
			t.Fatalf("try %d is refused", i)
		}
	}
	for _, keys := range [][]string{{"from a", "name y"}, {"from b", "name x"}} {
		if all.countTry(now.Add(time.Minute), keys...) {
			t.Errorf("%v may", keys)
		}
	}
	if !all.countTry(now, "from b", "name y") || !all.countTry(now.Add(time.Minute+1), "from a", "name x") {
		t.Error("another one, or a later one, is refused")
	}
}

func TestTries_ManyNamesFromOneAddress_LeaveOtherAddressesTheirs(t *testing.T) {
	var all tries
	now := time.Unix(1_800_000_000, 0)
	for i := range 3 * mostKeys {
		all.countTry(now, "from a", fmt.Sprint("name ", i))
	}
	if !all.countTry(now, "from b", "name x") {
		t.Error("another address is refused")
	}
	for i := range 3 * mostKeys {
		all.countTry(now, fmt.Sprint("from ", i), fmt.Sprint("name ", i))
	}
	if len(all.count) > mostKeys || all.countTry(now, "from a", "name z") {
		t.Errorf("%d keys are kept, or what was too often may again", len(all.count))
	}
}

func TestLocal_AddressOfAnotherSite_IsThisServersFirstPage(t *testing.T) {
	for to, want := range map[string]string{
		"/ui/usage?in=2026": "/ui/usage?in=2026", "": "/", "//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/", "javascript:x": "/", "ui": "/",
	} {
		if got := localPath(to); got != want {
			t.Errorf("%q: %q", to, got)
		}
	}
}
