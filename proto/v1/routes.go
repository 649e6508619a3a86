// Code generated from openapi.yaml by go test ./proto/v1 -update. DO NOT EDIT.

package v1

import (
	"context"
	"encoding/json"
	"io"
	"iter"
)

// ListRecordsQuery is the query of GET /v1/records.
type ListRecordsQuery struct {
	RecordID string `query:"record_id"`
	// `start_time[gte]=2024-01-01T00:00:00Z`; a plus is written %2B.
	StartTime TimeTest `query:"start_time"`
	// Runs that go on meet no condition of it.
	StopTime TimeTest `query:"stop_time"`
	// Whole seconds. Runs that go on meet no condition of it.
	Runtime NumberTest `query:"runtime"`
	// Whole seconds from submit to start. Records without a submit time, or whose submit is after the
	// start, meet no condition of it.
	Wait NumberTest `query:"wait"`
	// `meta[KEY][c][0]=VALUE` for what the list of the key contains, `dnc` for what it does not;
	// several hold together. `any`, which AUDITOR does not have, is for several of which the list has
	// at least one. A record without the key meets none of them. Each VALUE is one, and a comma in it
	// is a part of it.
	Meta map[string]MetaTest `query:"meta"`
	// `component[Cores][gte]=8`, of the first component of that name.
	Component map[string]NumberTest `query:"component"`
	// The default is ascending by stop_time. Runs that go on come last, and first when descending.
	SortBy SortBy `query:"sort_by"`
	Limit  int    `query:"limit" min:"1"`
	// The `next` of the former page of the same query.
	Cursor string `query:"cursor"`
	// Only runs that go on, or only those that ended.
	Open *bool `query:"open"`
	// `change`, the order of the change feed; or `stop_time`, `start_time`, `runtime`, `record_id`,
	// `meta.KEY`, the first value of a key, `component.NAME`, an amount, or `used.NAME`, an amount ×
	// how long the run took; behind a minus the greatest come first. Records without the key or
	// component come last, and by `used.NAME` runs that go on. Not with `sort_by`.
	Order string `query:"order"`
	// Only records that changed behind this position of the feed.
	After uint64 `query:"after"`
	// Only runs that ended after this, or go on. With `ran_to`, those that ran at any instant between.
	RanFrom Time `query:"ran_from"`
	// Only runs that started before this.
	RanTo Time `query:"ran_to"`
	// Archived records too, in their place, with their details read from the files of the archives.
	// Without it they are left out, and the header `X-Bursar-Archived` names the archives.
	Archived *bool `query:"archived"`
	Reading
}

// ListRecords is GET /v1/records: Records page by page, or as a stream.
func (a API) ListRecords(ctx context.Context, q *ListRecordsQuery) (out RecordPage, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/records", queryValues(q), nil, &out)
	return out, err
}

// ListRecordsAddress is a link to GET /v1/records. The format "" is JSON.
func ListRecordsAddress(q *ListRecordsQuery, format string) string {
	return addressOf("/v1/records", queryValues(q), format)
}

// ListRecordsLines is GET /v1/records: Records page by page, or as a stream, line by line.
func (a API) ListRecordsLines(ctx context.Context, q *ListRecordsQuery) iter.Seq2[FullRecord, error] {
	return decodeLines[FullRecord](a.Caller.Stream(ctx, "/v1/records", queryValues(q)))
}

// ListRecordsAs is GET /v1/records: Records page by page, or as a stream, written to w:
// application/x-ndjson, text/csv.
func (f Files) ListRecordsAs(ctx context.Context, q *ListRecordsQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/records", queryValues(q), accept, w)
}

// GetEntry is GET /v1/records/{id}: What is shown under an id, and what everyone says.
func (a API) GetEntry(ctx context.Context, id string, q *Reading) (out Entry, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/records/"+pathPart(id), queryValues(q), nil, &out)
	return out, err
}

// GetEntryAddress is a link to GET /v1/records/{id}. The format "" is JSON.
func GetEntryAddress(id string, q *Reading, format string) string {
	return addressOf("/v1/records/"+pathPart(id), queryValues(q), format)
}

// DeleteRecord is DELETE /v1/records/{id}: Delete a record.
func (a API) DeleteRecord(ctx context.Context, id string) error {
	return a.Caller.Call(ctx, "DELETE", "/v1/records/"+pathPart(id), nil, nil, nil)
}

// UndeleteRecord is POST /v1/records/{id}:undelete: Lift the mark of a deleted record.
func (a API) UndeleteRecord(ctx context.Context, id string) error {
	return a.Caller.Call(ctx, "POST", "/v1/records/"+pathPart(id)+":undelete", nil, nil, nil)
}

// JobRecordsQuery is the query of GET /v1/jobs.
type JobRecordsQuery struct {
	// The id of the job.
	ID string `query:"id"`
	Reading
}

// JobRecords is GET /v1/jobs: The ids under which records of a job are or were.
func (a API) JobRecords(ctx context.Context, q *JobRecordsQuery) (out JobRecords, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/jobs", queryValues(q), nil, &out)
	return out, err
}

// JobRecordsAddress is a link to GET /v1/jobs. The format "" is JSON.
func JobRecordsAddress(q *JobRecordsQuery, format string) string {
	return addressOf("/v1/jobs", queryValues(q), format)
}

// BudgetsQuery is the query of GET /v1/budgets.
type BudgetsQuery struct {
	// Only that budget.
	Name string `query:"name"`
	// A point in the period, by the clock of each budget's zone, such as 2025, 2026-Q3, last-month or
	// an instant; default now.
	At string `query:"at"`
	Reading
}

// Budgets is GET /v1/budgets: What is used, reserved and left of budgets, and when they will be
// gone.
func (a API) Budgets(ctx context.Context, q *BudgetsQuery) (out Budgets, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/budgets", queryValues(q), nil, &out)
	return out, err
}

// BudgetsAddress is a link to GET /v1/budgets. The format "" is JSON.
func BudgetsAddress(q *BudgetsQuery, format string) string {
	return addressOf("/v1/budgets", queryValues(q), format)
}

