//go:build e2e

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"regexp"
	"strings"
)

// alertBounds are the numbers of records at which the rules of the alert change, each once.
func alertBounds() (list []int) {
	for n := 10; n < 1_000_000; n = n*3/2 + 1 {
		list = append(list, n)
	}
	return list
}

// alertAction is the action that mails what its rules find: of each bound a rule that fires when there
// are more records, and one that fires at once and recovers then.
func alertAction(s *Site, target *Target, serve MailServer) *Armed {
	read := func(text []byte) (string, error) {
		changes, err := toldIn(text)
		return strings.Join(changes, ","), err
	}
	a := &Armed{Type: "alert", Label: "watch", Class: Probed, Target: target, Nameless: true, Rejects: true, LooksAgain: true}
	a.Block = "keep = \"0s\"\n"
	for _, n := range alertBounds() {
		for _, side := range []string{"above", "below"} {
			a.Block += fmt.Sprintf("rule \"%s-%d\" {\n usage {\n measure = \"records\"\n window = \"last-month\"\n %s = %d\n }\n}\n", side, n, side, n)
		}
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			var changes []string
			changes, err = toldIn(body)
			err = errors.Join(err, target.applyEffect(Happened{Value: strings.Join(changes, ",")}))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	s.t.Cleanup(hook.Close)
	a.Block += fmt.Sprintf("receiver \"mirror\" {\n webhook {\n url = %q\n unsigned = true\n timeout = \"5m\"\n }\n}\n", hook.URL)
	a.Block += fmt.Sprintf(`receiver "ops" {
  to = ["ann@example.org", "bob@example.org"]
  mail {
   from = "bursar@example.org"
   host = "127.0.0.1"
   port = %s
   tls = "none"
  }
 }`, mailPort(s, target, serve, read))
	a.Judge = a.judgeNotices
	return a
}

// posted begins a change that was posted.
const posted = "post "

// change is a line of a mail that says of a rule that it fires, or has recovered.
var change = regexp.MustCompile(`(?m)^(FIRING|RECOVERED)[^:]*: ((?:above|below)-\d+)`)

// toldIn are the changes of a mail, each as ADDRESS RULE STATE, or of a post, each as
// ID RULE STATE.
func toldIn(text []byte) (list []string, err error) {
	if isFile(text) {
		var p struct {
			Changes []struct{ ID, Rule, State string }
		}
		err := json.Unmarshal(text, &p)
		for _, c := range p.Changes {
			list = append(list, posted+c.ID+" "+c.Rule+" "+strings.ToUpper(c.State))
		}
		return list, err
	}
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(m.Body)
	if err != nil {
		return nil, err
	}
	to, err := mail.ParseAddress(m.Header.Get("To"))
	if err != nil {
		return nil, err
	}
	for _, c := range change.FindAllStringSubmatch(string(body), -1) {
		list = append(list, to.Address+" "+c[2]+" "+c[1])
	}
	if len(list) == 0 {
		return nil, errors.New("the mail has no change")
	}
	return list, nil
}

// judgeNotices judges mails and posts by their changes: none was mailed twice, none was planned again that was
// done or may have arrived, those arrived that the ledger says are done, and in the end each
// address was told of each change, or a mail that has it is unknown.
func (a *Armed) judgeNotices(node *Member, truth Truth, _ []Run) error {
	first, err := a.readHappened()
	if err != nil {
		return err
	}
	runs, err := node.Runs(a.String())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	last, err := a.readHappened()
	if err != nil {
		return err
	}
	arrived, settled := map[string]int{}, map[string]string{}
	for i := range last {
		for c := range strings.SplitSeq(last[i].Value, ",") {
			if arrived[c]++; arrived[c] > 1 && !strings.HasPrefix(c, posted) {
				return fmt.Errorf("%s: %s arrived %d times", a, c, arrived[c])
			}
		}
	}
	for i := range runs {
		for j, e := range runs[i].Ledger {
			text, err := node.effectPayload(a.String(), runs[i].Number, j)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotYet, err)
			}
			changes, err := toldIn(text)
			if err != nil {
				return err
			}
			for _, c := range changes {
				switch {
				case settled[c] != "":
					return fmt.Errorf("%s: run %d tells %s again, which is %s", a, runs[i].Number, c, settled[c])
				case e.State == "done" && arrived[c] == 0:
					return fmt.Errorf("%s: run %d has told %s, which did not arrive", a, runs[i].Number, c)
				case e.State != "rejected":
					settled[c] = e.State
				}
			}
		}
	}
	for i := range first {
		for c := range strings.SplitSeq(first[i].Value, ",") {
			switch {
			case settled[c] != "":
			case strings.HasPrefix(c, posted):
				return fmt.Errorf("%w: %s arrived, and is to be posted again", ErrNotYet, c)
			default:
				return fmt.Errorf("%s: %s arrived, and no run that was not rejected has planned it", a, c)
			}
		}
	}
	return a.judgeAllTold(truth, settled)
}

// judgeAllTold checks that each address and the webhook were told of each change that the records make.
func (a *Armed) judgeAllTold(truth Truth, settled map[string]string) error {
	for c, state := range maps.Clone(settled) {
		if words := strings.Fields(c); words[0]+" " == posted {
			c = posted + words[2] + " " + words[3]
			if settled[c] != "" {
				return fmt.Errorf("%s: %s was posted with two ids", a, c)
			}
			settled[c] = state
		}
	}
	for _, n := range alertBounds() {
		for _, to := range []string{"ann@example.org ", "bob@example.org ", posted} {
			if c := fmt.Sprintf("%sabove-%d FIRING", to, n); len(truth) > n && settled[c] == "" {
				return fmt.Errorf("%w: %s was not told, and there are %d records", ErrNotYet, c, len(truth))
			}
			below := fmt.Sprintf("%sbelow-%d", to, n)
			if settled[below+" FIRING"] != "" && len(truth) >= n && settled[below+" RECOVERED"] == "" {
				return fmt.Errorf("%w: the end of %s was not told, and there are %d records", ErrNotYet, below, len(truth))
			}
		}
	}
	return nil
}
