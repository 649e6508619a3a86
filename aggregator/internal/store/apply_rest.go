package store

import (
	"bytes"
)

func (c *QuarantineDropCommand) applyTo(t *tx) (any, error) {
	var result DeleteResult
	for i := range c.Keys {
		key := quarantineKey(c.Keys[i].Source, c.Keys[i].ID)
		old, err := t.getSmall(key)
		if err != nil {
			return nil, err
		}
		if old == nil {
			continue
		}
		result.Changed++
		if err := t.putSmall(key, nil); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (c *SetClusterCommand) applyTo(t *tx) (any, error) {
	if t.m.Cluster == "" {
		t.m.Cluster = c.ID
	}
	return t.m.Cluster, nil
}

func (c *SetVersionCommand) applyTo(t *tx) (any, error) {
	t.m.Version = max(t.m.Version, c.Version)
	return t.m.Version, nil
}

func (c *HashCheckCommand) applyTo(t *tx) (any, error) {
	t.hashed = true
	return func() any { return HashResult{Index: t.index, Hash: t.m.Hash} }, nil
}

func (c *DocumentCommand) applyTo(t *tx) (any, error) {
	result := DocumentResult{Index: t.index}
	for i := range c.If {
		v, err := t.getSmall(documentKey(c.If[i].Space, c.If[i].Key))
		if err != nil {
			return nil, err
		}
		if (v == nil) != (c.If[i].Value == nil) || !bytes.Equal(v, c.If[i].Value) {
			return result, nil
		}
	}
	for i := range c.Sets {
		if err := t.putSmall(documentKey(c.Sets[i].Space, c.Sets[i].Key), c.Sets[i].Value); err != nil {
			return nil, err
		}
	}
	result.Done = true
	return result, nil
}
