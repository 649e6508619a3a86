package poison_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/poison"
)

func TestTakenBackMemory_Poisoned_IsOverwritten(t *testing.T) {
	b := append(make([]byte, 0, 16), "text"...)
	list := []string{"a", "b"}
	poison.Bytes(b)
	poison.Slice(list, poison.Text)
	overwritten := string(b) != "text" && list[0] == poison.Text && list[1] == poison.Text && strings.HasPrefix(poison.Text, string(b[:cap(b)]))
	if untouched := string(b) == "text" && list[0] == "a" && list[1] == "b"; overwritten != poison.Enabled || untouched == poison.Enabled {
		t.Errorf("%q %q with Enabled = %t", b, list, poison.Enabled)
	}
}
