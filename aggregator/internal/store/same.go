package store

import (
	"math"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// sameRecord is [record.Same], and quick about records that are alike in every
// field, as those are that come again.
func sameRecord(a, b *record.Record) bool { return identicalRecords(a, b) || record.Same(a, b) }

func identicalRecords(a, b *record.Record) bool {
	return a.ID == b.ID && a.Start == b.Start && a.Stop == b.Stop && a.Submit == b.Submit && a.State == b.State && a.Exit == b.Exit &&
		(a.Meta == nil) == (b.Meta == nil) && slices.EqualFunc(a.Meta, b.Meta, identicalMeta) && slices.EqualFunc(a.Components, b.Components, identicalComponents)
}

func identicalMeta(a, b record.MetaEntry) bool {
	return a.Key == b.Key && slices.Equal(a.Values, b.Values)
}

func identicalComponents(a, b record.Component) bool {
	return a.Name == b.Name && a.Amount == b.Amount && a.Kind == b.Kind && slices.EqualFunc(a.Scores, b.Scores, identicalScores)
}

func identicalScores(a, b record.Score) bool {
	return a.Name == b.Name && math.Float64bits(a.Value) == math.Float64bits(b.Value)
}