// PricesQuery is the query of GET /v1/prices.
type PricesQuery struct {
	// A point in time, such as 2025, last-month or an instant; default now.
	At string `query:"at"`
	// In the place of at: all prices that hold at some time of this window. The words are those of
	// `/v1/usage`.
	Window string `query:"window"`
	// With to, in the place of window.
	From string `query:"from"`
	To   string `query:"to"`
	Reading
}

// Prices is GET /v1/prices: The prices that hold at a time, or in a window.
func (a API) Prices(ctx context.Context, q *PricesQuery) (out Prices, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/prices", queryValues(q), nil, &out)
	return out, err
}

// PricesAddress is a link to GET /v1/prices. The format "" is JSON.
func PricesAddress(q *PricesQuery, format string) string {
	return addressOf("/v1/prices", queryValues(q), format)
}

// ChangesQuery is the query of GET /v1/changes.
type ChangesQuery struct {
	// The `last` of the former answer; 0 is the beginning. Not with ledger.
	After uint64 `query:"after"`
	// Closed records with what each change supersedes.
	Ledger *bool `query:"ledger"`
	// The `next` of the former answer; goes on with the ledger.
	Cursor string `query:"cursor"`
	// Only with ledger: the change up to which the next state goes, such as `last` of
	// `/v1/changes/digest`.
	Until *uint64 `query:"until"`
	Limit int     `query:"limit" min:"1" max:"10000"`
	Reading
}

// Changes is GET /v1/changes: What changed behind a position of the feed.
func (a API) Changes(ctx context.Context, q *ChangesQuery) (out Changes, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/changes", queryValues(q), nil, &out)
	return out, err
}

// ChangesAddress is a link to GET /v1/changes. The format "" is JSON.
func ChangesAddress(q *ChangesQuery, format string) string {
	return addressOf("/v1/changes", queryValues(q), format)
}

// ChangesAs is GET /v1/changes: What changed behind a position of the feed, written to w:
// application/x-ndjson.
func (f Files) ChangesAs(ctx context.Context, q *ChangesQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/changes", queryValues(q), accept, w)
}

// ChangesDigest is GET /v1/changes/digest: Sums by which a copy of the records checks itself.
func (a API) ChangesDigest(ctx context.Context, q *Reading) (out ChangesDigest, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/changes/digest", queryValues(q), nil, &out)
	return out, err
}

// ChangesDigestAddress is a link to GET /v1/changes/digest. The format "" is JSON.
func ChangesDigestAddress(q *Reading, format string) string {
	return addressOf("/v1/changes/digest", queryValues(q), format)
}

// OpenRunsLines is GET /v1/changes/open: The records that go on, with the time up to which each
// counts, line by line.
func (a API) OpenRunsLines(ctx context.Context, q *Reading) iter.Seq2[OpenRunLine, error] {
	return decodeLines[OpenRunLine](a.Caller.Stream(ctx, "/v1/changes/open", queryValues(q)))
}

// OpenRuns is GET /v1/changes/open: The records that go on, with the time up to which each counts,
// written to w: application/x-ndjson.
func (f Files) OpenRuns(ctx context.Context, q *Reading, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/changes/open", queryValues(q), "application/x-ndjson", w)
}

// UsageQuery is the query of GET /v1/usage.
type UsageQuery struct {
	// `2026`, `2026-Q3`, `2026-03`, `2026-W05`, `2026-03-01`, `today`, `yesterday`, `this-week`,
	// `this-month`, `this-quarter`, `this-year`, `last-week`, `last-month`, `last-quarter`,
	// `last-year`, two of these with `..` between, such as `2026-03-01..2026-03-15`, from the start of
	// the one to the end of the other, or how long up to now, such as `14d` or `36h`. Today and
	// this-… end now.
	Window string `query:"window"`
	// In the place of window: RFC 3339, a date with a time of the zone's clock, such as
	// `2026-03-01T12:00`, `now`, how long ago, or one of the words of window, which is its start.
	From string `query:"from"`
	// As from; not in the window itself, so a date is the start of that day. Now, when it is not given.
	To string `query:"to"`
	// By whose clock, such as `Europe/Berlin`. Without it by that of the site.
	Zone string `query:"zone"`
	// Weeks are those of ISO 8601. Without it there is one bucket, the window.
	Bucket string `query:"bucket" enum:"hour,day,week,month,quarter,year"`
	// Meta keys, with commas as in where or again; and keys that follow from them by the configuration,
	// such as `project`, which hide meta keys of the same name.
	By string `query:"by" list:"true"`
	// With commas as in where or again. `records` that run in the bucket; `jobs`, which are the runs
	// among them: all records but those with the meta key `run_part`, which are a part of a run that
	// has a record of its own. A job that ran again counts once for each run, and each task of an array
	// is a job. Of jobs are `started`, `stopped`, `wait`: the mean time from submit to start of those
	// that started, and `running` and `queued`: how many ran, and waited between submit and start, at a
	// time, in the mean of the bucket (those that have not started are not known). `people`: distinct
	// values of the key `people`, `efficiency`: CPU seconds for each second of a core, `unused`: the
	// time of cores beyond these CPU seconds, both of the records that have both components (`unused`
	// is negative where these used more, and null where there are none), what usage is worth by the
	// configuration, such as `cost` and `su`, a component, or COMPONENT*SCORE. Without it records and
	// all components with their scores. With a block `energy` in the configuration: `energy` in kWh, of
	// which `energy_measured` follows from joules of the records and `energy_modelled` from watts of
	// their components; and `co2` in kg of CO2 equivalents, which is `co2_measured` and `co2_modelled`
	// of that energy, by the factor of each hour, and `co2_embodied`, the part of the making of the
	// hardware. A figure that is not known is null, as `co2` is where only the embodied part is known;
	// what is in no figure is in `unpriced`: components without a power, and `energy` in kWh without a
	// factor. The answer's `energy` has how many kWh are measured, and how many rest on a default: a
	// PUE of 1, and full load. With a block `meter` in it: `energy_metered`, what the meters counted in
	// kWh, and `energy_idle`, of it what no job has: jobs and idle part are the meter. Both are of the
	// whole site, without `by` and filters. They are null in a bucket for a part of which a meter has
	// no reading; `energy_idle` is negative where the jobs exceed the meter. The answer's
	// `energy.meter` names both. `capacity` is what clusters had of the component `cores`, up to now,
	// and `utilization` what was used of it: 1 is all. `capacity*Memory`, `utilization*GPUs` and
	// `utilization*su` are about others. They are of the group's cluster where `cluster` is among the
	// keys of by, else of all clusters whose records can pass the filters, and null where nothing was
	// there. What was used where no capacity is known is not in a utilization; `lacking` says how much
	// that is.
	Measure string `query:"measure" list:"true"`
	// A filter by the first value of a meta key or by a derived one: `where[project]=bell`, of several
	// values one with `where[project]=bell,sagan`, and `where[project]=` records without a project. In
	// this and all other lists of a query a comma of a value is written `\,`, and a backslash before a
	// comma `\\`; any other backslash is itself: `oak\,elm` is one value, `oak,elm` two.
	// `where[cluster]` also takes groups of clusters.
	Where map[string]string `query:"where"`
	// A filter, as `component[Cores][gte]=8`; and without brackets, `component=Cores`, components that
	// are wanted with all their scores.
	Component  map[string]NumberTest `query:"component"`
	Components string                `query:"component" list:"true"`
	// To each instant what was used in it, or all of a run to its stop.
	Credit string `query:"credit" enum:"spread,stop"`
	Unit   string `query:"unit" enum:"second,hour"`
	// How many groups have a line of their own; the others are one.
	Top int `query:"top" min:"1"`
	// The measure by which groups are ordered, the largest first. With top and without order it is the
	// first that measure names, or the first component.
	Order string `query:"order"`
	// `previous`, `last-year` or a word of window. Groups are compared in whole windows. The start of a
	// month is compared with the start of another.
	Compare string `query:"compare"`
	People  string `query:"people"`
	// The component with CPU seconds, for efficiency.
	CPU   string `query:"cpu"`
	Cores string `query:"cores"`
	// Only runs that go on, or only those that ended.
	Open     *bool  `query:"open"`
	RecordID string `query:"record_id"`
	// `start_time[gte]=2024-01-01T00:00:00Z`; a plus is written %2B.
	StartTime TimeTest `query:"start_time"`
	// Runs that go on meet no condition of it.
	StopTime TimeTest `query:"stop_time"`
	// Whole seconds. Runs that go on meet no condition of it.
	Runtime NumberTest `query:"runtime"`
	// Whole seconds from submit to start. Records without a submit time, or whose submit is after the
	// start, meet no condition of it.
	Wait NumberTest `query:"wait"`
	// `meta[KEY][c][0]=VALUE` for what the list of the key contains, `dnc` for what it does not;
	// several hold together. `any`, which AUDITOR does not have, is for several of which the list has
	// at least one. A record without the key meets none of them. Each VALUE is one, and a comma in it
	// is a part of it.
	Meta map[string]MetaTest `query:"meta"`
	Reading
}

