// Package columns is the columnar heart of the store: how rows are laid out in a
// raft entry and on disk.
//
//   - A [Row] is the holding of a record id that is shown, with the store's
//     bookkeeping. [AppendRow] and [DecodeRow] are its stand-alone encoding, for
//     rows that are not in a block (a trickle, open records).
//   - A [Batch] is what the leader proposes: the rows of one raft entry in columns
//     with a string table of their own. [Builder] makes it, [ParseBatch] reads it.
//   - A [Dict] holds the dictionaries of a store, which are replicated state:
//     strings, meta sets, component templates, origins, ends and id templates, each
//     given a number in the order of Apply.
//   - A block is up to [MaxRows] rows in columns against a [Dict]. [EncodeBlock]
//     makes it from a batch (of which it can leave rows out) and from loose rows;
//     a [Reader] reads it, a column at a time and only when it is asked for.
//   - A [Mask] selects rows of a block; the Select methods of [Block] narrow it by
//     time, runtime, meta and amount.
//
// # How a store uses it
//
//	d := columns.NewDict()
//	for each stored entry, in order of (Table, ID) { err = d.Load(entry) }
//	err = d.LoadState(state)                // the value last stored, nil for none
//
//	batch, err := columns.ParseBatch(payload)
//	for i := range batch.Len() { id = batch.AppendID(id[:0], i); … look for duplicates … }
//	enc, err := columns.EncodeBlock(d,
//		columns.Part{Rows: trickle},                          // whole rows, each with its Seq
//		columns.Part{Batch: batch, Skip: duplicates, FirstSeq: next, Received: now, Changed: now},
//		columns.Part{Rows: merged})
//	// in the same Pebble batch: enc.Data under the block's key, every enc.Entries[i]
//	// under (Table, ID), enc.State under one key, a posting for every enc.KVs[i].
//
//	b, err := columns.NewReader(d).Block(value)
//	m := b.All()
//	err = b.SelectStop(m, from, to)
//	err = b.SelectMeta(m, d.MetaFilter("group_id", contains))
//	for i := range m.Rows() { row, err := b.Row(i) }
//
// A query for key = value reads the blocks posted under [Dict.KV] of the pair and
// those posted under [Dict.InlineKV] of the key; when neither is there, no block
// has it.
//
// # Rules
//
// Encoding is deterministic: the same dictionary and the same parts give the same
// bytes and the same new entries on every node and in every run. [EncodeBlock]
// changes the dictionary in memory at once: when what it returned cannot be
// stored, the process must stop or the dictionary must be loaded again.
//
// Every encoding starts with a format version and carries a CRC32C that is checked
// first. Whatever the bytes, decoding never panics and never allocates more than
// a small multiple of what the format's caps allow: it returns an error that
// wraps [ErrCorrupt], or [ErrFormat] when a newer release wrote them.
//
// One goroutine at a time may change a [Dict]; any number may read it, and blocks
// against it, at the same time. A [Batch] and a [Block] decode lazily and belong
// to one goroutine each.
package columns
