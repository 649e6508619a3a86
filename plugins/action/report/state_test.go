package main

import (
	"fmt"
	"testing"
)

func TestState_MoreMailsOfAPeriodThanItRemembers_SendsNoneTwice(t *testing.T) {
	var kept []byte
	for period := range 2 {
		sent := map[string]int{}
		for run := range 5 {
			s, err := readState(kept)
			if err != nil {
				t.Fatal(err)
			}
			for i := range maxKnown + 1000 {
				s.markRecent(fmt.Sprint(period, " ", i))
			}
			planned := 0
			for i := range maxKnown + 1000 {
				id := fmt.Sprint(period, " ", i)
				if !s.hasMail(id) && !s.isFull(1) && planned < maxEffects {
					s.addMail(id)
					sent[id]++
					planned++
				}
				s.storePage("page "+id, fmt.Append(nil, run)) // which may be forgotten
			}
			kept = s.encodeState()
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
