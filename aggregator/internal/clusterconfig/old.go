package clusterconfig

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// oldFormat is that of documents which programs before command version [Since] wrote: a
// list of blocks, sorted by type and labels. They are read for ever and not written.
const oldFormat = 1

type oldBlock struct {
	Type   string                     `json:"type"`
	Labels []string                   `json:"labels,omitempty"`
	Values map[string]json.RawMessage `json:"values,omitempty"`
	Blocks []oldBlock                 `json:"blocks,omitempty"`
}

// oldDigest is the digest of a document of format 1, as those who wrote it know it.
func oldDigest(blocks []oldBlock) Digest {
	if blocks == nil {
		blocks = []oldBlock{}
	}
	return sha256.Sum256(mustJSON(struct {
		Format int        `json:"format"`
		Blocks []oldBlock `json:"blocks"`
	}{oldFormat, blocks}))
}

// labelsOf are the names of the labels of a type of block, and whether there may be
// several of it. A type that format 1 did not have keeps its name and has no labels.
func labelsOf(typ string) (names []string, several bool) {
	switch typ {
	case "agent", "cluster", "cluster_group", "component", "budget":
		return []string{"name"}, true
	case "person", "project", "contribution", "host_class":
		return []string{"id"}, true
	case "action":
		return []string{"type", "label"}, true
	case "price":
		return []string{"name", "from"}, true
	case "per":
		return []string{"component"}, true
	case "since":
		return []string{"from"}, true
	case "file":
		return []string{"file"}, true
	case "capacity":
		return nil, true
	}
	return nil, false
}

// settingsOf makes the settings of blocks.
func settingsOf(blocks []oldBlock) (map[string]any, error) {
	out := map[string]any{}
	if err := addBlocks(out, blocks); err != nil {
		return nil, err
	}
	if d, ok := out["directory"].(map[string]any); ok {
		if classes := d["host_class"]; classes != nil { // which have stood in the directory
			out["host_class"] = classes
			delete(d, "host_class")
		}
		if len(d) == 0 {
			delete(out, "directory")
		}
	}
	inOrder(out["cluster"], func(c map[string]any) string {
		order, _ := c["order"].(json.Number)
		delete(c, "order")
		return fmt.Sprintf("%12s", order)
	})
	inOrder(out["price"], func(p map[string]any) string {
		if p["from"] == "ever" {
			delete(p, "from")
		}
		from, _ := p["from"].(string)
		return fmt.Sprint(p["name"]) + "\x00" + from
	})
	return out, nil
}

// inOrder sorts blocks by a key, which is asked for once for each.
func inOrder(list any, key func(map[string]any) string) {
	blocks, _ := list.([]any)
	keys := make(map[string]any, len(blocks))
	var order []string
	for i, b := range blocks {
		object, _ := b.(map[string]any)
		k := fmt.Sprintf("%s\x00%09d", key(object), i)
		keys[k] = b
		order = append(order, k)
	}
	slices.SortFunc(order, cmp.Compare)
	for i, k := range order {
		blocks[i] = keys[k]
	}
}

// addBlocks puts blocks into an object.
func addBlocks(to map[string]any, blocks []oldBlock) error {
	single := map[string]bool{}
	for i := range blocks {
		b := &blocks[i]
		object, err := b.asObject()
		if err != nil {
			return fmt.Errorf("block %q %q: %w", b.Type, b.Labels, err)
		}
		if _, several := labelsOf(b.Type); several {
			list, _ := to[b.Type].([]any)
			to[b.Type] = append(list, object)
			continue
		}
		if single[b.Type] {
			return fmt.Errorf("block %q is given more than once", b.Type)
		}
		single[b.Type], to[b.Type] = true, object
	}
	return nil
}

func (b *oldBlock) asObject() (map[string]any, error) {
	if b.Type == "" {
		return nil, errors.New("it has no type")
	}
	out := map[string]any{}
	for name, raw := range b.Values {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil || value == nil {
			return nil, fmt.Errorf("%s: %s is not a value", name, raw)
		}
		if value != "" || b.Type == "since" { // elsewhere an empty text says nothing
			out[name] = value
		}
	}
	names, _ := labelsOf(b.Type)
	if b.Type == "per" && len(b.Labels) > 1 {
		b.Labels = b.Labels[:1] // the others are its conditions
	}
	switch {
	case len(b.Labels) == len(names):
		for i, name := range names {
			out[name] = b.Labels[i]
		}
	case names == nil: // of a type that is not known here
		out["labels"] = b.Labels
	default:
		return nil, fmt.Errorf("want %d labels", len(names))
	}
	if b.Type == "action" {
		return out, b.addConfig(out)
	}
	return out, addBlocks(out, b.Blocks)
}

// addConfig adds the configuration of an action, which plugins read and which is as it was.
func (b *oldBlock) addConfig(to map[string]any) error {
	if len(b.Blocks) != 1 || b.Blocks[0].Type != "config" {
		return errors.New("want the block config")
	}
	c := b.Blocks[0]
	c.Type = ""
	if len(c.Values)+len(c.Blocks) == 0 {
		return nil
	}
	type bare struct {
		Values map[string]json.RawMessage `json:"values,omitempty"`
		Blocks []oldBlock                 `json:"blocks,omitempty"`
	}
	dec := json.NewDecoder(bytes.NewReader(mustJSON(bare{c.Values, c.Blocks})))
	dec.UseNumber()
	var config any
	err := dec.Decode(&config)
	to["config"] = config
	return err
}
