package lent_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/lent"
)

func TestTakenBackMemory_Poisoned_IsOverwritten(t *testing.T) {
	b := append(make([]byte, 0, 16), "text"...)
	list := []string{"a", "b"}
	lent.Bytes(b)
	lent.Slice(list, lent.Text)
	overwritten := string(b) != "text" && list[0] == lent.Text && list[1] == lent.Text && strings.HasPrefix(lent.Text, string(b[:cap(b)]))
	if untouched := string(b) == "text" && list[0] == "a" && list[1] == "b"; overwritten != lent.Poisoned || untouched == lent.Poisoned {
		t.Errorf("%q %q with Poisoned = %t", b, list, lent.Poisoned)
	}
}