// Usage is GET /v1/usage: Who used how much of what, and when.
func (a API) Usage(ctx context.Context, q *UsageQuery) (out Usage, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/usage", queryValues(q), nil, &out)
	return out, err
}

// UsageAddress is a link to GET /v1/usage. The format "" is JSON.
func UsageAddress(q *UsageQuery, format string) string {
	return addressOf("/v1/usage", queryValues(q), format)
}

// UsageLines is GET /v1/usage: Who used how much of what, and when, line by line.
func (a API) UsageLines(ctx context.Context, q *UsageQuery) iter.Seq2[UsageLine, error] {
	return decodeLines[UsageLine](a.Caller.Stream(ctx, "/v1/usage", queryValues(q)))
}

// UsageAs is GET /v1/usage: Who used how much of what, and when, written to w:
// application/x-ndjson, text/csv, application/vnd.apache.parquet.
func (f Files) UsageAs(ctx context.Context, q *UsageQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/usage", queryValues(q), accept, w)
}

// DistributionsQuery is the query of GET /v1/distributions.
type DistributionsQuery struct {
	// The words are those of `/v1/usage`.
	Window string `query:"window"`
	// With to, in the place of window.
	From string `query:"from"`
	To   string `query:"to"`
	// By whose clock, such as `Europe/Berlin`. Without it by that of the site.
	Zone string `query:"zone"`
	// A filter by the values of a meta key: `where[group_id]=atlas`, of several values one with commas
	// as in `/v1/usage`. Keys that follow from the configuration are refused.
	Where    map[string]string `query:"where"`
	RecordID string            `query:"record_id"`
	// `start_time[gte]=2024-01-01T00:00:00Z`; a plus is written %2B.
	StartTime TimeTest `query:"start_time"`
	// Runs that go on meet no condition of it.
	StopTime TimeTest `query:"stop_time"`
	// Whole seconds. Runs that go on meet no condition of it.
	Runtime NumberTest `query:"runtime"`
	// Whole seconds from submit to start. Records without a submit time, or whose submit is after the
	// start, meet no condition of it.
	Wait NumberTest `query:"wait"`
	// `meta[KEY][c][0]=VALUE` for what the list of the key contains, `dnc` for what it does not;
	// several hold together. `any`, which AUDITOR does not have, is for several of which the list has
	// at least one. A record without the key meets none of them. Each VALUE is one, and a comma in it
	// is a part of it.
	Meta map[string]MetaTest `query:"meta"`
	// `component[Cores][gte]=8`, of the first component of that name.
	Component map[string]NumberTest `query:"component"`
	Reading
}

// Distributions is GET /v1/distributions: How jobs are distributed by size, wait, run time and
// efficiency.
func (a API) Distributions(ctx context.Context, q *DistributionsQuery) (out Distributions, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/distributions", queryValues(q), nil, &out)
	return out, err
}

// DistributionsAddress is a link to GET /v1/distributions. The format "" is JSON.
func DistributionsAddress(q *DistributionsQuery, format string) string {
	return addressOf("/v1/distributions", queryValues(q), format)
}

// DirectoryQuery is the query of GET /v1/directory.
type DirectoryQuery struct {
	// As `from` of `/v1/usage`; now, when it is not given.
	At string `query:"at"`
	// Also the groups and users that have records in the 90 days before and that no project claims.
	Unclaimed bool `query:"unclaimed"`
	Reading
}

