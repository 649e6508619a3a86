package heap_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/heap"
)

func TestHeap_AnySteps_HasTheLeastOnTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []int
		h := heap.Heap[int]{Less: func(a, b int) bool { return a < b }}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			v := rapid.IntRange(0, 20).Draw(t, "v")
			switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
			case len(want) == 0 || op == 0:
				h.Push(v)
				want = append(want, v)
			case op == 1:
				h.Items[0] = v
				h.Fix()
				want[0] = v
			case h.Pop() != want[0]:
				t.Fatal("the least item was not on top")
			default:
				want = want[1:]
			}
			slices.Sort(want)
			if got := slices.Sorted(slices.Values(h.Items)); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		for _, w := range want {
			if got := h.Pop(); got != w {
				t.Fatalf("popped %d, want %d", got, w)
			}
		}
	})
}
