package accounting

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
)

// Settings are what the configuration of the cluster says.
type Settings struct {
	Directory DirectorySettings
	Money     PriceSettings
	Capacity  CapacityPlan
	// Energy is nil where nothing says how energy follows from records.
	Energy *EnergySettings
}

// Set is what there is at one time.
type Set struct {
	Directory *Directory
	Prices    *Prices
	Budgets   *Budgets
	Capacity  *Capacities
	// Derivation has all keys and weights that follow from the rest.
	Derivation *usage.Derivation
}

// Views gives pictures of the store.
type Views interface {
	View() (*store.View, error)
}

// Keeper makes and keeps the [Set] of a node.
type Keeper struct {
	Views Views
	Log   *slog.Logger

	every    time.Duration // 0: refreshEvery
	mu       sync.Mutex
	settings Settings
	facts    facts
	current  atomic.Pointer[Set]
}

// facts are what sources tell.
type facts struct {
	people   []SourcePeople
	capacity []CapacityFact
	digest   [sha256.Size]byte
}

// NewKeeper returns a keeper with an empty [Set].
func NewKeeper(views Views, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{Views: views, Log: log}
	return k, k.Set(Settings{})
}

// Now is what there is.
func (k *Keeper) Now() *Set { return k.current.Load() }

// Capacity is that of [Keeper.Now].
func (k *Keeper) Capacity() *Capacities { return k.Now().Capacity }

// Derivation is that of [Keeper.Now].
func (k *Keeper) Derivation() *usage.Derivation { return k.Now().Derivation }

// Set takes what the configuration says. After an error the [Set] is as before.
func (k *Keeper) Set(s Settings) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	made, err := compileSet(s, &k.facts)
	if err != nil {
		return err
	}
	k.settings = s
	k.current.Store(made)
	return nil
}

// refreshEvery is how often the keeper looks whether sources tell something else.
const refreshEvery = 5 * time.Second

// Run follows what sources tell until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(k.every, refreshEvery))
	defer tick.Stop()
	said := ""
	for {
		switch err := k.refreshFacts(); {
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			k.Log.Error("what sources tell of people and capacity is not taken; what was known before counts", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// refreshFacts takes what sources tell, if it is new.
func (k *Keeper) refreshFacts() error {
	f, err := k.loadFacts()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.digest == k.facts.digest {
		return nil
	}
	made, err := compileSet(k.settings, &f)
	if err != nil {
		return err
	}
	k.facts = f
	k.current.Store(made)
	return nil
}

// loadFacts reads the facts of the present state.
func (k *Keeper) loadFacts() (facts, error) { return store.With(k.Views, readFacts) }

func readFacts(v *store.View) (f facts, err error) {
	people, err := v.Facts(store.FactDirectory)
	if err != nil {
		return f, err
	}
	there, err := v.Facts(store.FactCapacity)
	if err != nil {
		return f, err
	}
	f.digest = digestFacts(slices.Concat(people, there))
	if f.people, err = PeopleOf(people); err != nil {
		return f, err
	}
	f.capacity, err = CapacityFacts(there)
	return f, err
}

// digestFacts tells lists of facts apart.
func digestFacts(list []store.Fact) [sha256.Size]byte {
	h := sha256.New()
	for i := range list {
		f := &list[i]
		fmt.Fprintf(h, "%d %q %d %d ", f.Kind, f.Source.String(), f.At, len(f.Data))
		h.Write(f.Data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// compileSet makes a [Set] of settings and of what sources say.
func compileSet(s Settings, f *facts) (*Set, error) {
	dir, err := NewDirectory(s.Directory, f.people)
	if err != nil {
		return nil, err
	}
	prices, budgets, err := NewPricesAndBudgets(s.Money)
	if err != nil {
		return nil, err
	}
	there := NewCapacities(&s.Capacity, f.capacity)
	b := &usage.Derivation{Keys: append(dir.Keys(), there.Keys()...)}
	if w, ok := dir.Units(); ok {
		b.Weights = append(b.Weights, w)
	}
	energy, err := s.Energy.Weights()
	if err != nil {
		return nil, fmt.Errorf("energy: %w", err)
	}
	if w, ok := prices.Weight(); ok {
		if len(energy) > 0 && (slices.Contains(w.Components, usage.PricedEnergy) || slices.Contains(w.Components, usage.PricedCO2)) {
			w.Priced = energy[0].Energy
		}
		b.Weights = append(b.Weights, w)
	}
	b.Weights = append(b.Weights, energy...)
	return &Set{Directory: dir, Prices: prices, Budgets: budgets, Capacity: there, Derivation: b}, nil
}