// Directory is GET /v1/directory: Who belongs where, who contributed what, and what hosts are
// worth.
func (a API) Directory(ctx context.Context, q *DirectoryQuery) (out Directory, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/directory", queryValues(q), nil, &out)
	return out, err
}

// DirectoryAddress is a link to GET /v1/directory. The format "" is JSON.
func DirectoryAddress(q *DirectoryQuery, format string) string {
	return addressOf("/v1/directory", queryValues(q), format)
}

// SubscriptionQuery is the query of GET /v1/subscription.
type SubscriptionQuery struct {
	// As of `/v1/usage`; this month, when no time is given.
	Window string `query:"window"`
	From   string `query:"from"`
	To     string `query:"to"`
	// By whose clock days begin; without it by that of the site.
	Zone string `query:"zone"`
	// As of `/v1/usage`: only the use of these records counts. Contributions are the same.
	Where map[string]string `query:"where"`
	// To each instant what was used in it, or all of a run to its stop.
	Credit string `query:"credit" enum:"spread,stop"`
	Reading
}

// Subscription is GET /v1/subscription: What principal investigators used beside what is credited
// to them.
func (a API) Subscription(ctx context.Context, q *SubscriptionQuery) (out Subscription, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/subscription", queryValues(q), nil, &out)
	return out, err
}

// SubscriptionAddress is a link to GET /v1/subscription. The format "" is JSON.
func SubscriptionAddress(q *SubscriptionQuery, format string) string {
	return addressOf("/v1/subscription", queryValues(q), format)
}

// Reports is GET /v1/reports: The reports that there are, and what each takes.
func (a API) Reports(ctx context.Context) (out Reports, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/reports", nil, nil, &out)
	return out, err
}

// ReportsAddress is a link to GET /v1/reports. The format "" is JSON.
func ReportsAddress(format string) string { return addressOf("/v1/reports", nil, format) }

// ReportQuery is the query of GET /v1/reports/{report}.
type ReportQuery struct {
	// A window as of `/v1/usage`; given twice, two of them side by side. This month and this year, when
	// it is not given.
	Period []string `query:"period"`
	// By whose clock days begin; without it by that of the site.
	Zone string `query:"zone"`
	// Only of a value of a key, or of several as in `/v1/usage`: `where[group_id]=atlas`. Also as
	// `where=group_id=atlas`.
	Where map[string]string `query:"where"`
	// The key that gives the lines.
	By string `query:"by"`
	// How many lines there are at most; the others are one.
	Top string `query:"top"`
	Reading
}

// Report is GET /v1/reports/{report}: A report to read, print or forward.
func (a API) Report(ctx context.Context, report string, q *ReportQuery) (out Document, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/reports/"+pathPart(report), queryValues(q), nil, &out)
	return out, err
}

// ReportAddress is a link to GET /v1/reports/{report}. The format "" is JSON.
func ReportAddress(report string, q *ReportQuery, format string) string {
	return addressOf("/v1/reports/"+pathPart(report), queryValues(q), format)
}

// ReportAs is GET /v1/reports/{report}: A report to read, print or forward, written to w: text/csv,
// text/html, application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.
func (f Files) ReportAs(ctx context.Context, report string, q *ReportQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/reports/"+pathPart(report), queryValues(q), accept, w)
}

// Agents is GET /v1/agents: The agents and their sources, with lag and completeness.
func (a API) Agents(ctx context.Context, q *Reading) (out Agents, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/agents", queryValues(q), nil, &out)
	return out, err
}

// AgentsAddress is a link to GET /v1/agents. The format "" is JSON.
func AgentsAddress(q *Reading, format string) string {
	return addressOf("/v1/agents", queryValues(q), format)
}

// AgentsAs is GET /v1/agents: The agents and their sources, with lag and completeness, written to
// w: text/csv.
func (f Files) AgentsAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/agents", queryValues(q), accept, w)
}

// Counters is GET /v1/counters: What became of everything that was written, by source.
func (a API) Counters(ctx context.Context, q *Reading) (out Counters, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/counters", queryValues(q), nil, &out)
	return out, err
}

// CountersAddress is a link to GET /v1/counters. The format "" is JSON.
func CountersAddress(q *Reading, format string) string {
	return addressOf("/v1/counters", queryValues(q), format)
}

// CountersAs is GET /v1/counters: What became of everything that was written, by source, written to
// w: text/csv.
func (f Files) CountersAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/counters", queryValues(q), accept, w)
}

// Alerts is GET /v1/alerts: What fires, what is silenced, and whom the alerts could not be told.
func (a API) Alerts(ctx context.Context, q *Reading) (out Alerts, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/alerts", queryValues(q), nil, &out)
	return out, err
}

// AlertsAddress is a link to GET /v1/alerts. The format "" is JSON.
func AlertsAddress(q *Reading, format string) string {
	return addressOf("/v1/alerts", queryValues(q), format)
}

// AlertsAs is GET /v1/alerts: What fires, what is silenced, and whom the alerts could not be told,
// written to w: text/csv.
func (f Files) AlertsAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/alerts", queryValues(q), accept, w)
}

// SilenceAlerts is POST /v1/alerts/silences: Make a silence.
func (a API) SilenceAlerts(ctx context.Context, body AlertSilenceOrder) (out AlertOrdered, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/alerts/silences", nil, body, &out)
	return out, err
}

// ExpireSilence is DELETE /v1/alerts/silences/{id}: End a silence.
func (a API) ExpireSilence(ctx context.Context, id string) (out AlertOrdered, err error) {
	err = a.Caller.Call(ctx, "DELETE", "/v1/alerts/silences/"+pathPart(id), nil, nil, &out)
	return out, err
}

// Actions is GET /v1/actions: Actions, their state and their last runs.
func (a API) Actions(ctx context.Context, q *Reading) (out Actions, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/actions", queryValues(q), nil, &out)
	return out, err
}

// ActionsAddress is a link to GET /v1/actions. The format "" is JSON.
func ActionsAddress(q *Reading, format string) string {
	return addressOf("/v1/actions", queryValues(q), format)
}

