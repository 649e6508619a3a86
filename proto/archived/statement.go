package archived

import (
	"time"
)

// Statement is the body of PUT /v1/archives/{name}: it says which rows are in verified
// files, and asks the store to keep of them only what usage needs. The rows are the
// records that the store shows, with their details, that stopped in [From, To) and whose
// change has a number up to UpTo. When these are not exactly Count rows with the sum
// Digest, nothing is removed.
//
// The same statement again continues what was interrupted, and repeats nothing that was
// done.
type Statement struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// UpTo is that of the [Seal] of the rows.
	UpTo   uint64 `json:"up_to"`
	Count  uint64 `json:"count"`
	Digest string `json:"digest"` // of the [Sum] of the rows as read back from the files
	// Location is where the files are, as the action's configuration has it: a folder's
	// path or s3://bucket/prefix.
	Location string `json:"location"`
	// Manifest is the name of the manifest below the location, and SHA256 of its bytes.
	Manifest string `json:"manifest"`
	SHA256   string `json:"sha256"`
	// Sums are totals of the manifest, as decimal numbers by name.
	Sums map[string]string `json:"sums,omitempty"`
	// Keep are meta keys that stay in the store beside those that usage needs.
	Keep []string `json:"keep,omitempty"`
}

// Archive is an archive as GET /v1/archives lists it, and what PUT answers.
type Archive struct {
	Name string `json:"name"` // for example 2026-03, or 2026-03-2 for a supplement
	Statement

	// State is checking or removing while the removal goes on, archived, or restoring.
	State string `json:"state"`
	// Removed is how many rows have lost their details so far and were not restored.
	Removed uint64 `json:"removed"`
	// Kept are all meta keys that stayed.
	Kept []string `json:"kept"`
}

// Restored is what a restore answers.
type Restored struct {
	// Restored is how many rows have their details again.
	Restored uint64 `json:"restored"`
	// Left is how many rows of the archive the store shows without their details, because
	// they changed after the archive was made; at the end of the restore.
	Left uint64 `json:"left"`
}
