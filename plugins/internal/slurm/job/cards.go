package job

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Part returns how much of a card one of a resource is, gpu, shard or mps, on the nodes of a
// run as NodeList has them. Model is the type that the run has of it, and "" where Slurm does
// not account types.
type Part func(resource, model, nodes string) (*big.Rat, error)

// Shared are the generic resources that are parts of cards.
func Shared() []string { return []string{"mps", "shard"} }

// cardResources are the generic resources that are cards or parts of them.
func cardResources() []string { return append([]string{"gpu"}, Shared()...) }

// maxCards bounds what a run has of a resource.
const maxCards = 1 << 40

// cards adds up what a run has of cards.
type cards struct {
	run     *Run
	sum     *big.Rat
	partial bool  // it has parts of cards
	unknown error // why it is not known how much
}

// cardsOf are those of the run. The error says why AllocTRES cannot be read.
func (r *Run) cardsOf() (*cards, error) {
	list, err := r.tresOf("AllocTRES")
	if err != nil {
		return nil, err
	}
	c := &cards{run: r, sum: new(big.Rat)}
	for _, resource := range cardResources() {
		untyped, models, err := field.Gres(list, resource)
		if err != nil {
			return nil, fmt.Errorf("AllocTRES: %w", err)
		}
		for _, model := range slices.Sorted(maps.Keys(models)) {
			c.addCards(resource, model, models[model])
			untyped -= models[model]
		}
		c.addCards(resource, "", untyped)
	}
	return c, nil
}

// addCards adds n of a resource.
func (c *cards) addCards(resource, model string, n int64) {
	if n <= 0 {
		return
	}
	part, err := c.run.partOfCard(resource, model)
	if err == nil && n > maxCards {
		err = fmt.Errorf("AllocTRES: gres/%s: %d are too many", resource, n)
	}
	if err != nil {
		c.partial, c.unknown = true, err
		return
	}
	_, _, slice := mig.Profile(model)
	c.partial = c.partial || resource != "gpu" || slice || part.Cmp(big.NewRat(1, 1)) != 0
	c.sum.Add(c.sum, new(big.Rat).Mul(part, big.NewRat(n, 1)))
}

// partOfCard returns how much of a card one of a resource is.
func (r *Run) partOfCard(resource, model string) (*big.Rat, error) {
	nodes := r.Text("NodeList")
	switch {
	case resource == "gpu" && (model != "" || r.plan.Part == nil || nodes == ""):
		return mig.Card(model)
	case r.plan.Part == nil:
		return nil, fmt.Errorf("how many %s a card has is not known: Slurm is not asked for its nodes", resource)
	case nodes == "":
		return nil, errors.New("NodeList is empty, and how much of a card the run has depends on its nodes")
	}
	return r.plan.Part(resource, model, nodes)
}

// milliGPUs are the cards of the run in thousandths, rounded half up.
func (r *Run) milliGPUs() (sdk.Value, error) {
	c, err := r.cardsOf()
	if err == nil {
		err = c.unknown
	}
	if err != nil {
		return sdk.Null(), err
	}
	n, err := mig.Thousandths(c.sum)
	return numberValue(n, err == nil, err)
}

// gpuModel are the types of the run's cards.
func (r *Run) gpuModel() (sdk.Value, error) {
	list, err := r.tresOf("AllocTRES")
	if err != nil {
		return sdk.Null(), err
	}
	var all []string
	for _, resource := range cardResources() {
		_, models, err := field.Gres(list, resource)
		if err != nil {
			return sdk.Null(), fmt.Errorf("AllocTRES: %w", err)
		}
		for model, n := range models {
			if n > 0 {
				all = append(all, model)
			}
		}
	}
	if len(all) == 0 {
		return sdk.Null(), nil
	}
	slices.Sort(all)
	return sdk.String(strings.Join(slices.Compact(all), ",")), nil
}

func (r *Run) partialGPUs() (sdk.Value, error) {
	c, err := r.cardsOf()
	if err != nil {
		return sdk.Null(), err
	}
	return sdk.Bool(c.partial), nil
}