// ActionsAs is GET /v1/actions: Actions, their state and their last runs, written to w: text/csv.
func (f Files) ActionsAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/actions", queryValues(q), accept, w)
}

// ActionRunsQuery is the query of GET /v1/actions/{type}/{label}/runs.
type ActionRunsQuery struct {
	Limit int `query:"limit" min:"1" max:"10000"`
	Reading
}

// ActionRuns is GET /v1/actions/{type}/{label}/runs: The runs of an action, the newest first.
func (a API) ActionRuns(ctx context.Context, typ string, label string, q *ActionRunsQuery) (out ActionRuns, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs", queryValues(q), nil, &out)
	return out, err
}

// ActionRunsAddress is a link to GET /v1/actions/{type}/{label}/runs. The format "" is JSON.
func ActionRunsAddress(typ string, label string, q *ActionRunsQuery, format string) string {
	return addressOf("/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs", queryValues(q), format)
}

// ActionRunsAs is GET /v1/actions/{type}/{label}/runs: The runs of an action, the newest first,
// written to w: text/csv.
func (f Files) ActionRunsAs(ctx context.Context, typ string, label string, q *ActionRunsQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs", queryValues(q), accept, w)
}

// ActionRun is GET /v1/actions/{type}/{label}/runs/{run}: A run with its effects and all attempts
// at them.
func (a API) ActionRun(ctx context.Context, typ string, label string, run uint64, q *Reading) (out ActionRunEffects, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run), queryValues(q), nil, &out)
	return out, err
}

// ActionRunAddress is a link to GET /v1/actions/{type}/{label}/runs/{run}. The format "" is JSON.
func ActionRunAddress(typ string, label string, run uint64, q *Reading, format string) string {
	return addressOf("/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run), queryValues(q), format)
}

// ActionRunAs is GET /v1/actions/{type}/{label}/runs/{run}: A run with its effects and all attempts
// at them, written to w: text/csv.
func (f Files) ActionRunAs(ctx context.Context, typ string, label string, run uint64, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run), queryValues(q), accept, w)
}

// ActionEffect is GET /v1/actions/{type}/{label}/runs/{run}/effects/{effect}: What an effect does,
// byte by byte.
func (a API) ActionEffect(ctx context.Context, typ string, label string, run uint64, effect int, q *Reading) (out EffectPayload, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run)+"/effects/"+pathPart(effect), queryValues(q), nil, &out)
	return out, err
}

// ActionEffectAddress is a link to GET /v1/actions/{type}/{label}/runs/{run}/effects/{effect}. The format "" is JSON.
func ActionEffectAddress(typ string, label string, run uint64, effect int, q *Reading, format string) string {
	return addressOf("/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run)+"/effects/"+pathPart(effect), queryValues(q), format)
}

// RetryEffect is POST /v1/actions/{type}/{label}/runs/{run}/effects/{effect}:retry: Retry an effect
// that is unknown, rejected, skipped or superseded.
func (a API) RetryEffect(ctx context.Context, typ string, label string, run uint64, effect int, body ActionOrder) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run)+"/effects/"+pathPart(effect)+":retry", nil, body, &out)
	return out, err
}

// SkipEffect is POST /v1/actions/{type}/{label}/runs/{run}/effects/{effect}:skip: Skip an effect
// that is pending, unknown or rejected.
func (a API) SkipEffect(ctx context.Context, typ string, label string, run uint64, effect int, body ActionOrder) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+"/runs/"+pathPart(run)+"/effects/"+pathPart(effect)+":skip", nil, body, &out)
	return out, err
}

// RunAction is POST /v1/actions/{type}/{label}:run: Order a run, which begins when what is under
// way has ended.
func (a API) RunAction(ctx context.Context, typ string, label string, body ActionOrder) (out ActionOrdered, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+":run", nil, body, &out)
	return out, err
}

// PauseAction is POST /v1/actions/{type}/{label}:pause: Begin nothing any more; what has begun goes
// to its end.
func (a API) PauseAction(ctx context.Context, typ string, label string, body ActionOrder) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+":pause", nil, body, &out)
	return out, err
}

// ResumeAction is POST /v1/actions/{type}/{label}:resume: Resume a paused or disabled action.
func (a API) ResumeAction(ctx context.Context, typ string, label string, body ActionOrder) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+":resume", nil, body, &out)
	return out, err
}

// PlanAction is POST /v1/actions/{type}/{label}:plan: What a run would do now; nothing is done.
func (a API) PlanAction(ctx context.Context, typ string, label string, body ActionOrder) (out ActionPlan, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/actions/"+pathPart(typ)+"/"+pathPart(label)+":plan", nil, body, &out)
	return out, err
}

// Quarantine is GET /v1/quarantine: Jobs that could not be made into records, without their input.
func (a API) Quarantine(ctx context.Context, q *Reading) (out Quarantine, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/quarantine", queryValues(q), nil, &out)
	return out, err
}

// QuarantineAddress is a link to GET /v1/quarantine. The format "" is JSON.
func QuarantineAddress(q *Reading, format string) string {
	return addressOf("/v1/quarantine", queryValues(q), format)
}

// QuarantineAs is GET /v1/quarantine: Jobs that could not be made into records, without their
// input, written to w: text/csv.
func (f Files) QuarantineAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/quarantine", queryValues(q), accept, w)
}

// Quarantined is GET /v1/quarantine/{agent}/{type}/{label}/{id}: One quarantined job with its
// input.
func (a API) Quarantined(ctx context.Context, agent string, typ string, label string, id string, q *Reading) (out Quarantined, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/quarantine/"+pathPart(agent)+"/"+pathPart(typ)+"/"+pathPart(label)+"/"+pathPart(id), queryValues(q), nil, &out)
	return out, err
}

// QuarantinedAddress is a link to GET /v1/quarantine/{agent}/{type}/{label}/{id}. The format "" is JSON.
func QuarantinedAddress(agent string, typ string, label string, id string, q *Reading, format string) string {
	return addressOf("/v1/quarantine/"+pathPart(agent)+"/"+pathPart(typ)+"/"+pathPart(label)+"/"+pathPart(id), queryValues(q), format)
}

