package enrol

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
)

// Machine is an agent or a node that has joined by a token.
type Machine struct {
	Format  int             `json:"format"`
	Name    string          `json:"name"`
	Address string          `json:"address"` // where the cluster reaches it, as host:port; "": an agent that dials in
	Token   string          `json:"token"`   // the id of the token
	Key     identity.Digest `json:"key"`     // of its public key
	At      time.Time       `json:"at"`
}

// Agents lists the agents that have joined, by name.
func Agents(v View) ([]Machine, error) { return listValues[Machine](v, agentSpace) }

// Nodes lists the nodes that have joined, by name.
func Nodes(v View) ([]Machine, error) { return listValues[Machine](v, nodeSpace) }

// Arrival is a machine that wants to join.
type Arrival struct {
	Token   join.Token
	Role    identity.Role
	Name    string
	Address string
	From    string // where the request came from
	Key     identity.Digest
	// Taken says that the configuration, or the cluster, has this name already.
	Taken bool
}

// checkFields says what is wrong with an arrival before its token is looked at.
func (a *Arrival) checkFields() error {
	if a.Role != identity.Agent && a.Role != identity.Aggregator {
		return fmt.Errorf("%w: the role is agent or aggregator, not %q", ErrRequest, a.Role)
	}
	if err := identity.CheckName(a.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if a.Role == identity.Agent && a.Address == "" {
		return nil // it dials in
	}
	host, port, err := net.SplitHostPort(a.Address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		return fmt.Errorf("%w: the address %q is not like head1.example.org:7070", ErrRequest, a.Address)
	}
	return nil
}

// Admit takes a token and notes the machine, in one step. The same token with the same key
// and name is taken again, so that an answer that was lost can be had once more.
func Admit(ctx context.Context, v View, write Write, a *Arrival, now time.Time) error {
	if err := a.checkFields(); err != nil {
		return err
	}
	t, raw, err := findUsable(v, a.Token, a.Key, now)
	if err != nil {
		return err
	}
	space := agentSpace
	if a.Role == identity.Aggregator {
		space = nodeSpace
	}
	machine, was, err := findValue[Machine](v, space, a.Name)
	switch {
	case err != nil:
		return err
	case t.Role != a.Role:
		return fmt.Errorf("%w: it is for the role %s", ErrRole, t.Role)
	case t.Name != "" && t.Name != a.Name:
		return fmt.Errorf("%w: the token gives the name %s only: use -name %s", ErrName, t.Name, t.Name)
	case t.Use != nil && t.Use.Name != a.Name:
		return fmt.Errorf("%w: the token was used for the name %s: use -name %s", ErrName, t.Use.Name, t.Use.Name)
	case t.Use != nil && (machine == nil || machine.Token != t.ID): // removed, or replaced by another token
		return ErrSpent
	case t.Name == "" && machine == nil && a.Taken, t.Name == "" && machine != nil && machine.Key != a.Key:
		return fmt.Errorf("%w: there is %s %s already; use another -name, or replace that machine with a token made by bursar token create -name %s",
			ErrName, withArticle(a.Role), a.Name, a.Name)
	}
	next := Machine{Format: format, Name: a.Name, Address: a.Address, Token: t.ID, Key: a.Key, At: now.UTC()}
	if t.Use != nil && machine != nil && machine.Token == t.ID && machine.Address == a.Address {
		return nil // it is a repetition
	}
	t.Use = &Use{At: now.UTC(), Name: a.Name, From: a.From, Key: a.Key}
	return commitDocuments(ctx, write, &store.DocumentCommand{
		If:   []store.Document{{Space: tokenSpace, Key: t.ID, Value: raw}, {Space: space, Key: a.Name, Value: was}},
		Sets: []store.Document{encodeDocument(tokenSpace, t.ID, t), encodeDocument(space, a.Name, &next)},
	})
}

func withArticle(r identity.Role) string {
	if r == identity.Agent {
		return "an agent"
	}
	return "a node"
}

// ErrNoAgent says that no agent of that name has joined.
var ErrNoAgent = errors.New("no agent of that name has joined by a token")

// Remove takes an agent away that has joined, and revokes its token, which could bring it
// back.
func Remove(ctx context.Context, v View, write Write, name, by string, now time.Time) error {
	machine, raw, err := findValue[Machine](v, agentSpace, name)
	if err == nil && machine == nil {
		err = ErrNoAgent
	}
	if err != nil {
		return err
	}
	c := &store.DocumentCommand{
		If: []store.Document{{Space: agentSpace, Key: name, Value: raw}}, Sets: []store.Document{{Space: agentSpace, Key: name}},
	}
	t, was, err := findValue[Token](v, tokenSpace, machine.Token)
	if err != nil {
		return err
	}
	if t != nil && t.Revoked.IsZero() {
		t.Revoked, t.RevokedBy = now.UTC(), by
		c.If = append(c.If, store.Document{Space: tokenSpace, Key: t.ID, Value: was})
		c.Sets = append(c.Sets, encodeDocument(tokenSpace, t.ID, t))
	}
	return commitDocuments(ctx, write, c)
}

// Has reports whether a machine of that name is in a list.
func Has(list []Machine, name string) bool {
	return slices.ContainsFunc(list, func(m Machine) bool { return m.Name == name })
}
