package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// apiPrices is an answer of GET /v1/prices.
type apiPrices struct {
	At       string  `json:"at"`
	Currency *string `json:"currency"`
	Prices   []struct {
		List      string            `json:"list"`
		From      *string           `json:"from"`
		To        *string           `json:"to"`
		Component string            `json:"component"`
		Per       string            `json:"per"`
		Price     json.Number       `json:"price"`
		Match     map[string]string `json:"match"`
	} `json:"prices"`
}

func (p *Program) pricesCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "prices", Short: "list the prices that hold at a time",
		Long: `List the prices that hold at a time: for an amount of one for an hour, or for
one of a total. Of the prices of a component, the first whose conditions a record
fulfils counts.`,
		Example: "  bursar prices\n  bursar prices -at 2025\n  bursar prices -format csv",
	}
	cmd.Flags().StringVar(&at, "at", "", "the `time` at which they hold, such as 2025 or 2026-03-01; default now")
	return p.look(cmd, resource{"/v1/prices", given(map[string]*string{"at": &at}), p.showPrices})
}

func (p *Program) showPrices(answer json.RawMessage, f format) error {
	var a apiPrices
	if err := json.Unmarshal(answer, &a); err != nil {
		return err
	}
	t := newTable("COMPONENT", "PER", ">PRICE", "UNIT", "~FOR", "?LIST", "?FROM", "?TO")
	for _, x := range a.Prices {
		whom := conditions(x.Match)
		if whom == "" && f == asTable {
			whom = "all"
		}
		t.add(x.Component, x.Per, x.Price.String(), blank(a.Currency), whom, x.List, instant(x.From), instant(x.To))
	}
	if f == asTable && len(a.Prices) == 0 {
		p.say("No prices hold at %s; a block price \"name\" { … } in aggregator.hcl makes some.", instant(&a.At))
		return nil
	}
	return p.show(f, t, answer)
}