// DropQuarantined is DELETE /v1/quarantine/{agent}/{type}/{label}/{id}: Forget a quarantined job.
func (a API) DropQuarantined(ctx context.Context, agent string, typ string, label string, id string) error {
	return a.Caller.Call(ctx, "DELETE", "/v1/quarantine/"+pathPart(agent)+"/"+pathPart(typ)+"/"+pathPart(label)+"/"+pathPart(id), nil, nil, nil)
}

// RetryQuarantined is POST /v1/quarantine/{agent}/{type}/{label}/{id}:retry: Have the agent map a
// quarantined job again.
func (a API) RetryQuarantined(ctx context.Context, agent string, typ string, label string, id string) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/quarantine/"+pathPart(agent)+"/"+pathPart(typ)+"/"+pathPart(label)+"/"+pathPart(id)+":retry", nil, nil, &out)
	return out, err
}

// BeginImport is POST /v1/imports/{name}: Begin an import.
func (a API) BeginImport(ctx context.Context, name string) (out Import, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/imports/"+pathPart(name), nil, nil, &out)
	return out, err
}

// ImportChunk is POST /v1/imports/{name}/{epoch}: Commit a chunk of an import.
func (f Files) ImportChunk(ctx context.Context, name string, epoch string, body io.Reader) (out ImportProgress, err error) {
	err = f.Carrier.Upload(ctx, "POST", "/v1/imports/"+pathPart(name)+"/"+pathPart(epoch), nil, "application/octet-stream", body, &out)
	return out, err
}

// Conflicts is GET /v1/conflicts: Ids of which origins say starts more than a minute apart.
func (a API) Conflicts(ctx context.Context, q *Reading) (out Conflicts, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/conflicts", queryValues(q), nil, &out)
	return out, err
}

// ConflictsAddress is a link to GET /v1/conflicts. The format "" is JSON.
func ConflictsAddress(q *Reading, format string) string {
	return addressOf("/v1/conflicts", queryValues(q), format)
}

// ConflictsAs is GET /v1/conflicts: Ids of which origins say starts more than a minute apart,
// written to w: text/csv.
func (f Files) ConflictsAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/conflicts", queryValues(q), accept, w)
}

// HoldingsQuery is the query of GET /v1/holdings.
type HoldingsQuery struct {
	// The person.
	Name string `query:"name"`
	// The meta key that names people; that of the directory without it.
	Key string `query:"key"`
	// Only ids after this one.
	After string `query:"after"`
	Reading
}

// Holdings is GET /v1/holdings: Records of a person by what an origin says that is not shown.
func (a API) Holdings(ctx context.Context, q *HoldingsQuery) (out Holdings, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/holdings", queryValues(q), nil, &out)
	return out, err
}

// HoldingsAddress is a link to GET /v1/holdings. The format "" is JSON.
func HoldingsAddress(q *HoldingsQuery, format string) string {
	return addressOf("/v1/holdings", queryValues(q), format)
}

// Waiting is GET /v1/waiting: Stops that have no record yet.
func (a API) Waiting(ctx context.Context, q *Reading) (out Waiting, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/waiting", queryValues(q), nil, &out)
	return out, err
}

// WaitingAddress is a link to GET /v1/waiting. The format "" is JSON.
func WaitingAddress(q *Reading, format string) string {
	return addressOf("/v1/waiting", queryValues(q), format)
}

// WaitingAs is GET /v1/waiting: Stops that have no record yet, written to w: text/csv.
func (f Files) WaitingAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/waiting", queryValues(q), accept, w)
}

// DismissStop is DELETE /v1/waiting/{id}: Forget a stop that waits for its record.
func (a API) DismissStop(ctx context.Context, id string) error {
	return a.Caller.Call(ctx, "DELETE", "/v1/waiting/"+pathPart(id), nil, nil, nil)
}

// AuditQuery is the query of GET /v1/audit.
type AuditQuery struct {
	// A word such as last-month, 2026-03, 14d; without from and to. Default: the last 7 days.
	Window string `query:"window"`
	From   string `query:"from"`
	To     string `query:"to"`
	// Only what this principal did, such as client/alice.
	Who string `query:"who"`
	// Only entries of this kind.
	Kind string `query:"kind" enum:"change,look,login,refusal,gap"`
	// Only entries with this text in `about`.
	About string `query:"about"`
	// At most so many entries; default 1 000.
	Limit int `query:"limit" min:"1" max:"100000"`
	Reading
}

// Audit is GET /v1/audit: Who did what, and who looked at whose data.
func (a API) Audit(ctx context.Context, q *AuditQuery) (out Audit, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/audit", queryValues(q), nil, &out)
	return out, err
}

// AuditAddress is a link to GET /v1/audit. The format "" is JSON.
func AuditAddress(q *AuditQuery, format string) string {
	return addressOf("/v1/audit", queryValues(q), format)
}

// AuditAs is GET /v1/audit: Who did what, and who looked at whose data, written to w: text/csv.
func (f Files) AuditAs(ctx context.Context, q *AuditQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/audit", queryValues(q), accept, w)
}

// EraseFromAudit is POST /v1/audit:erase: Replace a person's name in the audit log.
func (a API) EraseFromAudit(ctx context.Context, body AuditErasure) (out AuditErased, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/audit:erase", nil, body, &out)
	return out, err
}

// RetentionQuery is the query of GET /v1/retention.
type RetentionQuery struct {
	// What would be due if names were kept for so many months; without it what the configuration says.
	Months int `query:"months" min:"1" max:"1200"`
	Reading
}

// Retention is GET /v1/retention: How long records keep the names of persons, and what is due.
func (a API) Retention(ctx context.Context, q *RetentionQuery) (out RetentionPlan, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/retention", queryValues(q), nil, &out)
	return out, err
}

// RetentionAddress is a link to GET /v1/retention. The format "" is JSON.
func RetentionAddress(q *RetentionQuery, format string) string {
	return addressOf("/v1/retention", queryValues(q), format)
}

// Archives is GET /v1/archives: Archives whose records have no details in the store.
func (a API) Archives(ctx context.Context, q *Reading) (out Archives, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/archives", queryValues(q), nil, &out)
	return out, err
}

