// Package heap has one priority queue for items of any type.
package heap

// Heap is a binary heap: Items[0] is the least by Less. It begins empty, and items come
// by [Heap.Push] alone.
type Heap[T any] struct {
	Items []T
	Less  func(a, b T) bool
}

// Push adds an item.
func (h *Heap[T]) Push(v T) {
	h.Items = append(h.Items, v)
	for i := len(h.Items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.Less(v, h.Items[parent]) {
			return
		}
		h.Items[i], h.Items[parent] = h.Items[parent], v
		i = parent
	}
}

// Pop removes the least item and returns it. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	var none T
	least, last := h.Items[0], len(h.Items)-1
	h.Items[0], h.Items[last] = h.Items[last], none
	h.Items = h.Items[:last]
	h.Fix()
	return least
}

// Fix moves Items[0] to where it belongs after it has changed.
func (h *Heap[T]) Fix() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.Items); child++ {
			if h.Less(h.Items[child], h.Items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.Items[i], h.Items[least] = h.Items[least], h.Items[i]
		i = least
	}
}
