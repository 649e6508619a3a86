package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// sayElsewhere names what the commands about a person do not reach, and what removes it.
func (p *Program) sayElsewhere(ctx context.Context, who *person) {
	p.sayAccess(ctx, who)
	p.say("Not in this: sessions of the pages. They end within 12 hours, or with their token, and leave the store at the next login after that.")
	p.say("Not in this: effects and payloads of %s. Runs leave the store after 400 days, those that set values after 30, but the last 100 of each action stay, at most for names_months where the configuration has it: bursar actions history ACTION, bursar actions payload ACTION RUN EFFECT.", who.nameActions(ctx))
	var names []string
	for i := range who.archives {
		names = append(names, who.archives[i].Name)
	}
	if len(names) > 0 {
		p.say("Not in this: records of others that name %s in the files of the archives %s.", who.name, strings.Join(names, ", "))
	}
	p.say("Not in this: backups and snapshots, former files of archives that were restored, logs of the daemons, buffers of agents, the scheduler's own accounting, and the configuration.")
}

// sayAccess names the tokens of the person.
func (p *Program) sayAccess(ctx context.Context, who *person) {
	tokens, err := who.api.Tokens(ctx)
	if err != nil {
		p.say("Not in this, and not searched: tokens (%v). Look with: bursar token list", err)
	}
	for i := range tokens.Tokens {
		t := &tokens.Tokens[i]
		if who.isNamed(t.Person, t.Rows, t.Name, t.CreatedBy, t.UsedBy) {
			p.say("Not in this: token %s (%s), listed until 30 days after its end: bursar token revoke %s", t.ID, t.State, t.ID)
		}
	}
}

// isNamed reports whether a token is of the person, shows only records of values with
// the name, or has the name in one of the texts.
func (who *person) isNamed(person string, rows v1.RowFilter, texts ...string) bool {
	has := func(text string) bool { return erasure.HasWord(text, who.name) }
	for _, row := range rows {
		for _, values := range row {
			texts = append(texts, values...)
		}
	}
	return person == who.name || slices.ContainsFunc(texts, has)
}

// nameActions names the actions whose runs are in the store.
func (who *person) nameActions(ctx context.Context) string {
	list, err := who.api.Actions(ctx, nil)
	var names []string
	for i := range list.Actions {
		names = append(names, list.Actions[i].Type+"/"+list.Actions[i].Label)
	}
	if err != nil || len(names) == 0 { // those that are not configured any more have runs, too
		return "actions"
	}
	return "the actions " + strings.Join(names, ", ")
}
