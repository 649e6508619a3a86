package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Keys are the meta keys of records that name users and groups: those of the directory. The
// empty one is user_id, or group_id.
type Keys v1.ReportKeys

// The keys where the directory names no others.
const (
	usualUser  = "user_id"
	usualGroup = "group_id"
)

// Whole are the keys with the usual ones in place of empty ones.
func (k Keys) Whole() Keys {
	return Keys{User: cmp.Or(k.User, usualUser), Group: cmp.Or(k.Group, usualGroup)}
}

// askKeys asks for the keys.
func askKeys(ctx context.Context, r v1.API) (Keys, error) {
	a, err := r.Reports(ctx)
	if err != nil {
		return Keys{}, fmt.Errorf("the keys of users and groups: %w", err)
	}
	return Keys(a.Keys).Whole(), nil
}

// Own puts the keys of users and groups in place of the usual ones in what an entry offers,
// and takes when nothing else is said.
func (e *Entry) Own(k Keys) *Entry {
	k = k.Whole()
	own := *e
	own.Parameters = slices.Clone(e.Parameters)
	for i := range own.Parameters {
		p := &own.Parameters[i]
		p.Words, p.Default = k.replaceKeysInList(p.Words), k.replaceKeysInList(p.Default)
		p.About = k.replaceKeys(p.About)
	}
	return &own
}

// replaceKeys puts the keys in place of the usual ones in a text.
func (k Keys) replaceKeys(text string) string {
	return strings.NewReplacer(usualUser, k.User, usualGroup, k.Group).Replace(text)
}

func (k Keys) replaceKeysInList(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i := range list {
		out[i] = k.replaceKeys(list[i])
	}
	return out
}

// columnTitle is what a column of the key is called; the key itself where it names neither users nor
// groups nor projects.
func (k Keys) columnTitle(key string) string {
	switch key {
	case k.User:
		return "User"
	case k.Group:
		return "Group"
	case "project":
		return "Project"
	}
	return key
}
