package main

import (
	"fmt"
	"testing"
)

func TestState_MoreMailsOfAPeriodThanItRemembers_SendsNoneTwice(t *testing.T) {
	var kept []byte
	for period := range 2 {
		sent := map[string]int{}
		for range 5 { // runs
			s, err := readState(kept)
			if err != nil {
				t.Fatal(err)
			}
			planned := 0
			for i := range maxKnown + 1000 {
				id := fmt.Sprint(period, " ", i)
				if s.met(id) || s.full() || planned == maxEffects {
					continue
				}
				s.add(id)
				s.show("page "+id, []byte("text")) // which may be forgotten
				sent[id]++
				planned++
			}
			kept = s.bytes()
		}
		for id, n := range sent {
			if n != 1 {
				t.Fatalf("%s was sent %d times", id, n)
			}
		}
		if len(sent) < maxKnown/3 {
			t.Errorf("%d were sent", len(sent))
		}
	}
}
