package clusterconfig

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/gauges"
)

// Views gives pictures of this node's store.
type Views interface{ View() (*store.View, error) }

// Writer commits commands; it works on the leader, at least.
type Writer interface {
	Write(ctx context.Context, c store.Command) (any, error)
}

// Options of a [Keeper]. Obey may be nil, and Every is for tests; all else is
// needed.
type Options struct {
	Node   string // this node's name
	Dir    string // its data directory
	Views  Views
	Writer Writer
	// Files is what this node's files say.
	Files *Document
	// Obey is told what is committed, at first and whenever it changes, by one
	// goroutine at a time. An error says that this program cannot do what is
	// wanted.
	Obey func(*Document) error
	// Diff says where files differ from what is committed; it is asked only when they do.
	Diff    func(files, cluster *Document) []Difference
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Committed is told the digest when this node's files have become the cluster's
	// configuration; nil is nothing.
	Committed func(digest string)
	// Every is how often the log's configuration is looked at; 0 means a second.
	Every time.Duration
}

// Keeper keeps a node to the cluster's configuration.
type Keeper struct {
	opt  Options
	wake chan struct{} // the files have changed
	turn sync.Mutex    // held while a look is taken and obeyed, and guards what follows

	hindered string // why the last commit failed; "" when it did not

	mu        sync.Mutex // guards what follows
	files     *Document
	digest    Digest // of files
	mark      mark
	committed *Committed
	base      string // the digest of what is committed, as far as is known
	told      string // the difference that was reported last
	obeyed    bool   // the committed one has been given to Obey
	problem   error  // of the last look
	compared  comparison
}

// comparison keeps what differs, which is asked for every second and takes long for many users.
type comparison struct {
	files       *Document
	committed   *Committed
	differences []Difference
}

// NewKeeper makes a keeper of a node. It looks whether the files have changed
// since the node ran last.
func NewKeeper(opt Options) *Keeper {
	if opt.Every == 0 {
		opt.Every = time.Second
	}
	if opt.Obey == nil {
		opt.Obey = func(*Document) error { return nil }
	}
	k := &Keeper{opt: opt, wake: make(chan struct{}, 1)}
	var err error
	if k.mark, err = readMark(opt.Dir); err != nil {
		opt.Log.Warn("it is not known which configuration files this node had", "error", err)
	}
	k.base = noBase
	if k.committed, k.problem = k.readAgain(); k.committed != nil {
		k.base = k.committed.Digest.String()
	}
	k.takeFiles(opt.Files)
	opt.Metrics.MustRegister(newCollector(k))
	return k
}

// SetFiles says what this node's files say now.
func (k *Keeper) SetFiles(d *Document) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.takeFiles(d)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// takeFiles notes what the files say, and whether that is news. k.mu is held.
func (k *Keeper) takeFiles(d *Document) {
	k.files, k.digest = d, d.Digest()
	next := mark{Files: k.digest.String(), Base: k.mark.Base}
	switch k.mark.Files {
	case next.Files:
		return
	case "": // the node is new, or has lost its mark: nothing is known to have changed
		next.Base = ""
	default:
		next.Base = k.base
	}
	k.setMark(next)
}

// setMark remembers a mark. A mark that cannot be written holds until the node
// stops; then the next start finds the files changed once more. k.mu is held.
func (k *Keeper) setMark(m mark) {
	k.mark = m
	if err := writeMark(k.opt.Dir, m); err != nil {
		k.opt.Log.Warn("it cannot be noted which configuration files this node has", "error", err)
	}
}

// Run keeps to what is committed until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(k.opt.Every)
	defer tick.Stop()
	for last := ""; ; {
		problem := messageOf(k.Look())
		if problem != "" && problem != last {
			k.opt.Log.Error("the cluster's configuration is not obeyed", "error", problem)
		}
		last = problem
		if err := k.waitForNews(ctx, tick.C); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (k *Keeper) waitForNews(ctx context.Context, tick <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.wake:
	case <-tick:
	}
	return nil
}

