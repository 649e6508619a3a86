package cluster

// State is what the cluster replicates. It keeps its own applied index in the
// same atomic write as its data, so that it always knows how far it has come.
//
// Apply is called by one goroutine at a time. Flush may run at the same time.
type State interface {
	// Apply executes the command at index, exactly once and in order: index is
	// always greater than what Applied returned before, and Applied returns
	// index and term afterwards. It must be deterministic. It must not keep
	// data after it returns.
	//
	// result is handed to the proposer on the leader; a refused command is a
	// result too. An error means that the node cannot go on (I/O, damage, a
	// command that it does not know): nothing more is applied and Run returns
	// the error. The State must then be as it was before the call.
	//
	// The write need not be durable when Apply returns: the raft log holds the
	// command until Flush has covered it.
	Apply(index, term uint64, data []byte) (result any, err error)

	// Applied returns the index and term of the last command that Apply has
	// executed, 0 and 0 for none. After a start it is what survived on disk.
	Applied() (index, term uint64)

	// Flush returns when every Apply that had returned before the call is
	// durable. The raft log is shortened only after it.
	Flush() error
}

// Images lets a State travel to another node as a directory of files. A Config
// without it gives a node that works alone.
type Images interface {
	// Checkpoint writes a consistent image of the State, applied index included,
	// into dir, which does not exist yet and is below the data directory, so
	// that hard links do. Directories in dir are fine; a path below dir has at
	// most 94 bytes. Nothing in dir is changed once it returns; the cluster
	// removes dir when it has sent it. Apply waits meanwhile: let it be short.
	Checkpoint(dir string) error

	// Restore replaces everything that the State holds by the image in dir, and
	// is atomic against a crash: the State is then the old one or the new one.
	// The image has been verified and synced. Files may be moved or linked out
	// of dir; the cluster removes it afterwards. Apply does not run meanwhile;
	// readers may. An error stops the node.
	Restore(dir string) error

	// RestoreAt is Restore as the command at index: whatever the image says of
	// itself, Applied returns index and term afterwards, and the two change in
	// the same atomic step as the data. All nodes call it with the same image.
	RestoreAt(dir string, index, term uint64) error

	// CheckImage returns an error when Restore would not take the image in dir,
	// which may be changed or removed by it.
	CheckImage(dir string) error
}

// Result is what became of a command that was committed and applied.
type Result struct {
	// Index is the command's place in the log, unique and growing.
	Index uint64
	// Value is what the State's Apply returned on this node.
	Value any
}

// Leader names the node that leads. Both fields are empty when none is known.
type Leader struct {
	ID   string
	Addr string
}
