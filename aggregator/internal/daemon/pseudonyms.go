package daemon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// The place of the secret from which pseudonyms follow.
const (
	pseudonymSpace = "pseudonyms"
	pseudonymKey   = "secret"
)

// currentPseudonyms are what readers see in the place of names who need none. Their secret is made when
// it is needed first.
func (a *Aggregator) currentPseudonyms(ctx context.Context, view *store.View) (*access.Pseudonyms, error) {
	secret, has, err := view.Document(pseudonymSpace, pseudonymKey)
	if err == nil && !has {
		secret, err = a.makePseudonymSecret(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read the secret of pseudonyms: %w", access.ErrUnavailable, err)
	}
	now := a.accounts.Now()
	set := now.Directory.Settings()
	keys := erasure.NewKeys(set.UserKey, set.GroupKey, set.HostKey)
	shown := maps.Clone(keys.Totals)
	if dimensions := a.askedKeys.Load(); dimensions != nil {
		for _, key := range *dimensions {
			shown[key] = true
		}
	}
	for _, c := range now.Directory.Classes() {
		shown[c.Name] = true
	}
	persons := append(slices.Collect(maps.Keys(keys.Users)), accounting.PIKey)
	maps.DeleteFunc(shown, func(key string, _ bool) bool { return key == "" || slices.Contains(persons, key) })
	return access.NewPseudonyms(secret, persons, slices.Collect(maps.Keys(shown))), nil
}

// makePseudonymSecret makes a secret, unless another node does so at the same time, and returns
// what counts.
func (a *Aggregator) makePseudonymSecret(ctx context.Context) ([]byte, error) {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // it never fails
	_, err := a.replica.Write(ctx, &store.DocumentCommand{
		If:   []store.Document{{Space: pseudonymSpace, Key: pseudonymKey}},
		Sets: []store.Document{{Space: pseudonymSpace, Key: pseudonymKey, Value: secret}},
	})
	if err != nil {
		return nil, err
	}
	view, err := a.replica.Read(ctx)
	if err != nil {
		return nil, err
	}
	counts, has, err := view.Document(pseudonymSpace, pseudonymKey)
	if err == nil && !has {
		err = errors.New("it was not kept")
	}
	return slices.Clone(counts), errors.Join(err, view.Close())
}