// Lead commits this node's files when they have changed, as long as it leads.
func (k *Keeper) Lead(ctx context.Context) error {
	tick := time.NewTicker(k.opt.Every)
	defer tick.Stop()
	for {
		if err := k.Reconcile(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Reconcile is what a leader does first: where nothing is committed, or this node's
// files have changed since, its files become the cluster's configuration. It
// returns once what is committed is obeyed. An error says that this node cannot
// obey it and should not lead; that something cannot be committed now is none,
// for [Keeper.Lead] tries again.
func (k *Keeper) Reconcile(ctx context.Context) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	if err := k.lookLocked(); err != nil {
		return err
	}
	files, before, due := k.dueFiles()
	if !due {
		return nil
	}
	done, err := k.commitFiles(ctx, files, before)
	if now := messageOf(err); now != k.hindered && ctx.Err() == nil {
		if k.hindered = now; now != "" {
			k.opt.Log.Warn("the configuration cannot be committed now; trying again each second", "error", now)
		}
	}
	if err != nil {
		return nil //nolint:nilerr // Lead tries again
	}
	if done {
		k.noteCommitted(files)
	}
	return k.lookLocked()
}

// commitFiles puts files in the place of before; false when something else is there.
func (k *Keeper) commitFiles(ctx context.Context, files *Document, before *Committed) (bool, error) {
	view, err := k.opt.Views.View()
	if err != nil {
		return false, err
	}
	steps, err := Plan(view, files, before, k.opt.Node, k.opt.Now())
	if err = errors.Join(err, view.Close()); err != nil {
		return false, err
	}
	return Execute(ctx, k.opt.Writer.Write, steps)
}

// noteCommitted notes that files have been committed. What has changed in them meanwhile
// is to be committed next.
func (k *Keeper) noteCommitted(files *Document) {
	k.mu.Lock()
	defer k.mu.Unlock()
	digest := files.Digest()
	k.opt.Log.Info("this node's files are the cluster's configuration now", "digest", digest)
	k.base = digest.String()
	if k.opt.Committed != nil {
		k.opt.Committed(k.base)
	}
	next := mark{Files: k.mark.Files}
	if k.digest != digest {
		next.Base = k.base
	}
	k.setMark(next)
}

// dueFiles returns what this node, as the leader, should commit.
func (k *Keeper) dueFiles() (files *Document, before *Committed, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.files, k.committed, k.committed == nil || k.digest != k.committed.Digest && k.mark.Base != ""
}

// Look reads what is committed, and has it obeyed when it is news. The error
// says why it is not obeyed.
func (k *Keeper) Look() error {
	k.turn.Lock()
	defer k.turn.Unlock()
	return k.lookLocked()
}

// lookLocked is Look while k.turn is held.
func (k *Keeper) lookLocked() error {
	committed, err := k.readAgain()
	if errors.Is(err, store.ErrClosed) {
		return nil
	}
	if err == nil && k.noteState(committed) {
		err = k.opt.Obey(committed.Document)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem, k.obeyed = err, err == nil && committed != nil
	return err
}

func (k *Keeper) readAgain() (*Committed, error) {
	view, err := k.opt.Views.View()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	last := k.committed
	k.mu.Unlock()
	committed, err := readCommitted(view, last)
	return committed, errors.Join(err, view.Close())
}

// noteState compares what is committed with what was, and with the files. It reports
// whether there is something to obey.
func (k *Keeper) noteState(c *Committed) (news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c == nil {
		k.committed, k.base = nil, noBase
		return false
	}
	news = !k.obeyed || k.committed == nil || k.committed.Digest != c.Digest
	k.committed, k.base = c, c.Digest.String()
	switch {
	case k.mark.Base == "":
	case k.digest == c.Digest:
		k.setMark(mark{Files: k.mark.Files})
	case k.mark.Base != c.Digest.String():
		k.opt.Log.Warn("the cluster's configuration was changed elsewhere after this node's files were; they are not committed any more",
			"by", c.By, "remedy", "bursar config commit makes the files of a node the cluster's")
		k.setMark(mark{Files: k.mark.Files})
	}
	k.reportDifferences(c)
	return news
}

// reportDifferences says once that the files differ, and once that they do not any more.
// k.mu is held.
func (k *Keeper) reportDifferences(c *Committed) {
	now := ""
	if k.digest != c.Digest {
		now = k.digest.String() + c.Digest.String()
	}
	if now == k.told {
		return
	}
	k.told = now
	if now == "" {
		k.opt.Log.Info("this node's files agree with the cluster's configuration again")
		return
	}
	list := k.opt.Diff(k.files, c.Document)
	first := ""
	if len(list) > 0 {
		first = list[0].String()
	}
	k.opt.Log.Warn("this node's files differ from the cluster's configuration, which is obeyed", "differences", len(list), "first", first,
		"committed_by", c.By, "remedy", "bursar config diff shows where; bursar config commit makes the files of a node the cluster's")
}

// Facts are what a node says of its configuration.
type Facts struct {
	Files Digest // of what this node's files say
	// Committed is the active configuration; nil before the first commit.
	Committed *Committed
	// Differs says that the files are not what is committed.
	Differs     bool
	Differences []Difference
	// Problem says why what is committed is not obeyed; nil when it is.
	Problem error
}

// Facts returns how this node's files stand.
func (k *Keeper) Facts() Facts {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := Facts{Files: k.digest, Committed: k.committed, Problem: k.problem}
	if k.committed != nil && k.digest != k.committed.Digest {
		if k.compared.files != k.files || k.compared.committed != k.committed {
			k.compared = comparison{k.files, k.committed, k.opt.Diff(k.files, k.committed.Document)}
		}
		f.Differs, f.Differences = true, slices.Clone(k.compared.differences)
	}
	return f
}

// collector shows how the files stand.
type collector struct {
	keeper                     *Keeper
	differs, disobeyed, commit *prometheus.Desc
}

func newCollector(k *Keeper) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("bursar_config_"+name, help, nil, nil)
	}
	return &collector{
		keeper:    k,
		differs:   desc("differs", "1 while this node's files differ from the cluster's configuration."),
		disobeyed: desc("disobeyed", "1 while this node cannot do what the cluster's configuration wants."),
		commit:    desc("commit_timestamp_seconds", "When the cluster's configuration was committed."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.differs, c.disobeyed, c.commit} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	f := c.keeper.Facts()
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(c.differs, gauges.OneIf(f.Differs))
	gauge(c.disobeyed, gauges.OneIf(f.Problem != nil))
	if f.Committed != nil {
		gauge(c.commit, gauges.UnixSeconds(f.Committed.At))
	}
}