// ArchivesAddress is a link to GET /v1/archives. The format "" is JSON.
func ArchivesAddress(q *Reading, format string) string {
	return addressOf("/v1/archives", queryValues(q), format)
}

// ArchiveRowsQuery is the query of GET /v1/archives/rows.
type ArchiveRowsQuery struct {
	// The start of the period.
	From Time `query:"from"`
	// The end of the period, not in it.
	To Time `query:"to"`
}

// ArchiveRows is GET /v1/archives/rows: The rows of a period that have their details, with all that
// a restore needs, written to w: application/vnd.bursar.rows.
func (f Files) ArchiveRows(ctx context.Context, q *ArchiveRowsQuery, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/archives/rows", queryValues(q), "application/vnd.bursar.rows", w)
}

// Archive is PUT /v1/archives/{name}: Remove the details of records that are in files.
func (a API) Archive(ctx context.Context, name string, body ArchiveStatement) (out Archive, err error) {
	err = a.Caller.Call(ctx, "PUT", "/v1/archives/"+pathPart(name), nil, body, &out)
	return out, err
}

// EndArchive is DELETE /v1/archives/{name}: Forget an archive whose rows have their details again.
func (a API) EndArchive(ctx context.Context, name string) (out ArchiveRestored, err error) {
	err = a.Caller.Call(ctx, "DELETE", "/v1/archives/"+pathPart(name), nil, nil, &out)
	return out, err
}

// RestoreArchive is POST /v1/archives/{name}:restore: Give rows of an archive their details again.
func (f Files) RestoreArchive(ctx context.Context, name string, body io.Reader) (out ArchiveRestored, err error) {
	err = f.Carrier.Upload(ctx, "POST", "/v1/archives/"+pathPart(name)+":restore", nil, "application/vnd.bursar.rows", body, &out)
	return out, err
}

// Kinds is GET /v1/kinds: Components of pushed records that are stored with another kind than the
// configuration says.
func (a API) Kinds(ctx context.Context, q *Reading) (out Kinds, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/kinds", queryValues(q), nil, &out)
	return out, err
}

// KindsAddress is a link to GET /v1/kinds. The format "" is JSON.
func KindsAddress(q *Reading, format string) string {
	return addressOf("/v1/kinds", queryValues(q), format)
}

// KindsAs is GET /v1/kinds: Components of pushed records that are stored with another kind than the
// configuration says, written to w: text/csv.
func (f Files) KindsAs(ctx context.Context, q *Reading, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/kinds", queryValues(q), accept, w)
}

// RepairKindsQuery is the query of POST /v1/kinds:repair.
type RepairKindsQuery struct {
	// The `after` of the last answer.
	After uint64 `query:"after"`
}

// RepairKinds is POST /v1/kinds:repair: Correct the kinds of some of the pushed records.
func (a API) RepairKinds(ctx context.Context, q *RepairKindsQuery) (out KindsRepair, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/kinds:repair", queryValues(q), nil, &out)
	return out, err
}

// CapacityQuery is the query of GET /v1/capacity.
type CapacityQuery struct {
	// The instant of `components`: RFC 3339, a date, or another word for a point in time; now, when it
	// is not given.
	At string `query:"at"`
	// Asks for `steps`, the amounts at the start of this window and whenever something changes in it.
	// The words are those of `/v1/usage`.
	Window string `query:"window"`
	// With to, in the place of window.
	From string `query:"from"`
	To   string `query:"to"`
	// By whose clock days begin; without it by that of the site.
	Zone string `query:"zone"`
	Reading
}

// Capacity is GET /v1/capacity: What clusters have, and how many jobs run and wait.
func (a API) Capacity(ctx context.Context, q *CapacityQuery) (out Capacity, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/capacity", queryValues(q), nil, &out)
	return out, err
}

// CapacityAddress is a link to GET /v1/capacity. The format "" is JSON.
func CapacityAddress(q *CapacityQuery, format string) string {
	return addressOf("/v1/capacity", queryValues(q), format)
}

// GapsQuery is the query of GET /v1/gaps.
type GapsQuery struct {
	// Only those of this agent.
	Agent string `query:"agent"`
	Reading
}

// Gaps is GET /v1/gaps: Data unavailable or lost in transit, by source.
func (a API) Gaps(ctx context.Context, q *GapsQuery) (out Gaps, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/gaps", queryValues(q), nil, &out)
	return out, err
}

// GapsAddress is a link to GET /v1/gaps. The format "" is JSON.
func GapsAddress(q *GapsQuery, format string) string {
	return addressOf("/v1/gaps", queryValues(q), format)
}

// GapsAs is GET /v1/gaps: Data unavailable or lost in transit, by source, written to w: text/csv.
func (f Files) GapsAs(ctx context.Context, q *GapsQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/gaps", queryValues(q), accept, w)
}

// CompletenessQuery is the query of GET /v1/completeness.
type CompletenessQuery struct {
	// Only this source: type/label, or agent/type/label.
	Source string `query:"source"`
	// A word such as last-month, 2026-03, 14d; without from and to. Default: the 30 days before today,
	// and today.
	Window string `query:"window"`
	From   string `query:"from"`
	To     string `query:"to"`
	Reading
}

// Completeness is GET /v1/completeness: What schedulers have and what is stored of it, by source
// and day.
func (a API) Completeness(ctx context.Context, q *CompletenessQuery) (out Completeness, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/completeness", queryValues(q), nil, &out)
	return out, err
}

// CompletenessAddress is a link to GET /v1/completeness. The format "" is JSON.
func CompletenessAddress(q *CompletenessQuery, format string) string {
	return addressOf("/v1/completeness", queryValues(q), format)
}

// CompletenessAs is GET /v1/completeness: What schedulers have and what is stored of it, by source
// and day, written to w: text/csv.
func (f Files) CompletenessAs(ctx context.Context, q *CompletenessQuery, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/completeness", queryValues(q), accept, w)
}

// Config is GET /v1/config: The configuration that is active.
func (a API) Config(ctx context.Context) (out Config, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/config", nil, nil, &out)
	return out, err
}

// ConfigAddress is a link to GET /v1/config. The format "" is JSON.
func ConfigAddress(format string) string { return addressOf("/v1/config", nil, format) }

