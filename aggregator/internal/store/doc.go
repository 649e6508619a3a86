// Package store keeps the records of a cluster on one node: a Pebble database
// that changes only by commands of the replicated log.
//
// It knows no raft. [Store] has the methods that package cluster asks of a State
// and of Images; [Encode] makes the bytes of a command, [Store.Apply] executes
// them. Apply is deterministic: it looks at nothing but the command and what the
// store holds. One Pebble batch holds all that a command changes, the applied
// index included.
//
// # Writing
//
//	IngestCommand         frames of an agent's buffer, accepted when they continue
//	                      its cursor                        → IngestResult
//	PostCommand           AUDITOR's POST                    → PostResult
//	StageCommand, CommitStageCommand                        → PostResult of the commit
//	PutStopCommand        AUDITOR's PUT                     → PutResult
//	PutStopsCommand       several of them together          → []any of PutResult
//	DeleteCommand, UndeleteCommand                          → DeleteResult
//	ReplaceCommand        a record in the place of another  → DeleteResult
//	CorrectCommand        in the place of what clients pushed → DeleteResult
//	DismissStopsCommand   stops whose records never came    → DeleteResult
//	QuarantineDropCommand                                   → DeleteResult
//	DocumentCommand       named values of other packages    → DocumentResult
//	CompactBlockCommand   drops superseded rows             → DeleteResult
//	ForgetCommand         drops what compaction leaves     → DeleteResult
//	SetClusterCommand, SetVersionCommand                    → string, uint32
//	HashCheckCommand                                        → HashResult
//
// The rows of an IngestCommand, PostCommand and StageCommand are a batch of
// package columns, made with its Builder.
//
// # Reading
//
//	v, err := s.View()                  // a consistent picture
//	defer v.Close()
//	row, ok, err := v.Get(id)           // what is shown
//	entry, err := v.Entry(id)           // what everyone says
//	err = v.Query(ctx, q, func(row *columns.Row) error { … })
//	cursor, err := v.Cursor(agent)      // what may be acknowledged
//
// Every shown record is a row with a sequence number. A change gives the id a
// new row with the next number, which names the one that it supersedes; so the
// order of the numbers is the change feed.
package store
