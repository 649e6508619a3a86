// Package cluster replicates opaque commands with Raft and applies them, each
// exactly once and in one order, to a State on every node.
//
// It knows nothing of records. A command is at most MaxEntry bytes that only
// the State understands; the State says what became of it as a value, and says
// with an error that this node must stop.
//
// # The exported surface
//
//	type State interface {                         // the store
//		Apply(index, term uint64, data []byte) (result any, err error)
//		Applied() (index, term uint64)
//		Flush() error
//	}
//	type Images interface {                        // the store, to send it to another node
//		Checkpoint(dir string) error
//		Restore(dir string) error
//	}
//
//	func Identity(dataDir string) (string, error)  // this node's id, made when there is none
//	func NewTransport(TransportConfig) (*Transport, error) // one port: raft, and the protocol of package membership
//	func (*Transport) Raft() raft.StreamLayer      // Config.Stream
//	func (*Transport) Peers() net.Listener         // accepts *Conn
//	func (*Transport) DialPeer(ctx, addr) (net.Conn, error)
//	func (*Transport) Close() error
//	func Open(Config) (*Node, error)               // checks everything on disk, starts raft
//
//	func (*Node) OnLeader(func(ctx context.Context) error) // before Run
//	func (*Node) Run(ctx context.Context) error    // until ctx ends (nil) or the node must stop (why)
//	func (*Node) Shutdown(ctx context.Context) error
//
//	func (*Node) Propose(ctx, data) (Result, error)    // wait for commit and apply
//	func (*Node) Submit(ctx, data) (*Proposal, error)  // pipelined, in the order of the calls
//	func (*Proposal) Wait(ctx) (Result, error)
//	func (*Node) Barrier(ctx) error
//	func (*Node) ReadIndex(ctx) (uint64, error)        // leader: confirmed and applied here
//	func (*Node) Linearizable(ctx) error               // the same, index not wanted
//	func (*Node) WaitApplied(ctx, index) error         // any node
//
//	func (*Node) Fresh() bool                          // no history: may be bootstrapped or added
//	func (*Node) Bootstrap([]Server) error             // founders of a new cluster, the same list on all
//	func (*Node) Members() []Member
//	func (*Node) Add(ctx, Server) error                // leader; the vote follows when it has caught up
//	func (*Node) Remove(ctx, id) error                 // leader; refused where the quorum would be lost
//	func (*Node) Readdress(ctx, Server) error          // leader
//	func (*Node) Reach() []Reach                       // leader: how far each member is, and when it answered
//	func (*Node) Install(ctx, dir) error               // leader: all nodes replace their State by an image
//
//	func Recover(Config, []Server) error               // offline, after a lost quorum
//	func Inspect(dataDir) (Inspection, error)          // offline
//
//	func (*Node) Behind() error                        // the data directory is an older copy: no vote yet
//	func (*Node) Unprotected() error                   // why that would not be noticed
//	func (*Node) Alive() error                         // raft's main loop answers
//	func (*Node) LogStalled() time.Duration            // how long a write of the log has been hanging
//
//	func (*Node) ID() string
//	func (*Node) IsLeader() bool
//	func (*Node) Leader() Leader                       // id and address, empty when unknown
//	func (*Node) LeaderChanges() <-chan Leader         // newest value; closed at the end
//	func (*Node) TransferLeadership(ctx) error
//	func (*Node) Stats() Stats
//	func (*Node) Snapshot(ctx) error                   // flush the State and shorten the log now
//
// A cluster of one:
//
//	id, err := cluster.Identity(dir)
//	node, err := cluster.Open(cluster.Config{
//		DataDir: dir, State: store, Images: store,
//		Bootstrap: []cluster.Server{{ID: id, Addr: "agg1.example.org:8701"}},
//	})
//	node.OnLeader(pull.Run) // its first duty may be to propose the cluster's id
//	err = node.Run(ctx)     // then close the store
//
// Errors: ErrNotLeader and ErrTooLarge say that nothing was proposed, and so
// does a bare context error; ErrUnknownOutcome says that the command may or may
// not have been applied, or may be applied later; ErrStopped says that the node
// has ended. All are matched with errors.Is.
package cluster