// CommitConfigQuery is the query of PUT /v1/config.
type CommitConfigQuery struct {
	// The digest of what the caller has seen; empty for none. Another one is a conflict (409).
	Replaces string `query:"replaces"`
}

// CommitConfig is PUT /v1/config: Make a document the configuration that is active.
func (a API) CommitConfig(ctx context.Context, q *CommitConfigQuery, body json.RawMessage) (out ConfigDigest, err error) {
	err = a.Caller.Call(ctx, "PUT", "/v1/config", queryValues(q), body, &out)
	return out, err
}

// Status is GET /v1/status: Health, and the cluster in a few numbers.
func (a API) Status(ctx context.Context, q *Reading) (out Status, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/status", queryValues(q), nil, &out)
	return out, err
}

// StatusAddress is a link to GET /v1/status. The format "" is JSON.
func StatusAddress(q *Reading, format string) string {
	return addressOf("/v1/status", queryValues(q), format)
}

// SaveSnapshot is GET /v1/snapshot: An archive of the replicated state, written to w:
// application/zstd.
func (f Files) SaveSnapshot(ctx context.Context, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/snapshot", nil, "application/zstd", w)
}

// RestoreSnapshotQuery is the query of POST /v1/snapshot:restore.
type RestoreSnapshotQuery struct {
	// Take the archive of another cluster.
	Foreign bool `query:"foreign"`
}

// RestoreSnapshot is POST /v1/snapshot:restore: Take the whole cluster back to an archive.
func (f Files) RestoreSnapshot(ctx context.Context, q *RestoreSnapshotQuery, body io.Reader) (out Restored, err error) {
	err = f.Carrier.Upload(ctx, "POST", "/v1/snapshot:restore", queryValues(q), "application/zstd", body, &out)
	return out, err
}

// ListMembers is GET /v1/cluster/members: The members of the cluster, as this node knows them.
func (a API) ListMembers(ctx context.Context) (out Members, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/cluster/members", nil, nil, &out)
	return out, err
}

// ListMembersAddress is a link to GET /v1/cluster/members. The format "" is JSON.
func ListMembersAddress(format string) string { return addressOf("/v1/cluster/members", nil, format) }

// AddMember is POST /v1/cluster/members: Make a fresh node a member.
func (a API) AddMember(ctx context.Context, body NewMember) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/cluster/members", nil, body, &out)
	return out, err
}

// RemoveMember is DELETE /v1/cluster/members/{id}: End the membership of a node.
func (a API) RemoveMember(ctx context.Context, id string) (out Message, err error) {
	err = a.Caller.Call(ctx, "DELETE", "/v1/cluster/members/"+pathPart(id), nil, nil, &out)
	return out, err
}

// Check is POST /v1/check: Compare what the node that is asked has derived with its records.
func (a API) Check(ctx context.Context) (out Check, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/check", nil, nil, &out)
	return out, err
}

// Session is POST /v1/sessions: Make a link that opens the pages of this node in one browser.
func (a API) Session(ctx context.Context) (out Session, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/sessions", nil, nil, &out)
	return out, err
}

// JoinOffer is GET /v1/join: The authorities of this cluster, for a machine that is about to join.
func (a API) JoinOffer(ctx context.Context) (out JoinOffer, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/join", nil, nil, &out)
	return out, err
}

// JoinOfferAddress is a link to GET /v1/join. The format "" is JSON.
func JoinOfferAddress(format string) string { return addressOf("/v1/join", nil, format) }

// Join is POST /v1/join: Join the cluster by a token.
func (a API) Join(ctx context.Context, body JoinRequest) (out Joined, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/join", nil, body, &out)
	return out, err
}

// Tokens is GET /v1/tokens: The tokens of the API, and those by which machines join; each the
// newest first.
func (a API) Tokens(ctx context.Context) (out Tokens, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/tokens", nil, nil, &out)
	return out, err
}

// TokensAddress is a link to GET /v1/tokens. The format "" is JSON.
func TokensAddress(format string) string { return addressOf("/v1/tokens", nil, format) }

// CreateToken is POST /v1/tokens: Make a token of the API, or one by which a machine joins.
func (a API) CreateToken(ctx context.Context, body NewToken) (out IssuedToken, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/tokens", nil, body, &out)
	return out, err
}

// RevokeToken is DELETE /v1/tokens/{id}: Revoke a token.
func (a API) RevokeToken(ctx context.Context, id string) (out Message, err error) {
	err = a.Caller.Call(ctx, "DELETE", "/v1/tokens/"+pathPart(id), nil, nil, &out)
	return out, err
}

// RemoveAgent is DELETE /v1/agents/{name}: Take away an agent that joined by a token.
func (a API) RemoveAgent(ctx context.Context, name string) (out Message, err error) {
	err = a.Caller.Call(ctx, "DELETE", "/v1/agents/"+pathPart(name), nil, nil, &out)
	return out, err
}

// TransferLeader is POST /v1/cluster/leader:transfer: Hand the leadership to another node.
func (a API) TransferLeader(ctx context.Context) (out Message, err error) {
	err = a.Caller.Call(ctx, "POST", "/v1/cluster/leader:transfer", nil, nil, &out)
	return out, err
}

// Cluster is GET /v1/cluster: The nodes, as the answering node knows them.
func (a API) Cluster(ctx context.Context) (out ClusterNodes, err error) {
	err = a.Caller.Call(ctx, "GET", "/v1/cluster", nil, nil, &out)
	return out, err
}

// ClusterAddress is a link to GET /v1/cluster. The format "" is JSON.
func ClusterAddress(format string) string { return addressOf("/v1/cluster", nil, format) }

// ClusterAs is GET /v1/cluster: The nodes, as the answering node knows them, written to w:
// text/csv.
func (f Files) ClusterAs(ctx context.Context, accept string, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/cluster", nil, accept, w)
}

// OpenAPI is GET /v1/openapi.yaml: This description, written to w: application/yaml.
func (f Files) OpenAPI(ctx context.Context, w io.Writer) error {
	return f.Carrier.Download(ctx, "/v1/openapi.yaml", nil, "application/yaml", w)
}
