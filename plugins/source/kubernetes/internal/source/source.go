package source

import (
	"context"
	"log/slog"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// Version is that of the plugin.
const Version = "1.0.0"

// Mapping is the default mapping.
const Mapping = `id          = "${source.label}-${job.id}"
start       = job.start
stop        = job.stop
submit      = job.submit
state       = job.state
exit_code   = job.exit_code
exit_signal = job.exit_signal
meta = {
  site_id   = source.label
  user_id   = job.user
  group_id  = job.namespace
  project   = job.project
  partition = job.queue
  namespace = job.namespace
  pod       = job.pod
  container = job.container
  kind      = job.kind
  node      = job.node
  job       = job.job
  job_name  = job.cron_job != null ? job.cron_job : job.job # the key that all schedulers have
  cron_job  = job.cron_job
  workflow  = job.workflow
  gpu_model = job.gpu_model
  usage     = job.usage
  estimated = job.estimated ? "true" : null
  run_part  = job.kind == "main" || job.kind == "pod" ? null : job.kind # not counted as a job
}
component "MilliCores" {
  amount = job.cpu_millicores
  when   = try(job.cpu_millicores > 0, false)
}
component "Memory" {
  amount = job.memory_mb
  when   = try(job.memory_mb > 0, false)
}
component "Disk" {
  amount = job.disk_mb
  when   = try(job.disk_mb > 0, false)
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
component "GPUs:*" { # of the node's model, as in the capacity
  amounts = { (job.gpu_model) = job.gpus }
  when    = job.gpu_model != null && try(job.gpus > 0, false)
}
component "MilliGPUs" { # with slices and shares of cards; 1000 for a whole one
  amount = job.milli_gpus
  when   = try(job.milli_gpus > 0, false)
}
component "TotalCPU" {
  amount = job.cpu_seconds
  kind   = "total"
  when   = job.cpu_seconds != null
}
component "MemoryUsed" { # the peak
  amount = job.memory_max_mb
  when   = job.memory_max_mb != null
}
`

// Source is the Kubernetes source. New makes it.
type Source struct {
	config  config
	columns *run.Columns
	wants   func(string) bool
	dir     string
	now     func() time.Time
	log     *slog.Logger

	oneLook bool   // Collect ends after a listing, for tests
	account string // folder of the service account, for tests; "": where a pod has it

	// What follows only saves work.
	facts   facts.Schedule
	granted map[string]bool   // rights beside that to pods which were there, also before a restart
	denied  map[string]denial // those that are missing
}

// New makes a source that logs to log.
func New(log *slog.Logger) *Source {
	return &Source{now: time.Now, log: log, granted: map[string]bool{}, denied: map[string]denial{}}
}

// Describe says what the source is.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "kubernetes", Version: Version, Rank: sdk.RankScheduler, Push: true, Interval: time.Minute,
		Attributes: run.Attributes(), Mapping: Mapping, Settings: new(settings),
	}
}

// Configure takes the config block; see the README for its keys.
func (s *Source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.config = readConfig(cfg)
	s.config.server.Account = s.account
	s.wants, s.dir = cfg.Wants, cfg.DataDir
	s.columns = run.NewColumns(&s.config.rules, cfg.Wants)
	if client, err := kube.NewClient(s.config.server); err != nil { // files that may be written later
		cfg.Warnf("kubeconfig", "Kubernetes cannot be asked yet: %v", err)
	} else {
		client.Close()
	}
	return cfg.Err()
}
